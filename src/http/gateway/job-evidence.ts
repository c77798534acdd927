// GET /jobs/{job_id}/events, /dead-letters: what a job's latest run, or another one of its runs,
// has to show.

import type { FastifyInstance } from "fastify";
import type { JobView } from "../../launch/records.ts";
import { jobNotFound } from "../../launch/runs.ts";
import type { DeadLetter } from "../../runs/dead-letters.ts";
import { renderDeadLetter } from "../core/attention-text.ts";
import { addRoutes, get } from "../core/route.ts";
import { sendHistory } from "./history-page.ts";
import { sendPage } from "./page.ts";
import { eventsView } from "./run-events.ts";
import { findRun, runOfJob } from "./run-source.ts";
import { DeadLetterPageSchema, JobDeadLettersQuery } from "./schemas/attention.ts";
import { EventPageSchema, JobEventsQuery } from "./schemas/evidence.ts";
import type { GatewayServices } from "./services.ts";

const WHICH_RUN = "Of the job's latest run, or of the one that run_id names. A job without runs has none.";

export function jobEvidenceRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { deadLetterRecords } = services;

  addRoutes(api, "jobs", [
    get("/jobs/:job_id/events", {
      operationId: "listJobEvents",
      summary: "List the events of a job's run",
      description: `Oldest first. ${WHICH_RUN} Later pages stay with the run of the first one.`,
      query: JobEventsQuery,
      answers: { 200: EventPageSchema },
      problems: ["run_not_found"],
      handle: async (request, reply) => {
        const { jobId } = await findJob(services, request.params.job_id);
        return sendHistory(services, request, reply, {
          chosen: () => runOfJob(services, jobId, request.query.run_id),
          view: eventsView(request.query),
        });
      },
    }),

    get("/jobs/:job_id/dead-letters", {
      operationId: "listJobDeadLetters",
      summary: "List the messages of a job's run that were not processed",
      description: `Newest first. ${WHICH_RUN} Later pages stay with the run of the first one.`,
      query: JobDeadLettersQuery,
      answers: { 200: DeadLetterPageSchema },
      problems: ["run_not_found"],
      handle: async (request, reply) => {
        const { jobId } = await findJob(services, request.params.job_id);
        const { run_id: runId, status = null } = request.query;
        return sendPage<OfRun>(services, request, reply, {
          async rows(limit, after) {
            const run =
              after === null
                ? await runOfJob(services, jobId, runId)
                : await findRun(services, String(after[0]));
            if (run === null) return [];
            const before = after === null ? null : String(after[1]);
            const page = await deadLetterRecords.deadLetters(run.runtimeJobId, { status, limit, before });
            return { rows: page.rows.map((letter) => ({ runId: run.runId, letter })), isCut: page.isCut };
          },
          positionOf: ({ runId, letter }) => [runId, letter.deadLetterId],
          render: ({ runId, letter }) => renderDeadLetter(runId, letter),
        });
      },
    }),
  ]);
}

interface OfRun {
  readonly runId: string;
  readonly letter: DeadLetter;
}

async function findJob({ records }: GatewayServices, jobId: string): Promise<JobView> {
  const job = await records.job(jobId);
  if (job === null) throw jobNotFound(jobId);
  return job;
}
