// Recovery: every open job that lost its owner comes back as a job of this one.

import { failDamagedJob } from "./damaged-job.ts";
import { readJob } from "./job/image.ts";
import { goOnAfterRestart } from "./job/job.ts";
import type { Job, JobContext } from "./job/state.ts";
import { type JobImage, JournalUnavailable } from "./journal.ts";
import { isObject } from "./json.ts";
import { manifestProblemsText, parseManifest } from "./manifest.ts";
import type { EnginePorts } from "./ports.ts";

const CLAIM_MAX = 500;

/** Claims open jobs and yields them one by one, recovered but not yet stepped; those that cannot be end as failed. */
export async function* claimedJobs(ports: EnginePorts, context: JobContext): AsyncGenerator<Job> {
  for (;;) {
    const ids = await ports.journal.claim(context.owner, CLAIM_MAX);
    if (ids.length === 0) return;
    for (const id of ids) {
      const job = await claimedJob(ports, context, id);
      if (job !== null) yield job;
    }
  }
}

async function claimedJob(ports: EnginePorts, context: JobContext, jobId: string): Promise<Job | null> {
  let manifest: unknown;
  let image: JobImage | null;
  try {
    image = await ports.journal.load(jobId);
    if (image === null) return null;
    manifest = JSON.parse(image.insert.manifestJson);
  } catch (error) {
    if (error instanceof JournalUnavailable) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    ports.log.error({ job_id: jobId, reason }, "a job cannot be read and is set aside");
    await failDamagedJob(ports, jobId, `A record of the job cannot be read: ${reason}`);
    return null;
  }
  const parsed = parseManifest(isObject(manifest) ? manifest : {});
  if (parsed.kind === "valid") {
    const job = readJob(image, parsed.graph, context);
    goOnAfterRestart(job);
    return job;
  }
  // It was accepted by another version, and cannot run on with this one.
  await failDamagedJob(ports, jobId, manifestProblemsText(parsed.problems), "manifest.invalid");
  return null;
}
