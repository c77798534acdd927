// Compares what a node has with what open jobs say it has: processes, attempts, folders of runs, ports of dashboards, services.
//
// - A difference is one that two looks have found, with a while and a commit between them: what begins or ends meanwhile is none.
// - Before something is fixed it is looked up once more, where the node itself looks it up.
// - A node that has its jobs given up, or cannot write, compares nothing: what it has is not what it will have.

import { relative } from "node:path";
import { EngineUnavailable } from "../engine/batch.ts";
import type { Engine } from "../engine/engine.ts";
import { type Clock, type EngineLog, slotsKey } from "../engine/ports.ts";
import type { RunningAttempt, TaskListener, TaskRef } from "../engine/task-port.ts";
import type { LocalTaskRunner } from "../execution/task-runner.ts";
import { Semaphore } from "../lib/async.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { ServiceRegistry } from "../services/registry.ts";

/** Of one answer. */
const DIFFERENCES_MAX = 200;
const LOOK_AGAIN_MS = 1_000;
/** Requests at once, of which one is worked on. */
const ASKED_MAX = 8;
/** Of folders that no run has, from which on it matters whether they are most of all there are. */
const UNKNOWN_RUNS_MIN = 3;

export const differenceKinds = ["process", "attempt", "workspace", "port", "service"] as const;

export interface Difference {
  readonly kind: (typeof differenceKinds)[number];
  readonly where: string;
  readonly what: string;
  /** What a fix does. */
  readonly fix: string;
  readonly isFixed: boolean;
}

export interface Reconciliation {
  readonly differences: readonly Difference[];
  /** Whether there may be more. */
  readonly hasMore: boolean;
}

export interface ReconcilerParts {
  /** SVC_HOME. */
  readonly home: string;
  readonly engine: Pick<Engine, "attempts" | "holds" | "settled" | "unavailable">;
  readonly runner: Pick<LocalTaskRunner, "attempts" | "has" | "stop" | "leftovers">;
  /** The attempts that this node runs for other nodes. */
  readonly foreign: () => readonly RunningAttempt[];
  /** Takes the end of an attempt to its job. */
  readonly reports: Pick<TaskListener, "taskEnded">;
  readonly services: Pick<ServiceRegistry, "jobs" | "jobClosed">;
  /** Which of some ids are those of runs. */
  readonly runsThere: (runIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** The ports on which something listens although their runs have ended. */
  readonly heldPorts: () => Promise<readonly { readonly port: number; readonly runId: string }[]>;
  readonly clock: Clock;
  readonly log: EngineLog;
}

interface Found extends Omit<Difference, "isFixed"> {
  /** Looks it up once more. @returns whether it is no difference any more */
  fixNow(): Promise<boolean>;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #turns = new Semaphore(1);
  #asked = 0;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** @throws EngineUnavailable, JournalUnavailable; DomainError when too many ask */
  async reconcile(fix: boolean): Promise<Reconciliation> {
    if (this.#asked >= ASKED_MAX) {
      throw new DomainError(
        "conflict",
        `${ASKED_MAX} requests to compare this node with its jobs are under way. Try again when they have ended.`,
      );
    }
    this.#asked++;
    try {
      return await this.#turns.run(() => this.#reconcile(fix));
    } finally {
      this.#asked--;
    }
  }

  async #reconcile(fix: boolean): Promise<Reconciliation> {
    const { engine, clock, log } = this.#parts;
    const before = new Set((await this.#look()).found.map(keyOf));
    await new Promise<void>((resolve) => clock.after(LOOK_AGAIN_MS, resolve));
    this.#mustWork();
    // What the first look has seen begin has begun.
    await engine.settled();
    const { found, isComplete } = await this.#look();
    const confirmed = found.filter((one) => before.has(keyOf(one)));
    const differences: Difference[] = [];
    for (const { fixNow, ...difference } of confirmed.slice(0, DIFFERENCES_MAX)) {
      const isFixed = fix && engine.unavailable === null && (await this.#fixed(fixNow));
      if (isFixed) log.warn({ ...difference }, "a difference between this node and its jobs was fixed");
      differences.push({ ...difference, isFixed });
    }
    return { differences, hasMore: !isComplete || confirmed.length > DIFFERENCES_MAX };
  }

  async #fixed(fixNow: Found["fixNow"]): Promise<boolean> {
    try {
      return await fixNow();
    } catch (error) {
      this.#parts.log.warn({ reason: String(error) }, "a difference could not be fixed");
      return false;
    }
  }

  #mustWork(): void {
    const reason = this.#parts.engine.unavailable;
    if (reason !== null) throw new EngineUnavailable(reason);
  }

