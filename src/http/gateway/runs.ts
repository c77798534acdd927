// POST /jobs/{job_id}/runs, GET /runs, GET /jobs/{job_id}/runs, GET /runs/{run_id}, PATCH /runs/{run_id}.

import type { FastifyInstance } from "fastify";
import type { JobStatus } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { NewRun } from "../../launch/records.ts";
import { jobNotFound, runNotFound } from "../../launch/runs.ts";
import type { Static } from "../core/type.ts";
import { sendPage } from "./page.ts";
import { renderNewRun, renderRun } from "./render-run.ts";
import { sendJson } from "./run-source.ts";
import { sendStartedRun } from "./run-waits.ts";
import { responses } from "./schemas/common.ts";
import { JobIdParams } from "./schemas/jobs.ts";
import {
  ControlRunBody,
  CreateRunBody,
  JobRunsQuery,
  RunIdParams,
  RunPageSchema,
  RunSchema,
  RunsQuery,
} from "./schemas/runs.ts";
import { startRunHeaders, startRunProblems } from "./schemas/start-run.ts";
import type { GatewayServices } from "./services.ts";

type JobParams = { Params: Static<typeof JobIdParams> };
type RunParams = { Params: Static<typeof RunIdParams> };

export function runRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { records, runs, secrets } = services;

  api.post<JobParams & { Body: Static<typeof CreateRunBody> }>(
    "/jobs/:job_id/runs",
    {
      schema: {
        operationId: "createRun",
        tags: ["runs"],
        summary: "Start a run of a job",
        description:
          "Accepted as soon as it is on disk; the run is prepared and executed afterwards. Acceptance is not completion: follow the run's event stream, get the run again, or wait for its end with `Prefer: wait=N`, which is then answered with 200.",
        params: JobIdParams,
        headers: startRunHeaders,
        body: CreateRunBody,
        response: responses({ 200: RunSchema, 202: RunSchema }, ["job_not_found", ...startRunProblems]),
      },
    },
    (request, reply) => {
      const { inputs, config_overrides: overrides } = request.body;
      return sendStartedRun<NewRun>(services, request, reply, {
        prepare: () =>
          runs.prepare(request.params.job_id, {
            inputs: (inputs ?? {}) as JsonObject,
            configOverrides: (overrides as JsonObject | undefined) ?? null,
            trigger: { kind: "api", id: null },
            trace: parseTraceparent(request.headers.traceparent),
          }),
        answer: (run) => ({
          location: `/api/v1/runs/${run.runId}`,
          body: renderNewRun(run, secrets),
        }),
        started: (run) => runs.accepted(run),
        runOf: (run) => run,
      });
    },
  );

  api.get<{ Querystring: Static<typeof RunsQuery> }>(
    "/runs",
    {
      schema: {
        operationId: "listRuns",
        tags: ["runs"],
        summary: "List runs",
        querystring: RunsQuery,
        response: responses({ 200: RunPageSchema }, ["invalid_page_token"]),
      },
    },
    (request, reply) => listRuns(services, request, reply, request.query.job_id ?? null),
  );

  api.get<JobParams & { Querystring: Static<typeof JobRunsQuery> }>(
    "/jobs/:job_id/runs",
    {
      schema: {
        operationId: "listJobRuns",
        tags: ["runs"],
        summary: "List the runs of a job",
        params: JobIdParams,
        querystring: JobRunsQuery,
        response: responses({ 200: RunPageSchema }, ["invalid_page_token", "job_not_found"]),
      },
    },
    async (request, reply) => {
      const jobId = request.params.job_id;
      if ((await records.job(jobId)) === null) throw jobNotFound(jobId);
      return listRuns(services, request, reply, jobId);
    },
  );

  api.get<RunParams>(
    "/runs/:run_id",
    {
      schema: {
        operationId: "getRun",
        tags: ["runs"],
        summary: "Get a run",
        params: RunIdParams,
        response: responses({ 200: RunSchema }, ["run_not_found"]),
      },
    },
    async (request, reply) => {
      const run = await records.run(request.params.run_id);
      if (run === null) throw runNotFound(request.params.run_id);
      return sendJson(reply, renderRun(run, { secrets, nowMs: services.nowMs() }));
    },
  );

  api.patch<RunParams & { Body: Static<typeof ControlRunBody> }>(
    "/runs/:run_id",
    {
      schema: {
        operationId: "controlRun",
        tags: ["runs"],
        summary: "Pause, resume or cancel a run",
        description:
          "Pausing stops dispatch; a task that is running may finish. Cancelling ends running commands; external actions already performed are not reversed. Asking for what the run already is changes nothing.",
        params: RunIdParams,
        body: ControlRunBody,
        response: responses({ 200: RunSchema }, [
          "malformed_json",
          "run_not_found",
          "invalid_transition",
          "payload_too_large",
          "unsupported_media_type",
          "validation_failed",
        ]),
      },
    },
    async (request, reply) => {
      const run = await runs.control(request.params.run_id, request.body.desired_state);
      return sendJson(reply, renderRun(run, { secrets, nowMs: services.nowMs() }));
    },
  );
}

function listRuns(
  services: GatewayServices,
  request: Parameters<typeof sendPage>[1],
  reply: Parameters<typeof sendPage>[2],
  jobId: string | null,
) {
  const { status } = request.query as { readonly status?: JobStatus };
  const shown = { secrets: services.secrets, nowMs: services.nowMs() };
  return sendPage(services, request, reply, {
    rows: (limit, after) =>
      services.records.runs({
        jobId,
        status: status ?? null,
        limit,
        after: after === null ? null : String(after[0]),
      }),
    positionOf: (run) => [run.runId],
    render: (run) => renderRun(run, shown),
  });
}
