// Keys and budgets of workers, on the records of a real database.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { newDatabase } from "../../../test/support/new-database.ts";
import { systemClock } from "../../app/clock.ts";
import type { LlmNeed } from "../../engine/graph.ts";
import { sqlGatewayRecords } from "../../store/sql/gateway.ts";
import { LlmError } from "./llm-error.ts";
import { RunLlms } from "./run-llms.ts";
import type { LlmCall } from "./serving.ts";

const home = mkdtempSync(join(tmpdir(), "run-llms-"));
const database = await newDatabase(join(home, "db.sqlite"));
after(async () => {
  await database.close();
  rmSync(home, { recursive: true, force: true });
});

/** As a program that was started anew has it. */
function started(key = 1): RunLlms {
  const records = sqlGatewayRecords(database, systemClock.soon);
  const llms = new RunLlms({
    key: Buffer.alloc(32, key),
    write: (work) => records.write(({ llmUsage }) => work(llmUsage)),
    log: { warn: () => {}, error: () => {} },
  });
  llms.servedBy(async () => "http://127.0.0.2:1/api/v1/llm/v1");
  return llms;
}

const need = (changes: Partial<LlmNeed> = {}): LlmNeed => ({
  model: "m",
  endpoint: null,
  required: true,
  budget: { tokens: null, requests: null },
  openaiEnv: false,
  isOfRun: false,
  ...changes,
});

interface Told {
  readonly type: string;
  readonly payload: unknown;
}

const opened = (llms: RunLlms, runId: string, agentId: string, of: LlmNeed, told: Told[] = []) =>
  llms.open({ runId, agentId, attempt: 1, need: of, tell: (events) => void told.push(...events) });

const callOf = (input: number, output: number): LlmCall => ({
  modelId: "m",
  path: "chat/completions",
  status: 200,
  code: null,
  usage: { input, output, isEstimated: false },
  durationMs: 5,
  firstTokenMs: 2,
});

const refusedWith = (code: string) => (error: unknown) => error instanceof LlmError && error.code === code;

test("a key is the same for each attempt of an agent, and good while one is under way, where it was made", async () => {
  const llms = started();
  const first = await opened(llms, "run_1", "a", need());
  const other = await opened(llms, "run_1", "b", need());
  assert.notEqual(first.key, other.key);
  assert.ok(llms.callerOf(first.key) !== null);
  const forged = `${first.key.split(".")[0]}.${other.key.split(".")[1]}`;
  assert.throws(() => llms.callerOf(forged), refusedWith("run_key_invalid"));
  first.close();
  assert.throws(() => llms.callerOf(first.key), refusedWith("run_key_invalid"));
  const again = await opened(llms, "run_1", "a", need());
  assert.equal(again.key, first.key);
  // The end of the first attempt comes late.
  first.close();
  assert.ok(llms.callerOf(again.key) !== null);
  assert.throws(() => started(2).callerOf(again.key), refusedWith("run_key_invalid"));
  assert.throws(() => llms.callerOf(`${again.key.slice(0, -1)}!`), refusedWith("run_key_invalid"));
  assert.equal(llms.callerOf("sk-anything"), null);
  assert.equal(llms.callerOf(null), null);
});

test("a budget of requests is used up over restarts, by each agent for itself", async () => {
  const of = need({ budget: { tokens: null, requests: 2 } });
  for (let n = 0; n < 2; n++) {
    const llms = started();
    await llms.callerOf((await opened(llms, "run_2", "a", of)).key)?.admit("m");
  }
  const llms = started();
  const caller = llms.callerOf((await opened(llms, "run_2", "a", of)).key);
  await assert.rejects(caller!.admit("m"), refusedWith("budget_exceeded"));
  await llms.callerOf((await opened(llms, "run_2", "b", of)).key)?.admit("m");
});

test("a budget of tokens is that of the run when the manifest has it, and is refused once it is used up", async () => {
  const of = need({ budget: { tokens: 10, requests: null }, isOfRun: true });
  const llms = started();
  const [a, b] = await Promise.all(["a", "b"].map((agentId) => opened(llms, "run_3", agentId, of)));
  const first = llms.callerOf(a!.key)!;
  await first.admit("m");
  first.ended(callOf(6, 3));
  const second = llms.callerOf(b!.key)!;
  await second.admit("m");
  second.ended(callOf(1, 0));
  await assert.rejects(first.admit("m"), refusedWith("budget_exceeded"));
  const later = started();
  const third = later.callerOf((await opened(later, "run_3", "c", of)).key)!;
  await assert.rejects(third.admit("m"), /10 of 10 tokens. Raise llm.budget.tokens/);
});

test("of very many calls the tokens are told, when the attempt ends", async () => {
  const llms = started();
  const told: Told[] = [];
  const access = await opened(llms, "run_4", "a", need(), told);
  const caller = llms.callerOf(access.key)!;
  for (let n = 0; n < 1_002; n++) caller.ended(callOf(2, 1));
  access.close();
  assert.equal(told.length, 1_001);
  assert.deepEqual(told.at(-1), {
    type: "metric",
    payload: { attempt: 1, name: "llm_calls", value: 2, model: "m", tokens: { input: 4, output: 2 } },
  });
});
