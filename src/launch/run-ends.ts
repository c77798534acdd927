// Runs that end before the runtime has them: they have no journal, so their history is one terminal event that is made
// from their row, always the same.

import { eventType, renderEvent } from "../engine/event.ts";
import { type Failure, makeFailure } from "../engine/failure.ts";
import type { FailureCode } from "../engine/failure-catalogue.ts";
import type { Clock } from "../engine/ports.ts";
import { countEvent, newTally, readTally, type Tally } from "../engine/tally.ts";
import { runSpan } from "../engine/trace.ts";
import type { EventFeed } from "../runs/feed.ts";
import type { SummarizedRow } from "../runs/history/summary.ts";
import type { EventPage } from "../runs/job-records.ts";
import type { GatewayRecords, RunRecord } from "./records.ts";

export interface RunEndsParts {
  readonly records: GatewayRecords;
  readonly feed: EventFeed;
  readonly clock: Clock;
}

export class RunEnds {
  readonly #parts: RunEndsParts;

  constructor(parts: RunEndsParts) {
    this.#parts = parts;
  }

  /** Makes the failure of a run that is not launched; its terminal event is its only one. */
  makeFailure({ runId, traceId }: RunRecord, code: FailureCode, message: string): Failure {
    const place = { runId, traceId, spanId: runSpan(runId).id, eventId: 1 };
    return makeFailure(code, message, this.#parts.clock.nowMs(), place);
  }

  /** Ends a run that was not launched, and publishes that; unless another program has taken it on since it was read. */
  async failed({ runId, owner }: RunRecord, failure: Failure): Promise<void> {
    const end = { status: "failed", failureJson: JSON.stringify(failure) } as const;
    await this.#end(runId, end, (run) => run.owner === owner);
  }

  /**
   * Ends a run that was not launched, and publishes that. That it was asked for and that it happened are one write: no
   * restart finds it half done.
   * @returns whether it was launched all the same: then it is only noted that it is to be cancelled
   */
  async cancelled(runId: string): Promise<boolean> {
    const run = await this.#end(runId, { status: "cancelled", failureJson: null }, () => true);
    return run?.launched ?? false;
  }

  async #end(
    runId: string,
    end: { readonly status: "failed" | "cancelled"; readonly failureJson: string | null },
    mayEnd: (run: RunRecord) => boolean,
  ): Promise<RunRecord | null> {
    const run = await this.#parts.records.write(async (writes) => {
      const before = await writes.run(runId);
      if (before === null || isOver(before) || !mayEnd(before)) return null;
      const nowMs = this.#parts.clock.nowMs();
      if (end.status === "cancelled") await writes.setDesiredState(runId, "cancelled", nowMs);
      await writes.endUnlaunched(runId, end, nowMs);
      // Another program's journal may have launched it a moment ago: it takes no turn among these writes.
      return writes.run(runId);
    });
    if (run !== null && !run.launched) {
      this.#parts.feed.published(run.runtimeJobId, 1, [terminalLine(run)], true);
    }
    return run;
  }
}

/** The whole history of a run that ended before its launch; null for every other run. */
export function historyOfUnlaunched(run: RunRecord): EventPage | null {
  return !run.launched && isOver(run) ? { firstSeq: 1, lines: [terminalLine(run)] } : null;
}

/** A run as its summary sees it: from its row alone, whether or not the journal ever had it. */
export function summarizedRun(run: RunRecord): SummarizedRow {
  return {
    runId: run.runId,
    status: run.status,
    startedAtMs: run.startedAtMs,
    updatedAtMs: run.finishedAtMs ?? run.updatedAtMs,
    trace: { traceId: run.traceId, parentSpanId: run.parentSpanId },
    eventCount: run.progress.eventCount,
    tally: run.tallyJson === null ? unlaunchedTally(run) : readTally(run.tallyJson),
    failureJson: run.failureJson,
  };
}

/** Of a run that the journal does not have: nothing so far, or the one event that is its whole history. */
function unlaunchedTally(run: RunRecord): Tally {
  const tally = newTally();
  for (const line of historyOfUnlaunched(run)?.lines ?? []) {
    const hasFailure = run.failureJson !== null;
    countEvent(tally, { type: eventType(line), payload: null, hasFailure, chars: line.length });
  }
  return tally;
}

function isOver(run: RunRecord): boolean {
  return run.finishedAtMs !== null;
}

function terminalLine(run: RunRecord): string {
  const head = { nowMs: run.finishedAtMs ?? run.updatedAtMs, type: `job_${run.status}`, agentId: null };
  if (run.failureJson === null) return renderEvent(head, {});
  const failure = JSON.parse(run.failureJson) as Failure;
  return renderEvent(head, { code: failure.code, desc: failure.desc }, failure);
}
