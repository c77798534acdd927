// The end of a job that cannot go on because of what stands in the journal.

import { renderEvent } from "./event.ts";
import { makeFailure } from "./failure.ts";
import type { FailureCode } from "./failure-catalogue.ts";
import type { DamagedJob, DamagedJobEnd, Journal } from "./journal.ts";
import { JournalUnavailable } from "./journal.ts";
import type { Clock, EngineLog } from "./ports.ts";
import { countEvent } from "./tally.ts";
import { runSpan } from "./trace.ts";

interface Parts {
  readonly owner: string;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly log: EngineLog;
}

/** The number and the line of the job's last event. */
export interface LastEvent {
  readonly eventSeq: number;
  readonly line: string;
}

/**
 * Ends a job of this owner as failed; its commands are the caller's to stop.
 *
 * @param message what is wrong with it
 * @returns its last event; null when it is over or another's, or when not even its end can be written
 * @throws JournalUnavailable
 */
export async function failDamagedJob(
  { owner, clock, journal, log }: Parts,
  jobId: string,
  message: string,
  code: FailureCode = "runtime.record_damaged",
): Promise<LastEvent | null> {
  let line = "";
  const render = (job: DamagedJob): DamagedJobEnd => {
    const end = endOf(job, code, message, clock.nowMs());
    line = end.eventLine;
    return end;
  };
  try {
    const eventSeq = await journal.failDamaged(jobId, owner, render);
    return eventSeq === null ? null : { eventSeq, line };
  } catch (error) {
    if (error instanceof JournalUnavailable) throw error;
    log.error(
      { job_id: jobId, reason: String(error) },
      "the end of a damaged job cannot be written; it stays open",
    );
    return null;
  }
}

function endOf(job: DamagedJob, code: FailureCode, message: string, nowMs: number): DamagedJobEnd {
  const { runId, trace } = job;
  const place = { runId, traceId: trace.traceId, spanId: runSpan(runId).id, eventId: job.eventSeq + 1 };
  const failure = makeFailure(code, message, nowMs, place);
  const type = "job_failed";
  const payload = { code: failure.code, desc: failure.desc };
  const eventLine = renderEvent({ nowMs, type, agentId: null }, payload, failure);
  const tally = { ...job.tally };
  countEvent(tally, { type, payload, hasFailure: true, chars: eventLine.length });
  return {
    nowMs,
    eventLine,
    lastEventJson: JSON.stringify({ timestamp: failure.occurred_at, type, agent_id: null }),
    failureJson: JSON.stringify(failure),
    tally,
  };
}
