// GET /runs/{run_id}/observability-summary: what happened in a run, in numbers.

import type { FastifyInstance } from "fastify";
import type { RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import { readSummary } from "../../runs/history/read-summary.ts";
import type { ObservabilitySummary } from "../../runs/history/summary.ts";
import { addRoutes, get } from "../core/route.ts";
import { findRun, sendJson } from "./run-source.ts";
import { ObservabilitySummarySchema } from "./schemas/summary.ts";
import type { GatewayServices } from "./services.ts";

export function runSummaryRoutes(api: FastifyInstance, services: GatewayServices): void {
  addRoutes(api, "runs", [
    get("/runs/:run_id/observability-summary", {
      operationId: "getObservabilitySummary",
      summary: "Summarise a run",
      description:
        "What happened in a run, in numbers, and where to read on (svc.observability_summary.v1). It is counted while the run goes on: asking for it costs as little as asking for the run.",
      answers: { 200: ObservabilitySummarySchema },
      handle: async (request, reply) => {
        const run = await findRun(services, request.params.run_id);
        return sendJson(reply, JSON.stringify(await summaryOfRun(services, run)));
      },
    }),
  ]);
}

/** The summary of a run as it stands at this moment. */
export function summaryOfRun(services: GatewayServices, run: RunRecord): Promise<ObservabilitySummary> {
  return readSummary(services.journal, summarizedRun(run), services.nowMs());
}
