// GET /runs/:run_id/human, /runs/:run_id/human/:request_id, POST …/response: what a run's workers ask people.

import type { FastifyInstance } from "fastify";
import type { HumanRequest } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { GivenAnswer } from "../../runs/human-answers.ts";
import { humanStatuses } from "../../runs/human-answers.ts";
import { renderHumanRequest } from "../core/attention-text.ts";
import { ANONYMOUS } from "../core/auth.ts";
import type { JsonBody } from "../core/json-body.ts";
import { textStream } from "../core/text-stream.ts";
import { ApiError, invalidPayload } from "./errors.ts";
import { listText } from "./list-text.ts";
import { readOneOf, readWholeNumber } from "./query.ts";
import { askedRun, type RunRequest } from "./run-source.ts";
import type { RuntimeServices } from "./services.ts";

type AboutRequest = { Params: { run_id: string; request_id: string } };

export function runHumanRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { humanRequests, humanAnswers } = services;

  api.get<RunRequest>("/runs/:run_id/human", async (request, reply) => {
    const status = readOneOf(request.query, "status", humanStatuses);
    const limit = readWholeNumber(request.query, "limit");
    const { runId, jobId } = await askedRun(services, request.params.run_id);
    reply.type("application/json; charset=utf-8");
    return textStream(
      listText<HumanRequest>({
        limit,
        page: (most, last) =>
          humanRequests.humanRequests(jobId, { status, limit: most, afterSeq: last?.eventSeq ?? 0 }),
        render: (one) => renderHumanRequest(runId, one),
      }),
    );
  });

  api.get<AboutRequest>("/runs/:run_id/human/:request_id", async (request, reply) => {
    const run = await askedRun(services, request.params.run_id);
    const found = await humanAnswers.find(run, request.params.request_id);
    return reply.type("application/json; charset=utf-8").send(renderHumanRequest(run.runId, found));
  });

  api.post<AboutRequest & { Body?: JsonBody }>(
    "/runs/:run_id/human/:request_id/response",
    async (request, reply) => {
      const body = request.body?.object;
      if (body == null) throw invalidPayload();
      const given = readAnswer(body);
      const run = await askedRun(services, request.params.run_id);
      const answered = await humanAnswers.answer(run, request.params.request_id, given);
      return reply.type("application/json; charset=utf-8").send(renderHumanRequest(run.runId, answered));
    },
  );
}

function readAnswer(body: JsonObject): GivenAnswer {
  const { decision, comment = null, data = null } = body;
  if (typeof decision !== "string") throw new ApiError(400, "decision must be a string");
  if (comment !== null && typeof comment !== "string") throw new ApiError(400, "comment must be a string");
  return { decision, comment, data, principal: ANONYMOUS };
}
