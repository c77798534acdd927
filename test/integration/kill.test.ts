// kill -9, many times at random moments, with many jobs in flight whose commands are real: nothing that was
// acknowledged is lost, nothing is done twice by built-in agents, no history has a gap, and no process is left.
// `npm run test:long -- kill` kills 50 times; `KILLS=500 KILL_SEED=$RANDOM npm test -- kill` at more moments, and others.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../simulation/random.ts";
import { sized } from "../support/long.ts";
import { processesWith, seesProcesses } from "../support/processes.ts";
import { startProgram, temporaryHome } from "../support/program.ts";
import { call, historyOf, jobDetail } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const JOBS = sized(60, 200);
const KILLS = Number(process.env.KILLS ?? sized(8, 50));
/** The first kills come while jobs are still added. */
const JOBS_PER_KILL = JOBS / 10;

/** router -> two commands -> router -> aggregator; each command says which attempt it is. */
const manifest = {
  manifest_version: "1.0",
  graph_id: "survivor",
  entrypoints: ["in"],
  nodes: [
    { node_id: "in", agent_type: "router", config: { emit_type: "work" } },
    {
      node_id: "left",
      agent_type: "executor",
      config: { command: ["sh", "-c", "sleep 0.1; echo $SVC_ATTEMPT"] },
    },
    {
      node_id: "right",
      agent_type: "executor",
      config: { command: ["sh", "-c", "sleep 0.1; echo $SVC_ATTEMPT"] },
    },
    { node_id: "pass", agent_type: "router", config: { emit_type: "done" } },
    { node_id: "out", agent_type: "aggregator", config: { complete_after: 2 } },
  ],
  edges: [
    { from_node: "in", to_node: "left" },
    { from_node: "in", to_node: "right" },
    { from_node: "left", to_node: "pass" },
    { from_node: "right", to_node: "pass" },
    { from_node: "pass", to_node: "out", message_type: "done" },
  ],
};

test(`${KILLS} times kill -9 with ${JOBS} jobs in flight: every job ends as if nothing had happened`, async () => {
  const random = new Random(Number(process.env.KILL_SEED ?? 1));
  const home = await temporaryHome();
  const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "4", SVC_LOG_LEVEL: "error" };
  const acknowledged: string[] = [];
  let program = await startProgram({ home, env });
  try {
    for (let kills = 0; kills < KILLS; kills++) {
      // Submissions go on while the process dies; only those that were answered count.
      const wanted = Math.min(JOBS_PER_KILL, JOBS - acknowledged.length);
      const submissions = Array.from({ length: wanted }, async () => {
        const answer = await call(program, "POST", "/jobs", manifest).catch(() => null);
        if (answer !== null) acknowledged.push(String(answer.id));
      });
      // However slow the machine is, each kill finds one more job than the last.
      if (wanted > 0) await Promise.race(submissions);
      // The moment of death: a fault from the seed, not a wait for anything.
      await delay(random.between(0, 250));
      await program.kill();
      await Promise.all(submissions);
      program = await startProgram({ home, env });
    }
    while (acknowledged.length < JOBS)
      acknowledged.push(String((await call(program, "POST", "/jobs", manifest)).id));
    let recoveries = 0;
    for (const jobId of acknowledged) recoveries += await judge(program, jobId);
    assert.ok(recoveries > JOBS, `the kills hit running jobs: ${recoveries} recoveries`);
    await program.stop();
    if (seesProcesses) await until("no process of any job is left", () => processesWith(home).length === 0);
  } finally {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  }
});

/** @returns how often the job was recovered */
async function judge(program: Awaited<ReturnType<typeof startProgram>>, jobId: string): Promise<number> {
  const streamed = await historyOf(program, jobId);
  const answer = await call(program, "GET", `/jobs/${jobId}/events`);
  const stored = answer.data as unknown as typeof streamed;
  assert.deepEqual(
    streamed.map((event) => event.id),
    stored.map((_, i) => i + 1),
    `${jobId}: the stream numbers every event, without a gap`,
  );
  assert.deepEqual(
    streamed.map(({ type }) => type),
    stored.map(({ type }) => type),
  );
  assert.equal(stored.at(-1)?.type, "job_completed", jobId);
  const detail = await jobDetail(program, jobId);
  const processed = Object.fromEntries(
    detail.agents.map((agent) => [agent.agent_id, agent.processed_messages]),
  );
  assert.deepEqual(processed, { in: 1, left: 1, right: 1, pass: 2, out: 2 }, jobId);
  const ids = stored
    .filter(({ type }) => type === "agent_message_received")
    .map(({ payload }) => payload.message_id);
  assert.equal(new Set(ids).size, 7, `${jobId}: every message was received once`);
  assert.equal(ids.length, 7, jobId);
  return stored.filter(({ type }) => type === "job_recovered").length;
}
