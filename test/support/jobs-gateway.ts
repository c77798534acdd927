// A gateway for the tests of jobs: two bundles to make jobs of, and the requests that those tests make all the time.

import type { JsonObject } from "../../src/engine/json.ts";
import { type Answer, ask, call, uploadBundle } from "./gateway-api.ts";
import { graph, router, sensor } from "./graphs.ts";
import { startGatewayHere } from "./in-process.ts";
import type { Program } from "./program.ts";

export interface JobsGateway {
  readonly program: Program;
  /** Id of a bundle whose runs complete at once. */
  readonly quick: string;
  /** Id of a bundle whose runs go on until they are cancelled. */
  readonly held: string;
  /** POST /jobs; any status is an answer. */
  create(body: JsonObject): Promise<Answer>;
  /** Creates a job of a bundle. @param more further fields of the job. @returns the job's id */
  jobOf(bundleId: string, more?: JsonObject): Promise<string>;
  /** @param query what follows the job's path, such as "?view=full" */
  get(jobId: string, query?: string): Promise<Answer>;
  remove(jobId: string, ifMatch?: string, query?: string): Promise<Answer>;
  patch(jobId: string, body: unknown, ifMatch?: string): Promise<Answer>;
}

/** Starts the gateway; the caller stops its program. */
export async function startJobsGateway(): Promise<JobsGateway> {
  const program = await startGatewayHere();
  return {
    program,
    quick: await uploadBundle(program, graph("quick", [router("in")])),
    held: await uploadBundle(program, graph("held", [sensor("wait")])),
    create: (body) => ask(program, "POST", "/jobs", { body }),
    jobOf: async (bundleId, more = {}) =>
      String((await call(program, "POST", "/jobs", { bundle_id: bundleId, ...more })).job_id),
    get: (jobId, query = "") => ask(program, "GET", `/jobs/${jobId}${query}`),
    remove: (jobId, ifMatch, query = "") =>
      ask(program, "DELETE", `/jobs/${jobId}${query}`, { headers: onlyIf(ifMatch) }),
    patch: (jobId, body, ifMatch) =>
      ask(program, "PATCH", `/jobs/${jobId}`, { body, headers: onlyIf(ifMatch) }),
  };
}

const onlyIf = (etag: string | undefined) => ({ ...(etag !== undefined && { "if-match": etag }) });
