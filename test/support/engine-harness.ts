// An engine in the hand: a clock that the test moves, commands that the test ends, a journal in memory. For tests
// that need one exact moment; the simulation covers the random ones.

import { schemaProblem } from "../../src/blueprints/json-schema.ts";
import { Engine } from "../../src/engine/engine.ts";
import { idSource } from "../../src/engine/ids.ts";
import { type JobChanges, type Journal, JournalUnavailable } from "../../src/engine/journal.ts";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import { manifestProblemsText, parseManifest } from "../../src/engine/manifest.ts";
import type { Envelope } from "../../src/engine/message.ts";
import type { Clock, Feed, Slots } from "../../src/engine/ports.ts";
import type { ServiceBoard } from "../../src/engine/service-port.ts";
import { defaultTerms } from "../../src/engine/share.ts";
import type { Submission } from "../../src/engine/submission.ts";
import {
  type CommandResult,
  noActions,
  type TaskOutcome,
  type TaskRef,
  type TaskStart,
  type WorkerActions,
} from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { MemoryJournal, type StoredJob } from "./memory-journal.ts";

interface Waiting {
  readonly atMs: number;
  readonly run: () => void;
}

export interface HarnessEvent {
  readonly type: string;
  readonly agent_id: string | null;
  readonly payload: Readonly<Record<string, JsonValue>>;
  readonly error?: JsonObject;
}

/** "unknown" writes nothing and "answer lost" everything, and the engine cannot tell which of them it was. */
export type JournalFault = "unavailable" | "lost" | "unknown" | "answer lost" | "damaged";

export class EngineHarness {
  readonly memory: MemoryJournal;
  engine: Engine;
  /** The pool of the newest engine. */
  slots: PoolSlots;
  /** The steady clock, on which everything waits. */
  nowMs = Date.UTC(2026, 0, 1);
  /** How far somebody has set the wall clock ahead of it, or back. */
  wallAheadMs = 0;
  starts: TaskStart[] = [];
  stops: TaskRef[] = [];
  sends: { ref: TaskRef; envelope: Envelope }[] = [];
  responses: { ref: TaskRef; line: string }[] = [];
  published: string[] = [];
  /** What the board of services was told. */
  readonly told: string[] = [];
  /** When attempts of an earlier owner on other nodes have ended; null: there are no other nodes. */
  endOfFormer: Slots["endOfFormer"] | null = null;
  /** Told of every publication. */
  observer: Feed["published"] = () => {};
  /** What the journal answers next, instead of writing; consumed one per commit. */
  readonly journalFaults: JournalFault[] = [];
  /** Jobs whose parts are never taken; and those that cannot be read. */
  readonly unwritable = new Set<string>();
  readonly unreadable = new Set<string>();
  /** Answers of commits that are made from now on come after this. */
  answersAfter: Promise<void> = Promise.resolve();
  /** How often the end of a damaged job is refused. */
  damagedFaults = 0;
  #waiting: Waiting[] = [];
  #lives = 0;
  readonly #slotCount: number;
  readonly #judge: (slots: PoolSlots, steadyMs: () => number) => void;

  constructor(
    given: {
      readonly slots?: number;
      readonly memory?: MemoryJournal;
      /** Told of the pools of each engine before it has them. */
      readonly judge?: (slots: PoolSlots, steadyMs: () => number) => void;
    } = {},
  ) {
    this.#slotCount = given.slots ?? 2;
    this.#judge = given.judge ?? (() => {});
    this.memory = given.memory ?? new MemoryJournal();
    this.slots = this.#newSlots();
    this.engine = this.#newEngine();
  }

  #newSlots(): PoolSlots {
    let n = 0;
    const slots = new PoolSlots(
      { default: this.#slotCount },
      () => `${this.#lives}-${++n}`,
      () => this.nowMs,
    );
    this.#judge(slots, () => this.nowMs);
    const { endOfFormer } = this;
    return endOfFormer === null ? slots : Object.assign(slots, { endOfFormer });
  }

