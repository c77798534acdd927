// A run as its summary sees it: from its row alone, whether or not the journal ever had it.

import { eventType } from "../engine/event.ts";
import { countEvent, newTally, readTally, type Tally } from "../engine/tally.ts";
import type { SummarizedRow } from "../runs/history/read-summary.ts";
import type { RunRecord } from "./records.ts";
import { historyOfUnlaunched } from "./run-ends.ts";

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
