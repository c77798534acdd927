// GET /runs/{run_id}/human, GET /runs/{run_id}/human/{request_id}, POST …/response: what a run's workers ask people.

import type { FastifyInstance } from "fastify";
import type { HumanRequest } from "../../engine/journal.ts";
import type { JsonValue } from "../../engine/json.ts";
import { renderHumanRequest } from "../core/attention-text.ts";
import type { Static } from "../core/type.ts";
import { sendIdempotent } from "./idempotent.ts";
import { sendPage } from "./page.ts";
import { askedRun, sendJson } from "./run-source.ts";
import {
  AnswerHumanBody,
  HumanRequestPageSchema,
  HumanRequestParams,
  HumanRequestSchema,
  HumanRequestsQuery,
} from "./schemas/attention.ts";
import { idempotencyKeyHeader, responses } from "./schemas/common.ts";
import { RunIdParams } from "./schemas/runs.ts";
import type { GatewayServices } from "./services.ts";

type RunRoute = { Params: Static<typeof RunIdParams>; Querystring: Static<typeof HumanRequestsQuery> };
type RequestRoute = { Params: Static<typeof HumanRequestParams> };

export function runHumanRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { attention, humanAnswers } = services;

  api.get<RunRoute>(
    "/runs/:run_id/human",
    {
      schema: {
        operationId: "listHumanRequests",
        tags: ["runs"],
        summary: "List what a run asks people",
        description: "Oldest first. status=pending: what waits for an answer.",
        params: RunIdParams,
        querystring: HumanRequestsQuery,
        response: responses({ 200: HumanRequestPageSchema }, ["invalid_page_token", "run_not_found"]),
      },
    },
    async (request, reply) => {
      const { runId, jobId } = await askedRun(services, request.params.run_id);
      const status = request.query.status ?? null;
      return sendPage<HumanRequest>(services, request, reply, {
        rows: (limit, after) =>
          attention.humanRequests(jobId, { status, limit, afterSeq: Number(after?.[0] ?? 0) }),
        positionOf: (one) => [one.eventSeq],
        render: (one) => renderHumanRequest(runId, one),
      });
    },
  );

  api.get<RequestRoute>(
    "/runs/:run_id/human/:request_id",
    {
      schema: {
        operationId: "getHumanRequest",
        tags: ["runs"],
        summary: "Get one request to people",
        params: HumanRequestParams,
        response: responses({ 200: HumanRequestSchema }, ["run_not_found", "human_request_not_found"]),
      },
    },
    async (request, reply) => {
      const run = await askedRun(services, request.params.run_id);
      const found = await humanAnswers.find(run, request.params.request_id);
      return sendJson(reply, renderHumanRequest(run.runId, found));
    },
  );

  api.post<RequestRoute & { Body: Static<typeof AnswerHumanBody> }>(
    "/runs/:run_id/human/:request_id/response",
    {
      schema: {
        operationId: "answerHumanRequest",
        tags: ["runs"],
        summary: "Answer what a run asks people",
        description:
          "The first answer stands, with who gave it and when; the worker gets it. The same answer of the same caller may be sent again and changes nothing.",
        params: HumanRequestParams,
        headers: idempotencyKeyHeader,
        body: AnswerHumanBody,
        response: responses({ 200: HumanRequestSchema }, [
          "malformed_json",
          "run_not_found",
          "human_request_not_found",
          "already_answered",
          "human_request_timed_out",
          "run_ended",
          "idempotency_key_reused",
          "payload_too_large",
          "unsupported_media_type",
          "validation_failed",
        ]),
      },
    },
    (request, reply) =>
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
  );
}
