// Recovery: every open job that lost its owner comes back as a job of this one.

import { renderEvent } from "./event.ts";
import { makeFailure } from "./failure.ts";
import type { Job, JobContext } from "./job.ts";
import { recoverJob } from "./job-image.ts";
import { isObject } from "./json.ts";
import { manifestProblemsText, parseManifest } from "./manifest.ts";
import type { JobImage, Journal } from "./ports.ts";

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
  const failure = makeFailure("manifest.invalid", problems, nowMs);
  const head = { nowMs, type: "job_failed", agentId: null };
  const line = renderEvent(head, { code: failure.code, desc: failure.desc }, failure);
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
        eventSeq: image.progress.eventSeq + 1,
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
      firstEventSeq: image.progress.eventSeq + 1,
      eventLines: [line],
      deadLetters: [],
      artifacts: [],
    },
  ]);
}
