// Runs of durable jobs: GET /runs, /jobs/{job_id}/runs, GET and PATCH /runs/{run_id}.

import type { FastifyInstance } from "fastify";
import type { JobStatus } from "../../engine/journal.ts";
import { type GatewayRecords, type RunRecord, triggerKinds } from "../../launch/records.ts";
import type { Runs } from "../../launch/runs.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { addRoutes, get, patch } from "../core/route.ts";
import { type Static, Type } from "../core/type.ts";
import { gatewayParameterError } from "./api.ts";
import { findJob, findRun } from "./find-run.ts";
import { type List, type PageParts, sendJson, sendPage } from "./lists.ts";
import { DesiredState, RunSchema, RunSummarySchema, renderRun } from "./run-view.ts";
import { jobStatuses, Priority, pageOf, pageQuery, RunStatus } from "./schemas.ts";

const RunPageSchema = pageOf(RunSchema, "runs, newest first");

const ControlRunBody = Type.Input(
  { desired_state: DesiredState, priority: Priority },
  { description: "One of them at least.", examples: [{ desired_state: "paused" }] },
);

const filters = {
  status: Type.String(
    `In one of these states, separated by commas: ${jobStatuses.join(", ")}. In any without it.`,
    { maxLength: 100, examples: ["failed,cancelled"] },
  ),
  trigger: Type.OneOf(triggerKinds, "Started by this only."),
  rerun_of: Type.String("Runs that repeat this one only."),
  since: Type.Time("Accepted at this time or later; of schedules, due then."),
  until: Type.Time("Accepted before this time; of schedules, due then."),
  q: Type.String(
    "With this text in its id, its job's id or name, or its blueprint's id; upper and lower case are the same. It is looked for in 2,000 runs for each page, which may be short, or empty, and still not be the last one. A whole id of a run or a job is found at once, and alone.",
    { minLength: 1, maxLength: 200, examples: ["digest"] },
  ),
};

const JobRunsQuery = Type.Input({ ...filters, ...pageQuery });

const RunsQuery = Type.Input({
  job_id: Type.String("Runs of this job only."),
  blueprint_id: Type.String("Runs of the jobs of this blueprint only."),
  ...filters,
  ...pageQuery,
});

/** By the names that clients see. */
export const schemas = {
  Run: RunSchema,
  RunStatus,
  DesiredState,
  RunSummary: RunSummarySchema,
  RunPage: RunPageSchema,
  ControlRun: ControlRunBody,
};

export interface Parts extends PageParts {
  readonly records: Pick<GatewayRecords, "job" | "run" | "runs">;
  readonly runs: Runs;
  readonly secrets: ConfigurationSecrets;
  readonly nowMs: () => number;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { runs, secrets, nowMs } = parts;
  const shown = (run: RunRecord) => renderRun(run, { secrets, nowMs: nowMs() });

  addRoutes(api, "runs", [
    get("/runs", {
      operationId: "listRuns",
      summary: "List runs",
      description: "Newest first.",
      query: RunsQuery,
      answers: { 200: RunPageSchema },
      handle: (request, reply) => sendPage(parts, request, reply, runsOf(parts, request.query)),
    }),
    get("/jobs/:job_id/runs", {
      operationId: "listJobRuns",
      summary: "List the runs of a job",
      query: JobRunsQuery,
      answers: { 200: RunPageSchema },
      handle: async (request, reply) => {
        const { jobId } = await findJob(parts, request.params.job_id);
        return sendPage(parts, request, reply, runsOf(parts, { ...request.query, job_id: jobId }));
      },
    }),
    get("/runs/:run_id", {
      operationId: "getRun",
      summary: "Get a run",
      answers: { 200: RunSchema },
      handle: async (request, reply) => sendJson(reply, shown(await findRun(parts, request.params.run_id))),
    }),
    patch("/runs/:run_id", {
      operationId: "controlRun",
      summary: "Pause, resume or cancel a run, or change its priority",
      description:
        "Pausing stops dispatch; a task that is running may finish. Cancelling ends running commands; external actions already performed are not reversed. A new priority is of what waits already, too. Asking for what the run already is changes nothing.",
      body: ControlRunBody,
      answers: { 200: RunSchema },
      problems: ["invalid_transition"],
      handle: async (request, reply) => {
        const { run_id: runId } = request.params;
        const { desired_state: desired, priority } = request.body;
        const prioritized = priority === undefined ? null : await runs.prioritize(runId, priority);
        const controlled = desired === undefined ? prioritized : await runs.control(runId, desired);
        if (controlled === null) throw nothingAsked();
        return sendJson(reply, shown(controlled));
      },
    }),
  ]);
}

const nothingAsked = () =>
  new DomainError("validation_failed", "The request asks for nothing.", [
    { path: "/desired_state", code: "required", message: "this or priority must be given" },
  ]);

/** Newest first. */
function runsOf({ records, secrets, nowMs }: Parts, query: Static<typeof RunsQuery>): List<RunRecord> {
  const asked = {
    jobId: query.job_id ?? null,
    status: statusesOf(query.status),
    blueprintId: query.blueprint_id ?? null,
    trigger: query.trigger ?? null,
    rerunOf: query.rerun_of ?? null,
    sinceMs: query.since === undefined ? null : Date.parse(query.since),
    untilMs: query.until === undefined ? null : Date.parse(query.until),
    text: query.q ?? null,
  };
  const shown = { secrets, nowMs: nowMs() };
  return {
    async rows(limit, after) {
      const { searchedTo, ...page } = await records.runs({
        ...asked,
        limit,
        after: after === null ? null : String(after[0]),
      });
      return searchedTo === undefined ? page : { ...page, behind: [searchedTo] };
    },
    positionOf: ({ runId }) => [runId],
    render: (run) => renderRun(run, shown),
  };
}

/** @returns null for all */
function statusesOf(given: string | undefined): readonly JobStatus[] | null {
  if (given === undefined) return null;
  const asked = new Set(given.split(",").map((name) => name.trim()));
  const known = jobStatuses.filter((status) => asked.delete(status));
  if (asked.size === 0) return known;
  throw gatewayParameterError(
    "status",
    "not_allowed",
    `must be states of runs, separated by commas: ${jobStatuses.join(", ")}`,
  );
}
