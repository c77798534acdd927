// The judge: looks at every commit, every published event and every started command, and throws at the first thing
// that must never be.
//
// I1. No event number is missing or repeated, in the journal and in every feed.
// I2. Nothing is published, no task starts and no answer is handed over before what caused it is in the journal.
// I3. Two epochs never both commit: once a newer epoch has written, an older one is refused.
// I4. Nothing is written to a job after its terminal event.
// I11. A service is registered and deregistered in turn, is passing or critical in between only, and none outlives
//      its job.
// I14. An attempt is given the time that its node allows and ends as it was reported, and what fails is tried
//      max_attempts times, or once if another attempt would not change it.

import assert from "node:assert/strict";
import { terminalEventTypes } from "../../src/engine/event-types.ts";
import type { JobChanges } from "../../src/engine/journal.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import type { TaskOutcome, TaskRef, TaskStart } from "../../src/engine/task-port.ts";
import type { MemoryJournal, StoredJob } from "../support/memory-journal.ts";
import { Rows } from "./rows.ts";
import { judgeWaits } from "./waits.ts";

/** max_attempts of every command (graphs.ts). */
const ATTEMPTS_MAX = 3;
/** What an attempt may take whose node says nothing of it. */
const TIMEOUT_SECONDS_DEFAULT = 300;

export interface SeenEvent {
  readonly timestamp: string;
  readonly type: string;
  readonly agent_id: string | null;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: string };
}

export class Checker {
  readonly #journal: MemoryJournal;
  readonly #nowMs: () => number;
  readonly #mayBeLate: boolean;
  readonly #epochs = new Map<string, number>();
  readonly #rows = new Rows();
  readonly #committedAtMs = new Map<string, number[]>();
  /** Of each task with a command that runs, the attempt. */
  readonly #runs = new Map<string, number>();
  /** How attempts ended whose end was reported: a failure's code, or the kind of the outcome. */
  readonly #reported = new Map<string, string>();

  /**
   * @param nowMs the time of the simulation, which nobody sets
   * @param mayBeLate see judgeWaits
   */
  constructor(journal: MemoryJournal, nowMs: () => number, mayBeLate: boolean) {
    this.#mayBeLate = mayBeLate;
    this.#journal = journal;
    this.#nowMs = nowMs;
  }

  beforeCommit(batch: readonly JobChanges[]): void {
    for (const changes of batch) {
      const job = this.#journal.jobs.get(changes.jobId);
      if (job === undefined || job.epoch !== changes.epoch || job.owner !== changes.owner) continue;
      if (job.revision !== changes.revision) continue;
      assert.equal(
        changes.firstEventSeq,
        job.events.length + 1,
        "I1: the batch continues the history without a gap",
      );
      assert.ok(!isOver(job.events), "I4: nothing follows the terminal event");
    }
  }

  afterCommit(batch: readonly JobChanges[], lost: readonly string[]): void {
    for (const changes of batch) {
      const { jobId, epoch, progress } = changes;
      if (lost.includes(jobId)) continue;
      this.#rows.written(changes);
      this.#stamp(changes);
      const newest = this.#epochs.get(jobId) ?? 0;
      assert.ok(epoch >= newest, `I3: epoch ${epoch} wrote to ${jobId} after epoch ${newest}`);
      this.#epochs.set(jobId, epoch);
      const job = this.#journal.jobs.get(jobId)!;
      assert.equal(progress.eventSeq, job.events.length, "I1: the row counts what the history holds");
      const terminal = job.events.findIndex((line) => terminalEventTypes.has(parse(line).type));
      assert.ok(terminal === -1 || terminal === job.events.length - 1, "I4: the terminal event is the last");
    }
  }

  /** When each event of a job was committed, in the time of the simulation. */
  committedAtMs(jobId: string): readonly number[] {
    return this.#committedAtMs.get(jobId) ?? [];
  }

  #stamp({ jobId, firstEventSeq, eventLines }: JobChanges): void {
    const times = this.#committedAtMs.get(jobId) ?? [];
    this.#committedAtMs.set(jobId, times);
    for (const [i, line] of eventLines.entries()) {
      // A batch whose answer was lost is sent again.
      times[firstEventSeq - 1 + i] ??= this.#nowMs();
      const { type, payload, error } = parse(line);
      if (type !== "sandbox_job_completed" && type !== "sandbox_job_failed") continue;
      const attempt = `${jobId}/${payload.task}/${payload.attempt}`;
      const end = type === "sandbox_job_completed" ? "succeeded" : error?.code;
      assert.equal(end, this.#reported.get(attempt), `I14: ${attempt} has ended as it was reported`);
    }
  }

  /** The runner is about to report how an attempt ended. */
  taskReported({ jobId, taskSeq, attempt }: TaskRef, outcome: TaskOutcome): void {
    const end = outcome.kind === "failed" ? outcome.code : outcome.kind;
    this.#reported.set(`${jobId}/${taskSeq}/${attempt}`, end);
  }

  published(jobId: string, firstSeq: number, lines: readonly string[]): void {
    const stored = this.#journal.jobs.get(jobId)?.events ?? [];
    for (const [i, line] of lines.entries()) {
      assert.equal(
        stored[firstSeq - 1 + i],
        line,
        `I2: event ${firstSeq + i} of ${jobId} was published before it was stored`,
      );
    }
  }

