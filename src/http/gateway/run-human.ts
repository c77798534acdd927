// GET /runs/{run_id}/human, GET /runs/{run_id}/human/{request_id}, POST …/response: what a run's workers ask people.

import type { FastifyInstance } from "fastify";
import type { HumanRequest } from "../../engine/journal.ts";
import type { JsonValue } from "../../engine/json.ts";
import { renderHumanRequest } from "../core/attention-text.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { sendIdempotent } from "./idempotent.ts";
import { sendPage } from "./page.ts";
import { askedRun, sendJson } from "./run-source.ts";
import {
  AnswerHumanBody,
  HumanRequestPageSchema,
  HumanRequestSchema,
  HumanRequestsQuery,
} from "./schemas/attention.ts";
import { idempotencyKeyHeader } from "./schemas/common.ts";
import type { GatewayServices } from "./services.ts";

export function runHumanRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { humanRequests, humanAnswers } = services;

  addRoutes(api, "runs", [
    get("/runs/:run_id/human", {
      operationId: "listHumanRequests",
      summary: "List what a run asks people",
      description: "Oldest first. status=pending: what waits for an answer.",
      query: HumanRequestsQuery,
      answers: { 200: HumanRequestPageSchema },
      handle: async (request, reply) => {
        const { runId, jobId } = await askedRun(services, request.params.run_id);
        const status = request.query.status ?? null;
        return sendPage<HumanRequest>(services, request, reply, {
          rows: (limit, after) =>
            humanRequests.humanRequests(jobId, { status, limit, afterSeq: Number(after?.[0] ?? 0) }),
          positionOf: (one) => [one.eventSeq],
          render: (one) => renderHumanRequest(runId, one),
        });
      },
    }),

    get("/runs/:run_id/human/:request_id", {
      operationId: "getHumanRequest",
      summary: "Get one request to people",
      answers: { 200: HumanRequestSchema },
      handle: async (request, reply) => {
        const run = await askedRun(services, request.params.run_id);
        const found = await humanAnswers.find(run, request.params.request_id);
        return sendJson(reply, renderHumanRequest(run.runId, found));
      },
    }),

    post("/runs/:run_id/human/:request_id/response", {
      operationId: "answerHumanRequest",
      summary: "Answer what a run asks people",
      description:
        "The first answer stands, with who gave it and when; the worker gets it. The same answer of the same caller may be sent again and changes nothing.",
      headers: idempotencyKeyHeader,
      body: AnswerHumanBody,
      answers: { 200: HumanRequestSchema },
      problems: ["already_answered", "human_request_timed_out", "run_ended"],
      handle: (request, reply) =>
        sendIdempotent(services, request, reply, async () => {
          const { run_id: runId, request_id: requestId } = request.params;
          const { decision, comment, data } = request.body;
          // Answered outside the promise's transaction: a crash between the two is healed by asking again (A1).
          const answered = await humanAnswers.answer(await askedRun(services, runId), requestId, {
            decision,
            comment: comment ?? null,
            data: (data ?? null) as JsonValue,
            principal: request.principal,
          });
          const body = renderHumanRequest(runId, answered);
          return async () => ({ status: 200, headers: {}, body });
        }),
    }),
  ]);
}
