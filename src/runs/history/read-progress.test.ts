// How far a run has come, as it is read from the journal.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness } from "../../../test/support/engine-harness.ts";
import { executor, graph } from "../../../test/support/graphs.ts";
import type { JobStatus } from "../../engine/journal.ts";
import type { JobDetail, JobRecord } from "../job-records.ts";
import { workflowProgress } from "./progress.ts";
import { readProgress } from "./read-progress.ts";

const PAGE_LINES = 100;

/** The states of a run's nodes, and how many events were read for them. */
async function statesOf(h: EngineHarness, jobId: string, given: { manifest: object; status: JobStatus }) {
  const { events, agents, progress } = h.job(jobId);
  let read = 0;
  const detail = {
    job: {
      jobId,
      status: given.status,
      eventCount: events.length,
      failureJson: null,
      tally: progress.tally,
    } as JobRecord,
    tasks: [],
    mailboxDepths: new Map(),
    resultJson: null,
    recentEvents: [],
  } satisfies JobDetail;
  const records = {
    detail: async () => detail,
    manifest: async () => JSON.stringify(given.manifest),
    standings: async (_jobId: string, from: number, to: number) =>
      [...agents.values()].filter(({ index }) => index >= from && index < to),
    eventsBefore: async (_jobId: string, beforeSeq: number) => {
      const end = Math.min(beforeSeq - 1, events.length);
      const from = Math.max(0, end - PAGE_LINES);
      read += end - from;
      return { firstSeq: from + 1, lines: events.slice(from, end) };
    },
  };
  const found = await readProgress(records, jobId, { nowMs: h.nowMs });
  assert.ok(found);
  return { states: (await workflowProgress(found)).steps.map(({ state }) => state), read };
}

test("of a wide graph that is cancelled, every node that waited for slots is cancelled, none of them done", async () => {
  const h = new EngineHarness({ slots: 1 });
  const nodes = Array.from({ length: 900 }, (_, i) => executor(`n${i}`, ["true"]));
  const manifest = graph("wide", nodes, [], { entrypoints: nodes.map((_, i) => `n${i}`) });
  const jobId = await h.submit(manifest);
  await h.end("n0");
  await h.do(h.engine.cancel(jobId));
  const { states } = await statesOf(h, jobId, { manifest, status: "cancelled" });
  assert.deepEqual(states, ["done", ...new Array<string>(899).fill("cancelled")]);
});

test("a long history is not read as a whole for a run that has completed", async () => {
  const h = new EngineHarness();
  const manifest = graph("long", [executor("work", ["true"])]);
  const jobId = await h.submit(manifest);
  const lines = Array.from({ length: 5_000 }, () => ({ type: "log", payload: {} }));
  h.engine.taskEvents(h.started("work").ref, lines);
  await h.end("work");
  const { states, read } = await statesOf(h, jobId, { manifest, status: "completed" });
  assert.deepEqual(states, ["done"]);
  assert.ok(read < 2_500, `${read} events`);
});
