// Recovery: every open job that lost its owner comes back as a job of this one.

import { renderEvent } from "./event.ts";
import { makeFailure } from "./failure.ts";
import type { Job, JobContext } from "./job.ts";
import { recoverJob } from "./job-image.ts";
import type { JobImage, Journal } from "./journal.ts";
import { isObject } from "./json.ts";
import { manifestProblemsText, parseManifest } from "./manifest.ts";
import { countEvent } from "./tally.ts";
import { runSpan } from "./trace.ts";

const CLAIM_MAX = 500;

/** Claims open jobs and yields them one by one, recovered but not yet stepped. */
export async function* claimedJobs(journal: Journal, context: JobContext): AsyncGenerator<Job> {
  for (;;) {
    const ids = await journal.claim(context.owner, CLAIM_MAX);
    if (ids.length === 0) return;
    for (const id of ids) {
      const image = await journal.load(id);
      if (image === null) continue;
      const manifest: unknown = JSON.parse(image.insert.manifestJson);
      const parsed = parseManifest(isObject(manifest) ? manifest : {});
      if (parsed.kind === "valid") yield recoverJob(image, parsed.graph, context);
      else await failUnreadable(image, manifestProblemsText(parsed.problems), journal, context);
    }
  }
}

/** A manifest that this version finds invalid (it was accepted by another) cannot run on: its job fails. */
async function failUnreadable(image: JobImage, problems: string, journal: Journal, context: JobContext) {
  const nowMs = context.clock.nowMs();
  const { runId, trace } = image.insert;
  const eventId = image.progress.eventSeq + 1;
  const place = { runId, traceId: trace.traceId, spanId: runSpan(runId).id, eventId };
  const failure = makeFailure("manifest.invalid", problems, nowMs, place);
  const head = { nowMs, type: "job_failed", agentId: null };
  const payload = { code: failure.code, desc: failure.desc };
  const line = renderEvent(head, payload, failure);
  const tally = { ...image.progress.tally };
  countEvent(tally, { type: head.type, payload, hasFailure: true, chars: line.length });
  await journal.commit([
    {
      jobId: image.jobId,
      owner: context.owner,
      epoch: image.epoch,
      revision: image.revision,
      insert: null,
      progress: {
        ...image.progress,
        status: "failed",
        updatedAtMs: nowMs,
        eventSeq: eventId,
        tally,
        activeExecutors: 0,
        sandboxNames: [],
        lastEventJson: JSON.stringify({ timestamp: failure.occurred_at, type: "job_failed", agent_id: null }),
        failureJson: JSON.stringify(failure),
      },
      agents: [],
      consumed: [],
      messages: [],
      itemsCleared: [],
      items: [],
      tasks: [],
      tasksRemoved: [],
      firstEventSeq: eventId,
      eventLines: [line],
      deadLetters: [],
      deadLettersRetried: [],
      humanRequests: [],
      artifacts: [],
    },
  ]);
}
