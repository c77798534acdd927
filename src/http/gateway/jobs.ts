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
import type { Static } from "../core/type.ts";
import { answerIdempotent, sendGiven } from "./idempotent.ts";
import { renderCompactJob, renderFullJob, renderJobAfter } from "./job-detail.ts";
import { sendPage } from "./page.ts";
import { renderJob } from "./render-job.ts";
import {
  bodyProblems,
  idempotencyKeyHeader,
  ifMatchHeader,
  ifNoneMatchHeader,
  nothing,
  responses,
} from "./schemas/common.ts";
import {
  CreateJobBody,
  DeleteJobQuery,
  JobDetailSchema,
  JobIdParams,
  JobPageSchema,
  JobSchema,
  JobsQuery,
  JobViewQuery,
  UpdateJobBody,
} from "./schemas/jobs.ts";
import type { GatewayServices } from "./services.ts";

type JobParams = { Params: Static<typeof JobIdParams> };

export function jobRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { records, definitions, secrets } = services;

  api.post<{ Body: Static<typeof CreateJobBody> }>(
    "/jobs",
    {
      schema: {
        operationId: "createJob",
        tags: ["jobs"],
        summary: "Create a job",
        description:
          "Keep job_id and ETag: updates and the deletion need both. A job of a blueprint that is not added is `preparing` until its addition has ended, and its ETag changes then.",
        headers: idempotencyKeyHeader,
        body: CreateJobBody,
        response: responses({ 201: JobSchema }, [
          "malformed_json",
          "blueprint_busy",
          "conflict",
          "idempotency_key_reused",
          "payload_too_large",
          "unsupported_media_type",
          "validation_failed",
        ]),
      },
    },
    async (request, reply) => {
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
  );

  api.get<{ Querystring: Static<typeof JobsQuery> }>(
    "/jobs",
    {
      schema: {
        operationId: "listJobs",
        tags: ["jobs"],
        summary: "List jobs",
        querystring: JobsQuery,
        response: responses({ 200: JobPageSchema }, ["invalid_page_token"]),
      },
    },
    (request, reply) =>
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
  );

  api.get<JobParams & { Querystring: Static<typeof JobViewQuery> }>(
    "/jobs/:job_id",
    {
      schema: {
        operationId: "getJob",
        tags: ["jobs"],
        summary: "Get a job",
        description:
          "The ETag changes with the definition and with its runs; If-Match looks at the definition alone.",
        params: JobIdParams,
        headers: ifNoneMatchHeader,
        querystring: JobViewQuery,
        response: responses({ 200: JobDetailSchema, 304: nothing("The client has this answer already.") }, [
          "job_not_found",
          "conflict",
        ]),
      },
    },
    async (request, reply) => {
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
  );

  api.patch<JobParams & { Body: Static<typeof UpdateJobBody> }>(
    "/jobs/:job_id",
    {
      schema: {
        operationId: "updateJob",
        tags: ["jobs"],
        summary: "Change a job's name or configuration",
        description: "Later runs use the new definition; runs that were accepted before may use either.",
        params: JobIdParams,
        headers: ifMatchHeader,
        body: UpdateJobBody,
        response: responses({ 200: JobSchema }, [
          "malformed_json",
          "job_not_found",
          "precondition_failed",
          "precondition_required",
          "payload_too_large",
          "unsupported_media_type",
          "validation_failed",
        ]),
      },
    },
    async (request, reply) => {
      const before = await find(services, request.params.job_id);
      await requireCurrent(services, request, before);
      const { name, resolved_configuration: configuration } = request.body;
      const patch = {
        ...(name !== undefined && { name }),
        ...(configuration !== undefined && { resolved_configuration: configuration as JsonObject | null }),
      };
      const job = await definitions.update(before, patch).catch((error) => asStale(services, before, error));
      const etag = await tagOf(services, job);
      return reply.type("application/json; charset=utf-8").header("etag", etag).send(renderJob(job, secrets));
    },
  );

  api.delete<JobParams & { Querystring: Static<typeof DeleteJobQuery> }>(
    "/jobs/:job_id",
    {
      schema: {
        operationId: "deleteJob",
        tags: ["jobs"],
        summary: "Delete a job with its runs, their events and files",
        params: JobIdParams,
        headers: ifMatchHeader,
        querystring: DeleteJobQuery,
        response: responses({ 204: nothing("The job is gone.") }, [
          "job_not_found",
          "active_runs",
          "precondition_failed",
          "precondition_required",
          ...bodyProblems,
        ]),
      },
    },
    async (request, reply) => {
      const before = await find(services, request.params.job_id);
      await requireCurrent(services, request, before);
      const force = request.query.force ?? false;
      await definitions.delete(before, { force }).catch((error) => asStale(services, before, error));
      return reply.code(204).send();
    },
  );
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
