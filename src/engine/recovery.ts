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

const CLAIM_MAX = 250;
/** Images that are read at once: a few milliseconds. Twice as many are held. */
const READ_AT_ONCE = 50;
/** Jobs that go on before everything else has its turn: a few milliseconds. */
const JOBS_PER_TURN = 20;
/** Before so many jobs go on, all but as many are on disk. */
const JOBS_PER_BATCH = 500;

/** A job as it was left. */
export interface ClaimedJob {
  readonly image: JobImage;
  readonly graph: Graph;
  /** By its owner, so that nothing of it was lost. */
  readonly wasHandedOver: boolean;
}

/** Who recovers jobs. */
export interface Recoverer {
  readonly owner: string;
  /** Jobs that are the owner's, and do not go on yet: an earlier recovery met an error. */
  readonly claimed: string[];
  /** Whether jobs can still go on here. */
  canGoOn(): boolean;
  /** Whether more of them are to. */
  canClaim(): boolean;
  goOn(job: ClaimedJob): void;
  /** Lets everything else have its turn. */
  turn(): Promise<void>;
  /** Resolves once everything that changed until now is on disk. */
  settled(): Promise<void>;
}

/** Claims open jobs until none is left for now, and lets each go on; those that cannot end as failed. */
export async function recoverJobs(ports: EnginePorts, recoverer: Recoverer): Promise<void> {
  let count = 0;
  let written = Promise.resolve();
  for await (const job of claimedJobs(ports, recoverer)) {
    if (!recoverer.canGoOn()) break;
    recoverer.goOn(job);
    count++;
    if (count % JOBS_PER_TURN === 0) await recoverer.turn();
    if (count % JOBS_PER_BATCH !== 0) continue;
    await written;
    written = recoverer.settled();
    // Its error comes behind the next ones.
    written.catch(() => {});
  }
  if (count > 0) await recoverer.settled();
}

/** Yields the jobs one by one. While they go on, those behind them are read, and the next ones claimed. */
async function* claimedJobs(
  ports: EnginePorts,
  { owner, claimed, canGoOn, canClaim }: Recoverer,
): AsyncGenerator<ClaimedJob> {
  const { journal } = ports;
  /** The first of those that are claimed. */
  const reading: { readonly jobId: string; readonly image: Promise<JobImage | null> }[] = [];
  let claiming: Promise<void> | null = null;
  let isLast = false;
  const claim = async () => {
    const jobIds = await journal.claim(owner, CLAIM_MAX);
    claimed.push(...jobIds);
    isLast = jobIds.length === 0;
    claiming = null;
  };
  const read = (jobId: string) => {
    const image = journal.load(jobId);
    // Those behind one that met an error are read again.
    image.catch(() => {});
    reading.push({ jobId, image });
  };
  try {
    while (canGoOn()) {
      if (claiming === null && !isLast && claimed.length <= CLAIM_MAX && canClaim()) {
        claiming = claim();
        // Its error comes once there is nothing else to do.
        claiming.catch(() => {});
      }
      if (reading.length <= READ_AT_ONCE)
        claimed.slice(reading.length, reading.length + READ_AT_ONCE).forEach(read);
      const [first] = reading;
      if (first === undefined) {
        if (claiming === null) return;
        await claiming;
        continue;
      }
      const job = await claimedJob(ports, { jobId: first.jobId, owner }, first.image);
      claimed.shift();
      reading.shift();
      if (job !== null) yield job;
    }
  } finally {
    // What it takes is there for the next recovery.
    await claiming?.catch(() => {});
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
