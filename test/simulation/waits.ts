// I12. Every wait ends on time, however the wall clock is set meanwhile: retries, sensors' intervals, questions and
//      deadlines. What a restart or a pause comes between is left out: a restart has only the wall clock to go by.
//
// Events are stamped with wall time, which jumps by whole hours. So a stamp tells the time within its hour to the
// millisecond, and the time of the commit tells the hour.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import type { StoredJob } from "../support/memory-journal.ts";
import type { SeenEvent } from "./checker.ts";

const HOUR_MS = 3_600_000;
/** Commits that fail are repeated for so long at most. */
const COMMIT_MS_MAX = HOUR_MS / 2;

const holding: ReadonlySet<string> = new Set(["job_paused", "job_resumed", "job_recovered"]);

export interface History {
  readonly events: readonly SeenEvent[];
  /** When each event was committed, in the time of the simulation. */
  readonly committedAtMs: readonly number[];
}

interface Wait {
  readonly what: string;
  /** Indices of the events. */
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

/**
 * Judges a job that is over.
 *
 * @param mayBeLate whether processes are stopped in this world, and clocks run apart: then nothing is to end early
 */
export function judgeWaits(jobId: string, job: StoredJob, history: History, mayBeLate: boolean): void {
  const { events, committedAtMs } = history;
  for (const { what, from, to, ms } of [
    ...retries(history),
    // One that comes late is made up for by the next.
    ...(mayBeLate ? [] : sensors(job, history)),
    ...questions(job, history),
    ...deadlines(job, history),
  ]) {
    if (isHeld(events.slice(from, to))) continue;
    const stampedMs = Date.parse(events[to]!.timestamp) - Date.parse(events[from]!.timestamp);
    const offMs = (stampedMs - ms) % HOUR_MS;
    const committedMs = committedAtMs[to]! - committedAtMs[from]!;
    if (mayBeLate) {
      const earlyMs = ms - stampedMs;
      assert.ok(earlyMs <= 1 + ms / 5_000, `I12: ${what} of ${jobId} ended ${earlyMs} ms early`);
      continue;
    }
    const isOnTime = offMs === 0 && Math.abs(committedMs - ms) < COMMIT_MS_MAX;
    assert.ok(
      isOnTime,
      `I12: ${what} of ${jobId} took ${committedMs} ms instead of ${ms} (${offMs} ms off the hour)`,
    );
  }
}

/** Judges the stored jobs when nothing is going to happen any more: whatever had an end has ended. */
export function judgeIdle(jobs: ReadonlyMap<string, StoredJob>): void {
  for (const [jobId, { progress, tasks, humanRequests }] of jobs) {
    if (progress.status !== "running") continue;
    const retry = [...tasks.values()].find(({ state }) => state.kind === "backoff");
    const question = [...humanRequests.values()].find(
      ({ status, expiresAtMs }) => status === "pending" && expiresAtMs !== null,
    );
    assert.equal(retry, undefined, `I12: a retry of ${jobId} never came`);
    assert.equal(question, undefined, `I12: a question of ${jobId} was never over`);
    assert.equal(progress.deadlineAtMs, null, `I12: the deadline of ${jobId} never came`);
  }
}

/** Whether a pause or a restart is among these. */
function isHeld(events: readonly SeenEvent[]): boolean {
  return events.some(({ type }) => holding.has(type));
}

/** The next event of this type about the same thing, if there is one. */
function after(events: readonly SeenEvent[], from: number, is: (event: SeenEvent) => boolean): number[] {
  const to = events.findIndex((event, at) => at > from && is(event));
  return to === -1 ? [] : [to];
}

function retries({ events }: History): Wait[] {
  return events.flatMap(({ type, payload }, from) => {
    if (type !== "sandbox_job_retry_scheduled") return [];
    const isNext = (event: SeenEvent) =>
      event.type === "executor_lease_requested" && event.payload.task === payload.task;
    const ms = Number(payload.delay_ms);
    return after(events, from, isNext).map((to) => ({
      what: `the retry of task ${payload.task}`,
      from,
      to,
      ms,
    }));
  });
}

function sensors(job: StoredJob, { events }: History): Wait[] {
  const { nodes } = JSON.parse(job.insert.manifestJson) as { nodes: readonly JsonObject[] };
  return nodes.flatMap(({ node_id, config }) => {
    const ms = Number((config as JsonObject).interval_ms ?? 0);
    if (ms === 0) return [];
    const isTick = ({ type, agent_id }: SeenEvent) =>
      agent_id === node_id && (type === "agent_started" || type === "sensor_observed");
    return events.flatMap((event, from) =>
      // One that came late is made up for by the next.
      isTick(event) && !isHeld(events.slice(0, from))
        ? after(events, from, isTick).map((to) => ({ what: `the interval of ${node_id}`, from, to, ms }))
        : [],
    );
  });
}

function questions(job: StoredJob, { events }: History): Wait[] {
  return [...job.humanRequests.values()].flatMap(({ requestId, eventSeq, createdAtMs, expiresAtMs }) => {
    if (expiresAtMs === null) return [];
    const isOver = ({ type, payload }: SeenEvent) =>
      type === "human_input_timed_out" && payload.request_id === requestId;
    const ms = expiresAtMs - createdAtMs;
    const from = eventSeq - 1;
    return after(events, from, isOver).map((to) => ({ what: `the time of ${requestId}`, from, to, ms }));
  });
}

function deadlines(job: StoredJob, { events }: History): Wait[] {
  const { policies } = JSON.parse(job.insert.manifestJson) as { policies?: { timeout_seconds?: number } };
  const isOver = ({ type, payload }: SeenEvent) => type === "job_failed" && payload.code === "job.timeout";
  const from = events.findIndex(({ type }) => type === "job_running");
  const ms = (policies?.timeout_seconds ?? 0) * 1_000;
  return after(events, from, isOver).map((to) => ({ what: "the deadline", from, to, ms }));
}
