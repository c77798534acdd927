// The ends of runs as trigger events: run.completed and run.failed, so that one job can follow another.
//
// - An event and the mark that the end was told are one transaction: each end is told once, also across restarts and by several
//   programs. Which ends are to be told is in the records; the feed only says when to look.
// - The end of a run that an event has started is one level deeper than that event. Too deep ones start no runs.

import type { Clock, EngineLog } from "../engine/ports.ts";
import { forEachConcurrent } from "../lib/async.ts";
import type { Emitted, NewEvent, TriggerEvents } from "../schedules/trigger-events.ts";
import type { GatewayRecords, GatewayWrites, UntoldEnd } from "./records.ts";

/** Ends that come meanwhile are told together. */
const SOON_MS = 20;
/** Ends that nobody has seen, such as those of a program that was lost. */
const ROUND_MS = 30_000;
const RETRY_MS = 1_000;
const PAGE = 100;
const AT_ONCE = 16;

/** Types of events that only this program tells. */
export const runEndTypes: readonly string[] = ["run.completed", "run.failed"];
const SOURCE = "troupe";

export interface RunEndEventsParts {
  readonly records: Pick<GatewayRecords, "untoldEnds" | "write">;
  readonly triggerEvents: Pick<TriggerEvents<GatewayWrites>, "prepare" | "insert" | "depthBehind">;
  /** To be called with each event that is on disk. */
  readonly emitted: (emitted: Emitted) => void;
  /** Calls back when a run ends here. @returns how to stop that */
  readonly onEnd: (ended: () => void) => () => void;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class RunEndEvents {
  readonly #parts: RunEndEventsParts;
  #stopListening = () => {};
  #cancelTimer = () => {};
  #wakesAtSteadyMs = Number.POSITIVE_INFINITY;
  #look: Promise<void> = Promise.resolve();
  #isStopped = true;

  constructor(parts: RunEndEventsParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#isStopped = false;
    this.#stopListening = this.#parts.onEnd(() => this.#lookIn(SOON_MS));
    this.#lookIn(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopListening();
    this.#cancelTimer();
    await this.#look;
  }

  #lookIn(delayMs: number): void {
    const { clock } = this.#parts;
    const steadyMs = clock.steadyMs() + delayMs;
    if (this.#isStopped || steadyMs >= this.#wakesAtSteadyMs) return;
    this.#cancelTimer();
    this.#wakesAtSteadyMs = steadyMs;
    this.#cancelTimer = clock.after(delayMs, () => {
      this.#wakesAtSteadyMs = Number.POSITIVE_INFINITY;
      this.#look = this.#look.then(() => this.#lookNow());
    });
  }

  async #lookNow(): Promise<void> {
    const { records, log } = this.#parts;
    try {
      for (let isLast = false; !isLast && !this.#isStopped; ) {
        const ends = await records.untoldEnds(PAGE);
        if (!(await this.#tellTogether(ends)))
          await forEachConcurrent(ends, AT_ONCE, (end) => this.#tell(end));
        isLast = ends.length < PAGE;
      }
      this.#lookIn(ROUND_MS);
    } catch (error) {
      log.warn({ error: String(error) }, "ends of runs cannot be told as events yet");
      this.#lookIn(RETRY_MS);
    }
  }

  /** In one transaction, which most ends need: nobody listens. @returns false when somebody does, and nothing is told */
  #tellTogether(ends: readonly UntoldEnd[]): Promise<boolean> {
    const { records, triggerEvents } = this.#parts;
    return records.write(async (writes) => {
      for (const type of runEndTypes) if ((await writes.events.countListeners(type)) > 0) return false;
      for (const end of ends) {
        const isFirst = await writes.tellEnd(end.runId);
        if (isFirst && end.status !== "cancelled") await triggerEvents.insert(writes, eventOf(end, 0));
      }
      return true;
    });
  }

  async #tell(end: UntoldEnd): Promise<void> {
    const { records, triggerEvents, emitted } = this.#parts;
    const { runId, status, isOfEvent } = end;
    const depth = isOfEvent ? await triggerEvents.depthBehind(runId) : 0;
    const insert = status === "cancelled" ? null : await triggerEvents.prepare(eventOf(end, depth));
    const told = await records.write(async (writes) => {
      const isFirst = await writes.tellEnd(runId);
      return isFirst && insert !== null ? insert(writes) : null;
    });
    if (told !== null) emitted(told);
  }
}

const eventOf = (end: UntoldEnd, depth: number): NewEvent => ({
  eventId: null,
  type: `run.${end.status}`,
  source: SOURCE,
  payloadJson: payloadOf(end),
  depth,
});

/** Result and failure are copied as they are stored; what is not there is null. */
const payloadOf = ({ runId, jobId, blueprintId, status, resultJson, failureJson }: UntoldEnd): string => {
  const head = JSON.stringify({ run_id: runId, job_id: jobId, blueprint_id: blueprintId, status });
  return `${head.slice(0, -1)},"result":${resultJson},"failure":${failureJson}}`;
};
