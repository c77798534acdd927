// The run that a request is about.

import type { RunContext } from "../../runs/history/run-context.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import type { AskedRun } from "../../runs/open-run.ts";
import { ApiError } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

export type RunRequest = { Params: { run_id: string }; Querystring: Record<string, unknown> };

/** @throws ApiError 404 */
export async function findRun({ records }: RuntimeServices, runId: string): Promise<JobRecord> {
  const job = await records.findRun(runId);
  if (job === null) throw new ApiError(404, `Run ${runId} was not found`);
  return job;
}

/** The run that something is asked of. @throws ApiError 404 */
export async function askedRun(services: RuntimeServices, runId: string): Promise<AskedRun> {
  const { jobId, status } = await findRun(services, runId);
  return { runId, jobId, status };
}

/** What the views of its history need to know of a run. */
export function contextOf({ runId, trace }: JobRecord): RunContext {
  return { runId, traceId: trace.traceId, parentSpanId: trace.parentSpanId };
}
