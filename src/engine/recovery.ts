// Recovery: every open job that lost its owner comes back as a job of this one; one that cannot, because of what the
// journal has of it, ends as failed.

import { lastEventJson, lastEventType, renderEvent } from "./event.ts";
import { makeFailure } from "./failure.ts";
import type { FailureCode } from "./failure-catalogue.ts";
import type { Graph } from "./graph.ts";
import { type DamagedJob, type DamagedJobEnd, type JobImage, JournalUnavailable } from "./journal.ts";
import { isObject } from "./json.ts";
import { manifestProblemsText, parseManifest } from "./manifest.ts";
import type { EnginePorts } from "./ports.ts";
import { countEvent } from "./tally.ts";
import { runSpan } from "./trace.ts";

const CLAIM_MAX = 100;
/** Images that are read at once: a few milliseconds. */
const READ_AT_ONCE = 20;

/** A job as it was left. */
export interface ClaimedJob {
  readonly image: JobImage;
  readonly graph: Graph;
  /** By its owner, so that nothing of it was lost. */
  readonly wasHandedOver: boolean;
}

/**
 * Claims open jobs for `owner` and yields them one by one; those that cannot go on end as failed.
 *
 * @param claimed those that an earlier call has claimed and not yielded, because it met an error; has them after this one
 * @param goesOn whether somebody still goes on with what is claimed
 */
export async function* claimedJobs(
  ports: EnginePorts,
  owner: string,
  claimed: string[],
  goesOn: () => boolean,
): AsyncGenerator<ClaimedJob> {
  while (goesOn()) {
    while (claimed.length > 0) {
      const read = claimed
        .slice(0, READ_AT_ONCE)
        .map((jobId) => ({ jobId, image: ports.journal.load(jobId) }));
      // Those behind one that met an error are read again.
      for (const { image } of read) image.catch(() => {});
      for (const { jobId, image } of read) {
        const job = await claimedJob(ports, { jobId, owner }, image);
        claimed.shift();
        if (job !== null) yield job;
      }
    }
    claimed.push(...(await ports.journal.claim(owner, CLAIM_MAX)));
    if (claimed.length === 0) return;
  }
}

/** A job, and who has it. */
export interface OwnedJob {
  readonly jobId: string;
  readonly owner: string;
}

async function claimedJob(
  ports: EnginePorts,
  owned: OwnedJob,
  loading: Promise<JobImage | null>,
): Promise<ClaimedJob | null> {
  const { jobId } = owned;
  let manifest: unknown;
  let image: JobImage | null;
  try {
    image = await loading;
    if (image === null) return null;
    manifest = JSON.parse(image.insert.manifestJson);
  } catch (error) {
    if (error instanceof JournalUnavailable) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    ports.log.error({ job_id: jobId, reason }, "a job cannot be read and is set aside");
    await failDamagedJob(ports, owned, `A record of the job cannot be read: ${reason}`);
    return null;
  }
  const parsed = parseManifest(isObject(manifest) ? manifest : {});
  if (parsed.kind === "valid") {
    // Nobody has continued it since then, even if others claimed it.
    const wasHandedOver = lastEventType(image.progress.lastEventJson) === "job_handed_over";
    return { image, graph: parsed.graph, wasHandedOver };
  }
  // It was accepted by another version, and cannot run on with this one.
  await failDamagedJob(ports, owned, manifestProblemsText(parsed.problems), "manifest.invalid");
  return null;
}

/** The number and the line of the job's last event. */
export interface LastEvent {
  readonly eventSeq: number;
  readonly line: string;
}

/**
 * Ends a job of its owner as failed; its commands are the caller's to stop.
 *
 * @param message what is wrong with it
 * @returns its last event; null when it is over or another's, or when not even its end can be written
 * @throws JournalUnavailable
 */
export async function failDamagedJob(
  { clock, journal, log }: EnginePorts,
  { jobId, owner }: OwnedJob,
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
  const head = { nowMs, type: "job_failed", agentId: null };
  const payload = { code: failure.code, desc: failure.desc };
  const eventLine = renderEvent(head, payload, failure);
  const tally = { ...job.tally };
  countEvent(tally, { type: head.type, payload, hasFailure: true, chars: eventLine.length });
  return {
    nowMs,
    eventLine,
    lastEventJson: lastEventJson(head),
    failureJson: JSON.stringify(failure),
    tally,
  };
}
