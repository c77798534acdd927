// How the programs that serve models are started.

import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultSettings } from "./model-backend.ts";
import { serverProgram } from "./server-program.ts";

const model = { kind: "file", modelId: "--host=0.0.0.0", path: "/models/phi", context: 131_072 } as const;
const place = { port: 4321, key: "secret" };

test("vLLM serves a folder of safetensors, at the loopback whatever the model is called", () => {
  assert.deepEqual(
    serverProgram({ ...model, format: "safetensors" }, { ...defaultSettings, concurrency: 4 }, place),
    {
      file: "vllm",
      args: [
        ...[
          "serve",
          "/models/phi",
          "--host",
          "127.0.0.1",
          "--port",
          "4321",
          "--served-model-name=--host=0.0.0.0",
        ],
        ...["--max-num-seqs", "4", "--max-model-len", "8192"],
      ],
      environment: { VLLM_API_KEY: "secret" },
    },
  );
});

test("llama-server's slots share a context that is as large as all of them need; 8,192 tokens each unless more are asked for", () => {
  const argsOf = (settings: Partial<typeof defaultSettings>, context: number | null = model.context) =>
    serverProgram(
      { ...model, context, format: "gguf" },
      { ...defaultSettings, ...settings },
      place,
    ).args.join(" ");
  assert.match(argsOf({}), /--parallel 1 --ctx-size 8192$/);
  assert.match(
    argsOf({ concurrency: 2, context: 20_000, embeddings: true }),
    /--ctx-size 40000 --embeddings$/,
  );
  assert.match(argsOf({}, null), /--parallel 1$/);
  assert.doesNotMatch(argsOf({}), /secret/);
});
