// Answers of any length are made in pieces, and everything else has its turn between them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fan, pair } from "../../bench/manifests.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { countsTurns, turnsOf } from "../support/loop-turns.ts";
import { type Program, startProgram } from "../support/program.ts";
import { call, historyOf } from "../support/runtime-api.ts";

const JOBS = 2_000;
const AGENTS = 2_000;
/** In workflow progress. */
const SHOWN = 1_000;
let program: Program;
before(async () => {
  program = await startProgram({ env: countsTurns });
});
after(() => program.stop());

async function turnsDuring(ask: () => Promise<unknown>): Promise<number> {
  const first = await turnsOf(program);
  await ask();
  return (await turnsOf(program)) - first;
}

test("the list of all jobs", async () => {
  for (let left = JOBS; left > 0; left -= 500) {
    await call(program, "POST", "/jobs:batch", { items: Array.from({ length: 500 }, () => pair) });
  }
  let list: JsonObject = {};
  const turns = await turnsDuring(async () => {
    list = await call(program, "GET", "/jobs");
  });
  assert.equal((list.data as readonly unknown[]).length, JOBS);
  assert.ok(turns >= JOBS / 100, `${turns} turns for ${JOBS} jobs`);
});

test("detail and progress of a job of many agents, which have every agent once and in order", async () => {
  const { id } = await call(program, "POST", "/jobs", fan(AGENTS, 1));
  const jobId = String(id);
  await historyOf(program, jobId);
  let detail: JsonObject = {};
  const turns = await turnsDuring(async () => {
    detail = await call(program, "GET", `/jobs/${jobId}`);
  });
  const agents = detail.agents as readonly { agent_id: string; processed_messages: number }[];
  const names = ["in", ...Array.from({ length: AGENTS }, (_, i) => `w${i}`), "out"];
  assert.deepEqual(
    agents.map(({ agent_id }) => agent_id),
    names,
  );
  assert.deepEqual(
    agents.map(({ processed_messages }) => processed_messages),
    [...new Array(AGENTS + 1).fill(1), AGENTS],
  );
  assert.ok(turns >= AGENTS / 200, `${turns} turns for ${AGENTS} agents`);
  let progress: JsonObject = {};
  const ofProgress = await turnsDuring(async () => {
    progress = await call(program, "GET", `/jobs/${jobId}/workflow-progress`);
  });
  for (const list of [progress.steps, progress.agents] as readonly (readonly JsonObject[])[]) {
    assert.deepEqual(
      list.map(({ agent_id }) => agent_id),
      names.slice(0, SHOWN),
    );
  }
  assert.ok(ofProgress >= (2 * SHOWN) / 50, `${ofProgress} turns for ${SHOWN} steps and agents`);
});
