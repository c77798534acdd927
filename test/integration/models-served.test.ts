// A model that is served by a process of its own: over a kill of the program, a restart, and a stop.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import OpenAI from "openai";
import { ask, assertProblem, call, startGateway } from "../support/gateway-api.ts";
import { fakeLlamaServer } from "../support/llm.ts";
import { ggufFile, tinyLlama, tinyTensors } from "../support/model-files.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

async function ended(program: Program, path: string) {
  return await until("the operation has ended", async () => {
    const { body } = await ask(program, "GET", path);
    return body.finished_at !== null && body;
  });
}

test("what is served is served again after a kill, and no process of before is left", async () => {
  const folder = mkdtempSync(join(tmpdir(), "models-served-"));
  const file = join(folder, "tiny.gguf");
  writeFileSync(file, ggufFile(tinyLlama, tinyTensors));
  const startsIn = join(folder, "starts");
  const PATH = `${fakeLlamaServer({ startsIn })}:${process.env.PATH}`;
  const home = await temporaryHome();
  const pids = () =>
    readFileSync(startsIn, "utf8")
      .trim()
      .split("\n")
      .map((line) => Number(JSON.parse(line).pid));
  const answerOf = async (program: Program) => {
    const client = new OpenAI({ baseURL: `${program.api}/llm/v1`, apiKey: "any", maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "who" }];
    const answer = await client.chat.completions.create({ model: "tiny", messages });
    return Number(answer.choices[0]?.message.content);
  };

  const first = await startGateway({ home, env: { PATH } });
  await call(first, "POST", "/models", { model_id: "tiny", source: { file } });
  assertProblem(await ask(first, "POST", "/models/tiny/serve"), 404, "model_not_found");
  const installed = await call(first, "POST", "/models/tiny/install");
  await ended(first, `/operations/${installed.operation_id}`);
  const begun = await call(first, "POST", "/models/tiny/serve", { idle_unload_seconds: 0 });
  const served = await ended(first, `/operations/${begun.operation_id}`);
  assert.deepEqual(served.result, { model_id: "tiny", base_url: `${first.api}/llm/v1` });
  const [pid = 0] = pids();
  assert.equal(await answerOf(first), pid);
  const removal = await call(first, "POST", "/models/tiny/remove");
  assert.equal((await ended(first, `/operations/${removal.operation_id}`)).status, "failed");
  await first.kill();
  await until("its process has ended with it", () => !existsSync(`/proc/${pid}`));

  const second = await startGateway({ home, env: { PATH } });
  const shown = await call(second, "GET", "/models/tiny/serving");
  assert.deepEqual([shown.served, shown.idle_unload_seconds], [true, 0]);
  const again = await answerOf(second);
  assert.notEqual(again, pid);
  assert.deepEqual(pids(), [pid, again]);
  const metrics = await (await fetch(`${second.api}/metrics`, { headers: { accept: "text/plain" } })).text();
  assert.match(metrics, /troupe_llm_requests_total\{model="tiny",outcome="answered"\} 1\n/);
  assert.equal((await call(second, "POST", "/models/tiny/stop")).served, false);
  await until("its process has ended", () => !existsSync(`/proc/${again}`));
  await assert.rejects(answerOf(second), /No model "tiny" is served here/);
  assertProblem(await ask(second, "POST", "/models/tiny/stop"), 409, "invalid_transition");
  await second.stop();
  await rm(home, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});
