// A model's own process: a program that stands in for llama-server, started, watched and ended as the real one is.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isRunning } from "../../../test/support/execution.ts";
import { type FakeServerBehaviour, fakeLlamaServer, startLlmGateway } from "../../../test/support/llm.ts";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../app/clock.ts";
import { Daemons } from "../../execution/process/daemons.ts";
import { FifoSupply } from "../../execution/process/pipes.ts";
import { ProcessTrees } from "../../execution/process/process-trees.ts";
import { Spawner } from "../../execution/process/spawner.ts";
import { defaultSettings, type ServeSettings } from "./model-backend.ts";
import { ModelServers } from "./model-servers.ts";

const home = mkdtempSync(join(tmpdir(), "process-backend-"));
const trees = new ProcessTrees(home, systemClock);
const spawner = new Spawner((pid) => trees.spare(pid));
const fifos = new FifoSupply(join(home, "pipes"));
const daemons = new Daemons({ trees, spawner, fifos, clock: systemClock });
after(async () => {
  await daemons.close(1_000);
  await spawner.close();
  await fifos.close();
  rmSync(home, { recursive: true, force: true });
});

const model = {
  kind: "file",
  modelId: "-tiny",
  path: "/models/tiny.gguf",
  format: "gguf",
  context: 4096,
} as const;
const ask = (content: string) => ({ model: "-tiny", messages: [{ role: "user" as const, content }] });

let seq = 0;
async function startServing(
  behaviour: Partial<FakeServerBehaviour> = {},
  settings: Partial<ServeSettings> = {},
) {
  const startsIn = join(home, `starts-${++seq}`);
  writeFileSync(startsIn, "");
  const logged: string[] = [];
  const log = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const folder =
    behaviour.startsIn === "" ? join(home, "nothing") : fakeLlamaServer({ ...behaviour, startsIn });
  const servers = new ModelServers({
    servables: { find: async (modelId) => (modelId === model.modelId ? model : null) },
    records: {
      served: async (modelId) => ({
        modelId,
        settings: { ...defaultSettings, ...settings },
        createdAtMs: 0,
        updatedAtMs: 0,
      }),
      allServed: async () => [],
    },
    startDaemon: (spec) => daemons.start(spec),
    environment: { PATH: folder, SVC_API_TOKEN: "not for it", AWS_SECRET_ACCESS_KEY: "nor this" },
    folder: home,
    clock: systemClock,
    log: { info: log, warn: log, error: log },
  });
  const gateway = await startLlmGateway({ models: [model], servers });
  const starts = () =>
    readFileSync(startsIn, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line): { readonly pid: number; readonly words: readonly string[] } => JSON.parse(line));
  return { ...gateway, servers, logged, starts, folder };
}

const said = (answer: {
  readonly choices: readonly { readonly message: { readonly content: string | null } }[];
}) => answer.choices[0]?.message.content;

test("the first request starts the process, under a key that no other program knows and no log has", async () => {
  const loadedBy = join(home, "loaded");
  await using serving = await startServing({ loadedBy }, { concurrency: 2, context: 1_000 });
  const first = serving.client.chat.completions.create(ask("who"));
  await until("the process is started", () => serving.starts().length === 1);
  assert.equal(serving.servers.heldOf("-tiny")?.state, "loading");
  writeFileSync(loadedBy, "");
  const [start] = serving.starts();
  assert.equal(said(await first), String(start?.pid));
  assert.equal(said(await serving.client.chat.completions.create(ask("who"))), String(start?.pid));
  assert.equal(serving.servers.heldOf("-tiny")?.state, "ready");
  const words = start?.words.map((word, n) => (start.words[n - 1] === "--port" ? "PORT" : word));
  assert.deepEqual(words, [
    ...["--model", "/models/tiny.gguf", "--alias", "-tiny", "--host", "127.0.0.1", "--port", "PORT"],
    ...["--parallel", "2", "--ctx-size", "2000"],
  ]);
  const port = start?.words[start.words.indexOf("--port") + 1];
  const stranger = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    body: "{}",
  });
  assert.equal(stranger.status, 401);
  const environment = readFileSync(`/proc/${start?.pid}/environ`, "utf8").split("\0");
  const key = environment.find((one) => one.startsWith("LLAMA_API_KEY="))?.slice("LLAMA_API_KEY=".length);
  assert.ok(key !== undefined && key.length > 40 && !start?.words.includes(key));
  assert.deepEqual(
    environment.filter((one) => /SVC_|AWS_/.test(one)),
    [],
  );
  await until("its lines are logged", () => serving.logged.some((line) => line.includes("loaded meta data")));
  assert.ok(!serving.logged.some((line) => line.includes(key)));
});

test("one that ends in the middle is started again, and the request with it", async () => {
  await using serving = await startServing();
  const first = said(await serving.client.chat.completions.create(ask("who")));
  process.kill(Number(first), "SIGKILL");
  const second = said(await serving.client.chat.completions.create(ask("who")));
  assert.notEqual(second, first);
  assert.ok(serving.starts().length >= 2);
});

test("one that cannot load its model is told with what it printed, and is not started for each request", async () => {
  await using serving = await startServing({ exits: 3 });
  let waitSeconds: string | null = null;
  for (let n = 0; n < 6 && waitSeconds === null; n++) {
    const failed = await serving.client.chat.completions.create(ask("who")).catch((error) => error);
    assert.equal(failed.status, 503);
    assert.match(failed.message, /llama-server ended with exit code 3.*failed to load model/);
    waitSeconds = failed.headers.get("retry-after");
  }
  assert.ok(Number(waitSeconds) >= 1);
});

test("where the program is missing, the error says what to install", async () => {
  await using serving = await startServing({ startsIn: "" });
  const failed = await serving.client.chat.completions.create(ask("who")).catch((error) => error);
  assert.deepEqual([failed.status, failed.code], [503, "server_not_installed"]);
  assert.match(failed.message, /no llama-server on the PATH\. Install llama\.cpp/);
});

test("one that nobody asks ends, and the next request starts it again", async () => {
  await using serving = await startServing({}, { idleUnloadSeconds: 0.05 });
  const first = Number(said(await serving.client.chat.completions.create(ask("who"))));
  await until("it has ended", async () => !(await isRunning(first)));
  assert.equal(serving.servers.heldOf("-tiny")?.state, "unloaded");
  const second = Number(said(await serving.client.chat.completions.create(ask("who"))));
  assert.notEqual(second, first);
});

test("with what serves it, its process ends", async () => {
  let pid = 0;
  {
    await using serving = await startServing();
    pid = Number(said(await serving.client.chat.completions.create(ask("who"))));
    assert.ok(await isRunning(pid));
  }
  assert.equal(await isRunning(pid), false);
  assert.equal(existsSync(`/proc/${pid}`), false);
});
