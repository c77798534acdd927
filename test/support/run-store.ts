// For tests of the run store: runs of which the test says what has happened, without an engine. Their events are lines
// as the engine writes them.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { renderEvent } from "../../src/engine/event.ts";
import { type Failure, makeFailure } from "../../src/engine/failure.ts";
import type { EventPage } from "../../src/runs/job-records.ts";
import type { RunSource } from "../../src/runs/store/run-source.ts";
import { RunStore } from "../../src/runs/store/run-store.ts";
import type { StoredArtifact } from "../../src/runs/store/stored-artifact.ts";

export const RUN_ID = "run_01k9z1v7m3e8q2x4c6t8b0n5dh";
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PAGE_LINES = 100;

/** A run whose row and history the test sets. */
export interface TestRun {
  runId: string;
  lines: string[];
  isEnded: boolean;
  /** False when its rows are gone. */
  exists: boolean;
  result: string | null;
  /** Called for every page of the history that is read. */
  onRead: () => void;
}

export function newRun(lines: readonly string[] = [], more: Partial<TestRun> = {}): TestRun {
  return {
    runId: RUN_ID,
    lines: [...lines],
    isEnded: false,
    exists: true,
    result: null,
    onRead: () => {},
    ...more,
  };
}

/** A run store that knows one run. */
export function storeOf(home: string, run: TestRun): RunStore {
  return new RunStore({
    home,
    records: { artifact: async () => null, artifactPage: async () => [], finalArtifact: async () => null },
    openBlob: async () => null,
    findRun: async (runId) => (run.exists && runId === run.runId ? sourceOf(run) : null),
  });
}

function sourceOf(run: TestRun): RunSource {
  const { runId, isEnded, lines, result } = run;
  const status = isEnded ? "completed" : "running";
  return {
    runId,
    traceId: TRACE_ID,
    parentSpanId: null,
    isEnded,
    eventCount: lines.length,
    createdAtMs: 1_000,
    read: async (afterSeq): Promise<EventPage> => {
      run.onRead();
      return {
        firstSeq: afterSeq + 1,
        lines: run.exists ? run.lines.slice(afterSeq, afterSeq + PAGE_LINES) : [],
      };
    },
    documents: [
      { name: "run", isFixed: false, text: async () => JSON.stringify({ status, events: lines.length }) },
      { name: "inputs", isFixed: true, text: async () => '{"topic":"bees"}' },
      { name: "result", isFixed: false, text: async () => result },
    ],
  };
}

let nowMs = Date.parse("2026-11-21T09:30:00.000Z");

export const log = (message: string): string =>
  renderEvent(
    { nowMs: nowMs++, type: "log", agentId: "writer" },
    { level: "info", stream: "stdout", message },
  );

/** An event that only the events show. */
export const plain = (payload: unknown): string =>
  renderEvent({ nowMs: nowMs++, type: "agent_message_received", agentId: "writer" }, payload);

/** An event of the timeline. */
export const started = (task: number): string =>
  renderEvent(
    { nowMs: nowMs++, type: "sandbox_job_started", agentId: "writer" },
    { sandbox_name: `writer-${task}-1`, attempt: 1 },
  );

export function failureOf(message: string, stderrTail = ""): Failure {
  const place = { runId: RUN_ID, traceId: TRACE_ID, spanId: "00f067aa0ba902b7", eventId: 1 };
  return makeFailure("executor.exit_nonzero", message, nowMs, place, {
    agentId: "writer",
    stderrTail,
  });
}

/** An event that carries a failure; it is a log record and one of the timeline too. */
export const failing = (failure: Failure): string =>
  renderEvent({ nowMs: nowMs++, type: "agent_failed", agentId: "writer" }, { code: failure.code }, failure);

export async function bytesOf({ open, size }: StoredArtifact): Promise<Buffer> {
  return size === 0 ? Buffer.alloc(0) : buffer(await open(0, size - 1));
}

export const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** Everything that is listed, by id, with its bytes, which are of the size and the hash that are listed. */
export async function contentsOf(store: RunStore, runId = RUN_ID): Promise<ReadonlyMap<string, Buffer>> {
  const contents = new Map<string, Buffer>();
  for (const artifact of (await store.historyFiles(runId)) ?? []) {
    const bytes = await bytesOf(artifact);
    assert.equal(bytes.length, artifact.size, artifact.artifactId);
    assert.equal(sha256Of(bytes), artifact.sha256, artifact.artifactId);
    contents.set(artifact.artifactId, bytes);
  }
  return contents;
}

/** The paths below a folder; empty when it is not there. */
export async function pathsBelow(folder: string): Promise<readonly string[]> {
  return (await readdir(folder, { recursive: true }).catch(() => [])).sort();
}
