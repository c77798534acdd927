// GET /runs/{run_id}/result, /timeline: what a run came to, and what can be learnt from its history.

import type { FastifyInstance } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { RunRecord } from "../../launch/records.ts";
import { toTimeline } from "../../runs/history/timeline.ts";
import { addRoutes, get } from "../core/route.ts";
import { type HistoryView, sendHistory } from "./history-page.ts";
import { findRun, sendJson } from "./run-source.ts";
import { RunResultSchema, TimelinePageSchema, TimelineQuery } from "./schemas/evidence.ts";
import type { GatewayServices } from "./services.ts";

export function runEvidenceRoutes(api: FastifyInstance, services: GatewayServices): void {
  addRoutes(api, "runs", [
    get("/runs/:run_id/result", {
      operationId: "getRunResult",
      summary: "Get the result of a run",
      description:
        "Answers at any time: a run that has not ended has a status that says so, and no result yet. Review warnings and outputs before you take a completed run for a correct result.",
      answers: { 200: RunResultSchema },
      handle: async (request, reply) => {
        const run = await findRun(services, request.params.run_id);
        return sendJson(reply, renderResult(run, await isPartial(services, run)));
      },
    }),

    get("/runs/:run_id/timeline", {
      operationId: "listRunTimeline",
      summary: "Read the timeline of a run",
      description:
        "The steps of the run, its agents, their tasks and attempts, as records of spans (svc.timeline.v1).",
      query: TimelineQuery,
      answers: { 200: TimelinePageSchema },
      handle: (request, reply) =>
        sendHistory(services, request, reply, {
          chosen: () => findRun(services, request.params.run_id),
          view: timelineView,
        }),
    }),
  ]);
}

async function isPartial({ journal }: GatewayServices, run: RunRecord): Promise<boolean> {
  if (run.status !== "completed") return false;
  return (await journal.find(run.runtimeJobId))?.partial ?? false;
}

export function renderResult(run: RunRecord, partial: boolean): string {
  const finishedAt = run.finishedAtMs === null ? "null" : `"${isoTime(run.finishedAtMs)}"`;
  return (
    `{"run_id":${JSON.stringify(run.runId)},"status":"${run.status}","result":${run.resultJson ?? "null"},` +
    `"failure":${run.failureJson ?? "null"},${partial ? '"partial":true,' : ""}"finished_at":${finishedAt}}`
  );
}

const timelineView: HistoryView = (run, seq, line) => {
  const record = toTimeline(run, seq, line);
  return record === null ? null : JSON.stringify(record);
};
