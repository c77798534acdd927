// The programs that serve a model's files, found on PATH: how they are started.
//
// - Words of a list, and no shell: neither a model's id nor its path is ever read by one.
// - The key is in the environment, where the list of processes does not show it.

import { concurrencyOf, type ServeSettings } from "./model-backend.ts";
import type { Servable } from "./servable.ts";

/** Tokens that nobody has asked for would take memory: a model that was made for 128,000 needs more for them than for itself. */
const CONTEXT_DEFAULT_MAX = 8_192;

type ModelFile = Extract<Servable, { readonly kind: "file" }>;

export interface ServerProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export interface ServerPlace {
  readonly port: number;
  readonly key: string;
}

/** What has to be on PATH for a model's format, and how it is had. */
export const programOf = {
  gguf: {
    name: "llama-server",
    install:
      "Install llama.cpp so that llama-server is on the PATH of this program (`brew install llama.cpp`, `nix profile install nixpkgs#llama-cpp`, or a release from https://github.com/ggml-org/llama.cpp/releases), then restart it",
  },
  safetensors: {
    name: "vllm",
    install:
      "Install vLLM so that vllm is on the PATH of this program (`uv tool install vllm`), then restart it; or register the model as a GGUF file, which llama-server serves",
  },
} as const;

export function serverProgram(
  servable: ModelFile,
  settings: ServeSettings,
  place: ServerPlace,
): ServerProgram {
  const { modelId, path, format } = servable;
  const context =
    settings.context ?? (servable.context === null ? null : Math.min(servable.context, CONTEXT_DEFAULT_MAX));
  const slots = concurrencyOf(servable, settings);
  const { port, key } = place;
  if (format === "safetensors") {
    return {
      file: programOf.safetensors.name,
      args: [
        ...["serve", path, "--host", "127.0.0.1", "--port", String(port)],
        `--served-model-name=${modelId}`,
        ...["--max-num-seqs", String(slots)],
        ...(context === null ? [] : ["--max-model-len", String(context)]),
      ],
      environment: { VLLM_API_KEY: key },
    };
  }
  return {
    file: programOf.gguf.name,
    args: [
      ...["--model", path, "--alias", modelId, "--host", "127.0.0.1", "--port", String(port)],
      // Its slots share the context.
      ...["--parallel", String(slots)],
      ...(context === null ? [] : ["--ctx-size", String(context * slots)]),
      ...(settings.embeddings ? ["--embeddings"] : []),
    ],
    environment: { LLAMA_API_KEY: key },
  };
}
