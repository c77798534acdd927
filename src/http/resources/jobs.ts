// Durable jobs: POST and GET /jobs; GET, PATCH and DELETE /jobs/{job_id}; and POST …/cancel, …/pause, …/resume, the same
// for every run of the job that has not ended.

import { scheduler } from "node:timers/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { defaultTerms } from "../../engine/share.ts";
import type { CreatedJob, Definitions } from "../../launch/definitions.ts";
import type { DesiredState, GatewayRecords, JobSource, JobView } from "../../launch/records.ts";
import type { Runs } from "../../launch/runs.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { etagOf, knowsCurrent, notModified, stale, type Versioned } from "../core/etag.ts";
import { invalidParameters, oneMistake } from "../core/problem.ts";
import { addRoutes, get, patch, post, remove } from "../core/route.ts";
import { type Static, Type } from "../core/type.ts";
import { findJob } from "./find-run.ts";
import { answerIdempotent, type IdempotencyParts, sendGiven } from "./idempotent.ts";
import {
  JobDetailSchema,
  JobSchema,
  type JobViewParts,
  renderCompactJob,
  renderFullJob,
  renderJob,
  renderJobAfter,
} from "./job-view.ts";
import { type PageParts, sendJson, sendPage, sendPieces } from "./lists.ts";
import {
  idempotencyKeyHeader,
  ifMatchHeader,
  ifNoneMatchHeader,
  pageOf,
  pageQuery,
  RunStatus,
  Weight,
} from "./schemas.ts";

const JobPageSchema = pageOf(JobSchema, "jobs, newest first");

const Name = Type.String("For people.", { minLength: 1, maxLength: 200 });
const Configuration = Type.JsonObject(
  'Laid over the bundle\'s own. Values under keys that look like secrets are stored encrypted; {"$env": "NAME"} is read from the runtime\'s environment at launch.',
  { language: "en" },
);

const CreateJobBody = Type.Input(
  {
    bundle_id: Type.String("An uploaded bundle."),
    blueprint_id: Type.String("A catalog blueprint, in place of bundle_id."),
    name: Name,
    resolved_configuration: Configuration,
    weight: Weight,
  },
  { examples: [{ bundle_id: "bundle_3f1c0a9d2b7e4856", resolved_configuration: { language: "en" } }] },
);

const UpdateJobBody = Type.Input(
  { name: Name, resolved_configuration: Type.Nullable(Configuration), weight: Weight },
  {
    description:
      'A JSON merge patch (RFC 7396): null takes a key away, "********" keeps the secret that is stored.',
    examples: [{ name: "Weekly digest", resolved_configuration: { language: null } }],
  },
);

const JobViewQuery = Type.Input({
  view: Type.OneOf(
    ["compact", "full"],
    "compact, the default, or full, which adds manifest, graph, recent runs and events, and services.",
  ),
  include: Type.OneOf(["compact", "full"], "The same as view."),
});

const JobsQuery = Type.Input({
  limit: Type.Integer("Most items of the whole walk, over all its pages.", { minimum: 1 }),
  include_terminal: Type.Boolean("false leaves out jobs whose latest run has ended.", { default: true }),
  blueprint_id: Type.String("Jobs made from this blueprint only."),
  ...pageQuery,
});

const DeleteJobQuery = Type.Input({
  force: Type.Boolean("Cancels open runs first.", { default: false }),
});

const JobControlSchema = Type.Object({
  job_id: Type.String(),
  runs: Type.Array(
    Type.Object({ run_id: Type.String(), status: RunStatus }),
    "Every run that had not ended, oldest first, and what it comes to by this request.",
  ),
});

/** By the names that clients see. */
export const schemas = {
  Job: JobSchema,
  JobDetail: JobDetailSchema,
  JobPage: JobPageSchema,
  JobControl: JobControlSchema,
  CreateJob: CreateJobBody,
  UpdateJob: UpdateJobBody,
};

export interface Parts extends JobViewParts, PageParts, IdempotencyParts {
  readonly records: Pick<GatewayRecords, "job" | "jobs" | "run" | "latestRun" | "recentRuns">;
  readonly definitions: Definitions;
  readonly runs: Runs;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { records, definitions, runs, secrets } = parts;