  async #look(): Promise<{ readonly found: readonly Found[]; readonly isComplete: boolean }> {
    this.#mustWork();
    const processes = await this.#processes();
    const { folders, isComplete } = await this.#folders();
    const ports = await this.#ports();
    // Processes first: they may hold what follows.
    return {
      found: [...processes, ...this.#attempts(), ...this.#services(), ...folders, ...ports],
      isComplete,
    };
  }

  async #processes(): Promise<readonly Found[]> {
    const { leftovers } = this.#parts.runner;
    return (await leftovers.processes()).map((entry) => ({
      kind: "process",
      where: `process ${entry.pid}, started at ${entry.start}`,
      what: "A command of this node has left it running.",
      fix: "It is killed.",
      fixNow: () => leftovers.endProcess(entry),
    }));
  }

  #attempts(): readonly Found[] {
    const { engine, runner, foreign, reports } = this.#parts;
    const isExpected = (ref: TaskRef) =>
      engine.holds(ref.jobId) || foreign().some((other) => slotsKey(other.ref) === slotsKey(ref));
    const orphans = runner.attempts.filter(({ ref }) => !isExpected(ref));
    const own = [...engine.attempts()].filter(({ node }) => node === null);
    const missing = [...own, ...foreign()].filter(({ ref }) => !runner.has(ref));
    return [
      ...orphans.map(
        ({ ref, runId }): Found => ({
          kind: "attempt",
          where: attemptText(runId, ref),
          what: "It runs here, and its job is not open here.",
          fix: "It is stopped.",
          fixNow: async () => {
            if (!isExpected(ref)) runner.stop(ref);
            return true;
          },
        }),
      ),
      ...missing.map(
        ({ ref, runId }): Found => ({
          kind: "attempt",
          where: attemptText(runId, ref),
          what: "Its job waits for it, and nothing runs it here.",
          fix: "It ends as interrupted, and is made again.",
          fixNow: async () => {
            const reason = "Nothing ran it on its node any more.";
            if (!runner.has(ref)) reports.taskEnded(ref, { kind: "interrupted", reason });
            return true;
          },
        }),
      ),
    ];
  }

  #services(): readonly Found[] {
    const { engine, services } = this.#parts;
    const strange = services.jobs.filter(({ jobId }) => !engine.holds(jobId));
    return strange.map(({ jobId, runId }) => ({
      kind: "service",
      where: `run ${runId}`,
      what: "Its services are listed here, and it is not open here.",
      fix: "They are removed from the list.",
      fixNow: async () => {
        if (!engine.holds(jobId)) services.jobClosed(jobId);
        return true;
      },
    }));
  }

  async #folders(): Promise<{ readonly folders: readonly Found[]; readonly isComplete: boolean }> {
    const { home, runner, runsThere, clock } = this.#parts;
    const { leftovers } = runner;
    const { runs, attempts, present, isComplete } = await leftovers.folders(clock.nowMs(), runsThere);
    const isSuspicious = runs.length >= UNKNOWN_RUNS_MIN && runs.length * 2 > present;
    const ofRuns = runs.map(
      (name): Found => ({
        kind: "workspace",
        where: `runs/${name}`,
        what: "The database has no such run.",
        fix: isSuspicious
          ? "Nothing: no run has most folders in runs/. If the database is the right one, `troupe gc --confirm` removes them."
          : "It is removed.",
        async fixNow() {
          return !isSuspicious && !(await runsThere([name])).has(name) && leftovers.removeRun(name);
        },
      }),
    );
    const ofAttempts = attempts.map(
      (path): Found => ({
        kind: "workspace",
        where: relative(home, path),
        what: "The attempt whose files these are does not run.",
        fix: "It is removed.",
        fixNow: () => leftovers.removeAttempt(path),
      }),
    );
    return { folders: [...ofRuns, ...ofAttempts], isComplete };
  }

  async #ports(): Promise<readonly Found[]> {
    const { heldPorts } = this.#parts;
    return (await heldPorts()).map(({ port, runId }) => ({
      kind: "port",
      where: `port ${port}`,
      what: `The run that it was given to, ${runId}, has ended, and something listens on it.`,
      fix: "If one of the processes in this list listens, its end frees the port. Else end the program that does.",
      fixNow: async () => (await heldPorts()).every((one) => one.port !== port),
    }));
  }
}

const keyOf = ({ kind, where, what }: Found) => `${kind} ${where} ${what}`;

/** The runtime's id of a job is not for clients of the gateway. */
const attemptText = (runId: string, { taskSeq, attempt }: TaskRef) =>
  `run ${runId}, task ${taskSeq}, attempt ${attempt}`;
