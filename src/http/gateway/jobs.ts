// POST /jobs, GET /jobs, GET, PATCH and DELETE /jobs/{job_id}.

import { scheduler } from "node:timers/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import type { CreatedJob } from "../../launch/definitions.ts";
import type { JobSource, JobView } from "../../launch/records.ts";
import { jobNotFound } from "../../launch/runs.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { etagOf, knowsCurrent, notModified, stale, type Versioned } from "../core/etag.ts";
import { invalidParameters, oneMistake } from "../core/problem.ts";
import { addRoutes, get, patch, post, remove } from "../core/route.ts";
import type { Static } from "../core/type.ts";
import { answerIdempotent, sendGiven } from "./idempotent.ts";
import { renderCompactJob, renderFullJob, renderJobAfter } from "./job-detail.ts";
import { sendPage } from "./page.ts";
import { renderJob } from "./render-job.ts";
import { idempotencyKeyHeader, ifMatchHeader, ifNoneMatchHeader, nothing } from "./schemas/common.ts";
import {
  CreateJobBody,
  DeleteJobQuery,
  JobDetailSchema,
  JobPageSchema,
  JobSchema,
  JobsQuery,
  JobViewQuery,
  UpdateJobBody,
} from "./schemas/jobs.ts";
import type { GatewayServices } from "./services.ts";

export function jobRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { records, definitions, secrets } = services;

  addRoutes(api, "jobs", [
    post("/jobs", {
      operationId: "createJob",
      summary: "Create a job",
      description:
        "Keep job_id and ETag: updates and the deletion need both. A job of a blueprint that is not added is `preparing` until its addition has ended, and its ETag changes then.",
      headers: idempotencyKeyHeader,
      body: CreateJobBody,
      answers: { 201: JobSchema },
      problems: ["blueprint_busy", "conflict"],
      handle: async (request, reply) => {
        let created: CreatedJob | null = null;
        const given = await answerIdempotent(services, request, async () => {
          const { name, resolved_configuration: configuration } = request.body;
          const draft = await definitions.prepareCreate({
            source: sourceOf(request.body),
            name: name ?? null,
            configuration: (configuration ?? {}) as JsonObject,
          });
          return async (writes) => {
            created = await draft.insert(writes);
            const { job } = created;
            const etag = etagOf(versioned(job), await renderJobAfter(services, job, null));
            const headers = { location: `/api/v1/jobs/${job.jobId}`, etag };
            return { status: 201, headers, body: renderJob(job, secrets) };
          };
        });
        if (created !== null) definitions.created(created);
        return sendGiven(reply, given);
      },
    }),

    get("/jobs", {
      operationId: "listJobs",
      summary: "List jobs",
      query: JobsQuery,
      answers: { 200: JobPageSchema },
      handle: (request, reply) =>
        sendPage(services, request, reply, {
          rows: (limit, after) =>
            records.jobs({
              includeTerminal: request.query.include_terminal ?? true,
              ...(request.query.blueprint_id !== undefined && { blueprintId: request.query.blueprint_id }),
              limit,
              after: after === null ? null : String(after[0]),
            }),
          positionOf: (job) => [job.jobId],
          render: (job) => renderJob(job, secrets),
        }),
    }),

    get("/jobs/:job_id", {
      operationId: "getJob",
      summary: "Get a job",
      description:
        "The ETag changes with the definition and with its runs; If-Match looks at the definition alone.",
      headers: ifNoneMatchHeader,
      query: JobViewQuery,
      answers: { 200: JobDetailSchema, 304: nothing("The client has this answer already.") },
      problems: ["conflict"],
      handle: async (request, reply) => {
        const job = await find(services, request.params.job_id);
        const { view, include } = request.query;
        if (view !== undefined && include !== undefined && view !== include) {
          const message = "says something else than view, which means the same";
          throw invalidParameters(oneMistake("include", "not_allowed", message));
        }
        const isFull = (view ?? include) === "full";
        const body = await (isFull ? renderFullJob(services, job) : renderCompactJob(services, job));
        const etag = etagOf(versioned(job), body);
        // To hash a long answer takes some milliseconds, and so does to send it.
        if (isFull) await scheduler.yield();
        if (notModified(request, etag)) return reply.code(304).header("etag", etag).send();
        return reply.type("application/json; charset=utf-8").header("etag", etag).send(body);
      },
    }),

    patch("/jobs/:job_id", {
      operationId: "updateJob",
      summary: "Change a job's name or configuration",
      description: "Later runs use the new definition; runs that were accepted before may use either.",
      headers: ifMatchHeader,
      body: UpdateJobBody,
      answers: { 200: JobSchema },
      handle: async (request, reply) => {
        const before = await find(services, request.params.job_id);
        await requireCurrent(services, request, before);
        const { name, resolved_configuration: configuration } = request.body;
        const patch = {
          ...(name !== undefined && { name }),
          ...(configuration !== undefined && { resolved_configuration: configuration as JsonObject | null }),
        };
        const job = await definitions
          .update(before, patch)
          .catch((error) => asStale(services, before, error));
        const etag = await tagOf(services, job);
        return reply
          .type("application/json; charset=utf-8")
          .header("etag", etag)
          .send(renderJob(job, secrets));
      },
    }),

    remove("/jobs/:job_id", {
      operationId: "deleteJob",
      summary: "Delete a job with its runs, their events and files",
      headers: ifMatchHeader,
      query: DeleteJobQuery,
      answers: { 204: nothing("The job is gone.") },
      problems: ["active_runs"],
      handle: async (request, reply) => {
        const before = await find(services, request.params.job_id);
        await requireCurrent(services, request, before);
        const force = request.query.force ?? false;
        await definitions.delete(before, { force }).catch((error) => asStale(services, before, error));
        return reply.code(204).send();
      },
    }),
  ]);
}

export async function find({ records }: GatewayServices, jobId: string): Promise<JobView> {
  const job = await records.job(jobId);
  if (job === null) throw jobNotFound(jobId);
  return job;
}

/** Who lost a race to change a job is told the ETag that won. */
async function asStale(services: GatewayServices, { jobId }: JobView, error: unknown): Promise<never> {
  const isLost = error instanceof DomainError && error.code === "precondition_failed";
  throw isLost ? stale(await tagOf(services, await find(services, jobId))) : error;
}

const versioned = ({ jobId, revision }: JobView): Versioned => ({ id: jobId, revision });

/** The ETag that a GET of the job answers. */
async function tagOf(services: GatewayServices, job: JobView): Promise<string> {
  return etagOf(versioned(job), await renderCompactJob(services, job));
}

/** @throws Problem when the request does not say that it knows the job as it is defined now */
async function requireCurrent(
  services: GatewayServices,
  request: FastifyRequest,
  job: JobView,
): Promise<void> {
  if (!knowsCurrent(request, versioned(job))) throw stale(await tagOf(services, job));
}

/** What to make the job from: exactly one source is named. */
function sourceOf(body: Static<typeof CreateJobBody>): JobSource {
  const { bundle_id: bundleId, blueprint_id: blueprintId } = body;
  if ((bundleId === undefined) === (blueprintId === undefined)) {
    const message = "exactly one of bundle_id and blueprint_id must be given";
    const path = bundleId === undefined ? "/bundle_id" : "/blueprint_id";
    throw new DomainError("validation_failed", `The job cannot be as asked: ${message}.`, [
      { path, code: bundleId === undefined ? "missing" : "not_allowed", message },
    ]);
  }
  if (bundleId !== undefined) return { kind: "bundle", bundleId };
  return { kind: "blueprint", blueprintId: blueprintId ?? "" };
}