  addRoutes(api, "jobs", [
    post("/jobs", {
      operationId: "createJob",
      summary: "Create a job",
      description:
        "Keep job_id and ETag: updates and the deletion need both. A job of a blueprint that is not added is `preparing` until its addition has ended, and its ETag changes then.",
      headers: idempotencyKeyHeader,
      body: CreateJobBody,
      answers: { 201: JobSchema },
      problems: ["blueprint_busy", "resource_unsatisfiable", "conflict"],
      handle: async (request, reply) => {
        let created: CreatedJob | null = null;
        const given = await answerIdempotent(parts, request, async () => {
          const { name = null, resolved_configuration: configuration = {} } = request.body;
          const { weight = defaultTerms.weight } = request.body;
          const draft = await definitions.prepareCreate({
            source: sourceOf(request.body),
            name,
            configuration,
            weight,
          });
          return async (writes) => {
            created = await draft.insert(writes);
            const { job } = created;
            const etag = etagOf(versioned(job), await renderJobAfter(parts, job, null));
            const headers = { location: `/api/v1/jobs/${job.jobId}`, etag };
            return { status: 201, headers, body: renderJob(job, secrets) };
          };
        });
        if (created !== null && !given.isReplay) definitions.created(created);
        return sendGiven(reply, given);
      },
    }),

    get("/jobs", {
      operationId: "listJobs",
      summary: "List jobs",
      query: JobsQuery,
      answers: { 200: JobPageSchema },
      handle: (request, reply) =>
        sendPage(parts, request, reply, {
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
      answers: { 200: JobDetailSchema, 304: Type.Null("The client has this answer already.") },
      problems: ["conflict"],
      handle: async (request, reply) => {
        const job = await findJob(parts, request.params.job_id);
        const { view, include } = request.query;
        if (view !== undefined && include !== undefined && view !== include) {
          const message = "differs from view, which has the same meaning";
          throw invalidParameters(oneMistake("include", "not_allowed", message));
        }
        const isFull = (view ?? include) === "full";
        const body = isFull ? await renderFullJob(parts, job) : await renderCompactJob(parts, job);
        const etag = etagOf(versioned(job), body);
        // Hashing a long answer takes milliseconds, and so does sending it.
        if (isFull) await scheduler.yield();
        if (notModified(request, etag)) return reply.code(304).header("etag", etag).send();
        reply.header("etag", etag);
        return typeof body === "string" ? sendJson(reply, body) : sendPieces(reply, body);
      },
    }),

    patch("/jobs/:job_id", {
      operationId: "updateJob",
      summary: "Change a job's name, weight or configuration",
      description: "Later runs use the new definition; runs that were accepted before may use either.",
      headers: ifMatchHeader,
      body: UpdateJobBody,
      answers: { 200: JobSchema },
      handle: async (request, reply) => {
        const before = await findJob(parts, request.params.job_id);
        await requireCurrent(parts, request, before);
        const job = await definitions
          .update(before, request.body)
          .catch((error) => asStale(parts, before, error));
        const etag = await tagOf(parts, job);
        return sendJson(reply.header("etag", etag), renderJob(job, secrets));
      },
    }),

    remove("/jobs/:job_id", {
      operationId: "deleteJob",
      summary: "Delete a job with its runs, their events and files",
      headers: ifMatchHeader,
      query: DeleteJobQuery,
      answers: { 204: Type.Null("The job is gone.") },
      problems: ["active_runs"],
      handle: async (request, reply) => {
        const before = await findJob(parts, request.params.job_id);
        await requireCurrent(parts, request, before);
        const force = request.query.force ?? false;
        await definitions.delete(before, { force }).catch((error) => asStale(parts, before, error));
        return reply.code(204).send();
      },
    }),
    ...actions.map(({ name, desired, summary }) =>
      post(`/jobs/:job_id/${name}`, {
        operationId: `${name}Job`,
        summary,
        headers: idempotencyKeyHeader,
        answers: { 200: JobControlSchema },
        problems: ["invalid_transition"],
        handle: async (request, reply) => {
          const jobId = request.params.job_id;
          const given = await answerIdempotent(parts, request, async () => async (writes) => {
            const controlled = await runs.askAll(writes, jobId, desired);
            const shown = controlled.map(({ runId, status }) => ({ run_id: runId, status }));
            return { status: 200, headers: {}, body: JSON.stringify({ job_id: jobId, runs: shown }) };
          });
          await runs.settle(jobId);
          return sendGiven(reply, given);
        },
      }),
    ),
  ]);
}

// The desired states of the runs and the stored answer are one transaction; then the runs are changed. If the runtime is
// unavailable or the process dies in between, a retry with the same key finds the answer and changes the runs again.
const actions: readonly {
  readonly name: "cancel" | "pause" | "resume";
  readonly desired: DesiredState;
  readonly summary: string;
}[] = [
  { name: "cancel", desired: "cancelled", summary: "Cancel every open run of a job" },
  { name: "pause", desired: "paused", summary: "Pause every open run of a job" },
  { name: "resume", desired: "running", summary: "Resume every paused run of a job" },
];

/** A change that lost a race is answered with the current ETag. */
async function asStale(parts: Parts, { jobId }: JobView, error: unknown): Promise<never> {
  const isLost = error instanceof DomainError && error.code === "precondition_failed";
  throw isLost ? stale(await tagOf(parts, await findJob(parts, jobId))) : error;
}

const versioned = ({ jobId, revision }: JobView): Versioned => ({ id: jobId, revision });

/** The ETag that a GET of the job answers. */
async function tagOf(parts: Parts, job: JobView): Promise<string> {
  return etagOf(versioned(job), await renderCompactJob(parts, job));
}

/** @throws Problem unless If-Match has the job's current revision */
async function requireCurrent(parts: Parts, request: FastifyRequest, job: JobView): Promise<void> {
  if (!knowsCurrent(request, versioned(job))) throw stale(await tagOf(parts, job));
}

/** What to make the job from: exactly one source is named. */
function sourceOf(body: Static<typeof CreateJobBody>): JobSource {
  const { bundle_id: bundleId, blueprint_id: blueprintId } = body;
  if ((bundleId === undefined) === (blueprintId === undefined)) {
    const message = "exactly one of bundle_id and blueprint_id must be given";
    const path = bundleId === undefined ? "/bundle_id" : "/blueprint_id";
    throw new DomainError("validation_failed", `Invalid job: ${message}.`, [
      { path, code: bundleId === undefined ? "missing" : "not_allowed", message },
    ]);
  }
  if (bundleId !== undefined) return { kind: "bundle", bundleId };
  return { kind: "blueprint", blueprintId: blueprintId ?? "" };
}