  #newEngine(): Engine {
    const id = idSource(
      () => this.nowMs,
      () => 0.5,
    );
    return new Engine({
      owner: `owner-${++this.#lives}`,
      clock: this.#clock(),
      randomness: { id, fraction: () => 0.5 },
      journal: this.#journal(),
      runner: {
        start: (task) => this.starts.push(task),
        stop: (ref) => this.stops.push(ref),
        send: (ref, envelope) => this.sends.push({ ref, envelope }),
        respond: (ref, line) => this.responses.push({ ref, line }),
      },
      slots: this.slots,
      feed: {
        published: (jobId, firstSeq, lines, terminal) => {
          this.published.push(...lines);
          this.observer(jobId, firstSeq, lines, terminal);
        },
      },
      schemaProblem,
      services: this.#board(),
      log: { warn: () => {}, error: () => {} },
    });
  }

  #board(): ServiceBoard {
    return {
      jobOpened: () => this.told.push("job opened"),
      jobClosed: () => this.told.push("job closed"),
      agentStarted: (_jobId, { nodeId }) => this.told.push(`${nodeId} started`),
      agentEnded: (_jobId, { nodeId }) => this.told.push(`${nodeId} ended`),
    };
  }

  #clock(): Clock {
    const clock: Clock = {
      nowMs: () => this.nowMs + this.wallAheadMs,
      steadyMs: () => this.nowMs,
      after: (delayMs, run) => {
        const entry = { atMs: this.nowMs + delayMs, run };
        this.#waiting.push(entry);
        return () => {
          this.#waiting = this.#waiting.filter((one) => one !== entry);
        };
      },
      soon: (run) => {
        clock.after(0, run);
      },
    };
    return clock;
  }

  #journal(): Journal {
    return {
      commit: async (batch: readonly JobChanges[]) => {
        const fault = this.journalFaults.shift();
        const { answersAfter } = this;
        if (fault === "unavailable") throw new JournalUnavailable("The disk is full.");
        if (fault === "damaged") throw new JournalUnavailable("The database is damaged.", "damaged");
        if (fault === "unknown") throw new JournalUnavailable("The disk failed.", "unknown");
        if (fault === "lost") {
          await answersAfter;
          return { lost: batch.map(({ jobId }) => jobId), unwritable: [] };
        }
        const answer = await this.memory.commit(batch.filter(({ jobId }) => !this.unwritable.has(jobId)));
        await answersAfter;
        if (fault === "answer lost") throw new JournalUnavailable("The disk failed.", "unknown");
        const refused = batch.filter(({ jobId }) => this.unwritable.has(jobId));
        return { ...answer, unwritable: refused.map(({ jobId }) => ({ jobId, reason: "a key is taken" })) };
      },
      claim: (owner, limit) => this.memory.claim(owner, limit),
      load: async (jobId) => {
        if (this.unreadable.has(jobId)) throw new SyntaxError("a row is no JSON");
        return this.memory.load(jobId);
      },
      failDamaged: async (jobId, owner, render) => {
        if (this.damagedFaults-- > 0) throw new JournalUnavailable("The disk is full.");
        return this.memory.failDamaged(jobId, owner, render);
      },
    };
  }

  /** Lets `count` things happen that are due now, for what never comes to rest by itself. */
  async turns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#waiting.filter(({ atMs }) => atMs <= this.nowMs)[0];
      if (next === undefined) continue;
      this.#waiting = this.#waiting.filter((one) => one !== next);
      // Turns are bounded by the clock, so it must move.
      this.nowMs += 5;
      next.run();
    }
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** A new start on the same journal, without letting anything happen yet. */
  restartOnly(): Promise<number> {
    this.#waiting = [];
    this.slots = this.#newSlots();
    this.engine = this.#newEngine();
    return this.engine.recover();
  }

  /** Does something in `ms`, once the clock is moved so far. */
  in(ms: number, run: () => void): void {
    this.#waiting.push({ atMs: this.nowMs + ms, run });
  }

  /** Lets everything happen that is due, and moves the clock by `ms` while doing so. */
  async advance(ms = 0): Promise<void> {
    const until = this.nowMs + ms;
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#waiting.filter(({ atMs }) => atMs <= until).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#waiting = this.#waiting.filter((one) => one !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
    }
    this.nowMs = until;
  }

  /** @returns the job's id, once the submission is durable and everything that can happen at once has happened */
  submit(manifest: JsonObject): Promise<string> {
    return this.#submit(submissionOf(manifest));
  }

  /** The same for a caller that names the job. */
  submitAs(jobId: string, manifest: JsonObject): Promise<string> {
    const identity = { jobId, runId: `run_${jobId}`, definitionId: jobId };
    return this.#submit({ ...submissionOf(manifest), identity });
  }

  /** The same with more than a manifest. */
  submitWith(manifest: JsonObject, more: Partial<Submission>): Promise<string> {
    return this.#submit({ ...submissionOf(manifest), ...more });
  }

  async #submit(submission: Submission): Promise<string> {
    const submitted = this.engine.submit(submission);
    submitted.catch(() => {});
    await this.advance();
    return (await submitted).jobId;
  }

  /** kill -9 and a new start on the same journal. */
  async restart(): Promise<void> {
    this.#waiting = [];
    this.starts = [];
    this.stops = [];
    this.slots = this.#newSlots();
    this.engine = this.#newEngine();
    const recovered = this.engine.recover();
    await this.advance();
    await recovered;
  }

  async do<T>(work: Promise<T>): Promise<T> {
    work.catch(() => {});
    await this.advance();
    return work;
  }

  async deliver(jobId: string, agentId: string, body: JsonValue, ttlMs: number | null = null) {
    return this.do(
      this.engine.deliver(jobId, { agentId, type: "message", body, correlationId: null, ttlMs }),
    );
  }

  /** Ends the newest attempt of an agent. */
  async end(agentId: string, outcome: TaskOutcome = succeeded()): Promise<void> {
    this.engine.taskEnded(this.started(agentId).ref, outcome);
    await this.advance();
  }

  started(agentId: string): TaskStart {
    const start = this.starts.findLast((one) => one.agentId === agentId);
    if (start === undefined) throw new Error(`nothing was started for ${agentId}`);
    return start;
  }

  job(jobId: string): StoredJob {
    const job = this.memory.jobs.get(jobId);
    if (job === undefined) throw new Error(`${jobId} is not stored`);
    return job;
  }

  status(jobId: string): string {
    return this.job(jobId).progress.status;
  }

  result(jobId: string): JsonValue {
    return JSON.parse(this.job(jobId).progress.resultJson ?? "null") as JsonValue;
  }

  events(jobId: string, type?: string): HarnessEvent[] {
    const events = this.job(jobId).events.map((line) => JSON.parse(line) as HarnessEvent);
    return type === undefined ? events : events.filter((event) => event.type === type);
  }

  processed(jobId: string): Record<string, number> {
    return Object.fromEntries(
      [...this.job(jobId).agents.values()].map((agent) => [agent.agentId, agent.processedMessages]),
    );
  }
}

/** @param manifest without what every manifest has */
export function submissionOf(manifest: JsonObject): Submission {
  const whole = { manifest_version: "1.0", graph_id: "g", ...manifest };
  const parsed = parseManifest(whole);
  if (parsed.kind === "invalid") throw new Error(manifestProblemsText(parsed.problems));
  return {
    graph: parsed.graph,
    identity: null,
    manifestJson: JSON.stringify(whole),
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
    trace: null,
    ...defaultTerms,
  };
}

const command: CommandResult = {
  exitCode: 0,
  signal: null,
  stdout: "",
  stderr: "",
  durationMs: 1,
  usage: null,
};

export function succeeded(actions: Partial<WorkerActions> = {}, observation: JsonValue = null): TaskOutcome {
  return { kind: "succeeded", actions: { ...noActions, ...actions }, command, artifacts: [], observation };
}

export function failed(
  code: Extract<TaskOutcome, { kind: "failed" }>["code"] = "executor.exit_nonzero",
): TaskOutcome {
  return { kind: "failed", code, message: "it failed", command: { ...command, exitCode: 3 }, artifacts: [] };
}

export const interrupted: TaskOutcome = { kind: "interrupted", reason: "stopped" };