  taskStarted(task: TaskStart, owner: string): void {
    const { jobId, taskSeq, attempt } = task.ref;
    const job = this.#journal.jobs.get(jobId);
    assert.ok(job !== undefined, "I2: a task started for a job that is not stored");
    const stored = job.tasks.get(taskSeq);
    const isStored = stored?.state.kind === "running" && stored.attempt === attempt;
    assert.ok(isStored, `I2: attempt ${attempt} of task ${taskSeq} of ${jobId} started before it was stored`);
    assert.equal(
      task.timeoutMs,
      timeoutMsOf(job, task),
      `I14: ${task.agentId} of ${jobId} is given its time`,
    );
    if (task.kind !== "command") return;
    const begun = job.events.map(parse).filter((event) => event.type === "sandbox_job_started");
    const mine = begun.filter((event) => event.payload.sandbox_name === task.sandboxName);
    assert.equal(mine.length, 1, `I2: ${task.sandboxName} started without its cause on disk (${owner})`);
  }

  commandBegins({ jobId, taskSeq, attempt }: TaskRef): void {
    const task = `${jobId}/${taskSeq}`;
    assert.equal(
      this.#runs.get(task),
      undefined,
      `I20: attempt ${attempt} of ${task} began while another ran`,
    );
    this.#runs.set(task, attempt);
  }

  commandEnds({ jobId, taskSeq, attempt }: TaskRef): void {
    const task = `${jobId}/${taskSeq}`;
    if (this.#runs.get(task) === attempt) this.#runs.delete(task);
  }

  /** A command reads the answer of a person. */
  answerSeen(jobId: string, answer: { readonly request_id: string; readonly decision: string }): void {
    const requests = this.#journal.jobs.get(jobId)?.humanRequests.values() ?? [];
    const stored = [...requests].find(({ requestId }) => requestId === answer.request_id);
    const what = `I2: the answer to ${answer.request_id} of ${jobId} was handed over before it was stored`;
    assert.equal(stored?.response?.decision, answer.decision, what);
  }

  /** Judges a job's whole history once it is over. */
  finished(jobId: string): void {
    const job = this.#journal.jobs.get(jobId)!;
    const events = job.events.map(parse);
    const received = events.filter((event) => event.type === "agent_message_received");
    const ids = new Set(received.map((event) => event.payload.message_id));
    assert.equal(ids.size, received.length, `${jobId}: a message was processed twice`);
    const counted = new Map<string, number>();
    for (const { agent_id } of received) counted.set(agent_id!, (counted.get(agent_id!) ?? 0) + 1);
    for (const agent of job.agents.values()) {
      assert.equal(
        agent.processedMessages,
        counted.get(agent.agentId) ?? 0,
        `${jobId}: ${agent.agentId} counts wrongly`,
      );
    }
    // The history of a job that could not be written stops where it was.
    if (job.progress.failureJson?.includes('"code":"runtime.record_damaged"')) return;
    judgeWaits(jobId, job, { events, committedAtMs: this.committedAtMs(jobId) }, this.#mayBeLate);
    this.#attempts(jobId, events);
    this.#leases(jobId, events);
    this.#services(jobId, events);
  }

  #services(jobId: string, events: readonly SeenEvent[]): void {
    const living = new Set<unknown>();
    for (const { type, payload } of events) {
      const id = payload.service_id;
      const what = `I11: ${jobId} has ${type} of ${String(payload.name)} at a wrong time`;
      if (type === "service_registered") {
        assert.ok(!living.has(id), what);
        living.add(id);
      }
      if (type === "service_passing" || type === "service_critical") assert.ok(living.has(id), what);
      if (type === "service_deregistered") assert.ok(living.delete(id), what);
    }
    assert.equal(living.size, 0, `I11: ${living.size} services of ${jobId} outlived it`);
  }

  /** What failed for good was tried as often as it may, interruptions not counted. */
  #attempts(jobId: string, events: readonly SeenEvent[]): void {
    const ofTask = (type: string, task: unknown) =>
      events.filter((event) => event.type === type && event.payload.task === task).length;
    for (const { type, agent_id, payload, error } of events) {
      if (type !== "agent_failed") continue;
      const { task } = payload;
      // A file is watched once, and the failures of modules show as retries, but for the last one.
      const isCommand = error?.code.startsWith("executor.");
      const times = isCommand
        ? ofTask("sandbox_job_failed", task)
        : ofTask("sandbox_job_retry_scheduled", task) + 1;
      const may = agent_id?.startsWith("refuses") ? 1 : ATTEMPTS_MAX;
      assert.equal(times, may, `I14: task ${String(task)} of ${jobId} has failed ${times} times`);
    }
  }

  /** Every lease that was acquired was released, and none twice. */
  #leases(jobId: string, events: readonly SeenEvent[]): void {
    const held = new Set<unknown>();
    for (const { type, payload } of events) {
      if (type === "executor_lease_acquired") held.add(payload.lease_id);
      if (type === "executor_lease_released") {
        assert.ok(held.delete(payload.lease_id), `${jobId}: a lease was released that nobody held`);
      }
    }
    assert.equal(held.size, 0, `${jobId}: ${held.size} leases were never released`);
  }
}

export function parse(line: string): SeenEvent {
  return JSON.parse(line) as SeenEvent;
}

function isOver(lines: readonly string[]): boolean {
  const last = lines.at(-1);
  return last !== undefined && terminalEventTypes.has(parse(last).type);
}

/** What the node's manifest allows an attempt to take, in milliseconds; null for ever. */
function timeoutMsOf({ insert }: StoredJob, { agentId, kind, config }: TaskStart): number | null {
  if (kind === "file") return null;
  const { nodes } = JSON.parse(insert.manifestJson) as { nodes: readonly JsonObject[] };
  const given = nodes.find(({ node_id }) => node_id === agentId)?.config as JsonObject;
  const usual = config.kind === "executor" && config.longLived ? 0 : TIMEOUT_SECONDS_DEFAULT;
  const seconds = Number(given.timeout_seconds ?? usual);
  return seconds === 0 ? null : seconds * 1_000;
}
