// POST /jobs/{job_id}/runs, GET /runs, GET /jobs/{job_id}/runs, GET /runs/{run_id}, PATCH /runs/{run_id}.

import type { FastifyInstance } from "fastify";
import type { JobStatus } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { NewRun } from "../../launch/records.ts";
import { jobNotFound, runNotFound } from "../../launch/runs.ts";
import { addRoutes, get, patch, post } from "../core/route.ts";
import { sendPage } from "./page.ts";
import { renderNewRun, renderRun } from "./render-run.ts";
import { sendJson } from "./run-source.ts";
import { sendStartedRun } from "./run-waits.ts";
import {
  ControlRunBody,
  CreateRunBody,
  JobRunsQuery,
  RunPageSchema,
  RunSchema,
  RunsQuery,
} from "./schemas/runs.ts";
import { startRunHeaders, startRunProblems } from "./schemas/start-run.ts";
import type { GatewayServices } from "./services.ts";

export function runRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { records, runs, secrets } = services;

  addRoutes(api, "runs", [
    post("/jobs/:job_id/runs", {
      operationId: "createRun",
      summary: "Start a run of a job",
      description:
        "Accepted as soon as it is on disk; the run is prepared and executed afterwards. Acceptance is not completion: follow the run's event stream, get the run again, or wait for its end with `Prefer: wait=N`, which is then answered with 200.",
      headers: startRunHeaders,
      body: CreateRunBody,
      answers: { 200: RunSchema, 202: RunSchema },
      problems: startRunProblems,
      handle: (request, reply) => {
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
    }),

    get("/runs", {
      operationId: "listRuns",
      summary: "List runs",
      query: RunsQuery,
      answers: { 200: RunPageSchema },
      handle: (request, reply) => listRuns(services, request, reply, request.query.job_id ?? null),
    }),

    get("/jobs/:job_id/runs", {
      operationId: "listJobRuns",
      summary: "List the runs of a job",
      query: JobRunsQuery,
      answers: { 200: RunPageSchema },
      handle: async (request, reply) => {
        const jobId = request.params.job_id;
        if ((await records.job(jobId)) === null) throw jobNotFound(jobId);
        return listRuns(services, request, reply, jobId);
      },
    }),

    get("/runs/:run_id", {
      operationId: "getRun",
      summary: "Get a run",
      answers: { 200: RunSchema },
      handle: async (request, reply) => {
        const run = await records.run(request.params.run_id);
        if (run === null) throw runNotFound(request.params.run_id);
        return sendJson(reply, renderRun(run, { secrets, nowMs: services.nowMs() }));
      },
    }),

    patch("/runs/:run_id", {
      operationId: "controlRun",
      summary: "Pause, resume or cancel a run",
      description:
        "Pausing stops dispatch; a task that is running may finish. Cancelling ends running commands; external actions already performed are not reversed. Asking for what the run already is changes nothing.",
      body: ControlRunBody,
      answers: { 200: RunSchema },
      problems: ["invalid_transition"],
      handle: async (request, reply) => {
        const run = await runs.control(request.params.run_id, request.body.desired_state);
        return sendJson(reply, renderRun(run, { secrets, nowMs: services.nowMs() }));
      },
    }),
  ]);
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
