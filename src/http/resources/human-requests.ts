// What a run's workers ask people: GET /runs/{run_id}/human, …/{request_id}, and POST …/response, in both APIs. What is
// stored as JSON text is put into the answer as it is.

import type { FastifyInstance } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { HumanRequest, HumanResponse } from "../../engine/journal.ts";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import {
  answerLimits,
  type GivenAnswer,
  type HumanAnswers,
  type HumanRequestRecords,
  type HumanStatus,
  humanStatuses,
} from "../../runs/human-answers.ts";
import { ANONYMOUS } from "../core/auth.ts";
import type { JsonBody } from "../core/json-body.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { ApiError } from "../core/runtime-errors.ts";
import { type Query, readBody, readOneOf, readWholeNumber } from "../core/runtime-query.ts";
import { Type } from "../core/type.ts";
import { type FoundRun, gatewayRuns, type RunParts, type RuntimeRunParts, runtimeRuns } from "./find-run.ts";
import { type IdempotencyParts, sendIdempotent } from "./idempotent.ts";
import { type List, type PageParts, sendJson, sendList, sendPage } from "./lists.ts";
import { idempotencyKeyHeader, pageOf, pageQuery, RunId } from "./schemas.ts";

export interface Parts {
  readonly humanRequests: HumanRequestRecords;
  readonly humanAnswers: HumanAnswers;
}

const Status = Type.OneOf(
  humanStatuses,
  "pending: nobody has answered. timed_out: the time was over, and the default action was taken.",
);

const Decision = Type.String("What was decided.", { examples: ["approve"] });

const HumanResponseSchema = Type.Object({
  decision: Decision,
  comment: Type.Nullable(Type.String("In the person's own words.")),
  data: Type.Unknown("Any JSON; null without any."),
  principal: Type.Nullable(
    Type.String("Who answered: anonymous, or token for whoever has one; null after the time."),
  ),
  responded_at: Type.Time("When it was answered, or its time was over."),
});

const HumanRequestSchema = Type.Object(
  {
    request_id: Type.String("Unique in the run.", { examples: ["ship"] }),
    run_id: RunId,
    agent_id: Type.String("Whose worker asks.", { examples: ["publisher"] }),
    prompt: Type.String("The question, for people.", { examples: ["Ship version 3?"] }),
    allowed_decisions: Type.Array(Type.String(), "The decisions that are taken; empty: any.", {
      examples: [["approve", "reject"]],
    }),
    status: Status,
    default_action: Type.Nullable(
      Type.String("The decision when the time is over; null: the word timed_out."),
    ),
    created_at: Type.Time("When it was asked."),
    expires_at: Type.Nullable(Type.Time("When its time is over; null: it waits for ever.")),
    response: Type.Nullable(HumanResponseSchema),
  },
  "A question of a worker to people.",
);

const HumanRequestPageSchema = pageOf(HumanRequestSchema, "requests to people, oldest first");

const HumanRequestsQuery = Type.Strict({
  status: Type.Optional(Status),
  ...pageQuery,
});

const AnswerHumanBody = Type.Strict(
  {
    decision: Type.String("One of the request's allowed_decisions, if it has any.", {
      minLength: 1,
      maxLength: answerLimits.decisionCharsMax,
    }),
    comment: Type.Optional(
      Type.Nullable(Type.String("For the worker and people.", { maxLength: answerLimits.commentCharsMax })),
    ),
    data: Type.Optional(
      Type.Unknown(`Any JSON, for the worker; at most ${answerLimits.dataCharsMax} characters.`),
    ),
  },
  { examples: [{ decision: "approve", comment: "Looks good." }] },
);

/** By the names that clients see. */
export const schemas = {
  HumanRequest: HumanRequestSchema,
  HumanRequestPage: HumanRequestPageSchema,
  AnswerHuman: AnswerHumanBody,
};

// --------------------------------------------------------------------------------------------- gateway

export function gatewayRoutes(
  api: FastifyInstance,
  parts: Parts & RunParts & PageParts & IdempotencyParts,
): void {
  const { humanAnswers } = parts;
  const find = gatewayRuns(parts);
  addRoutes(api, "runs", [
    get("/runs/:run_id/human", {
      operationId: "listHumanRequests",
      summary: "List what a run asks people",
      description: "Oldest first. status=pending: what waits for an answer.",
      query: HumanRequestsQuery,
      answers: { 200: HumanRequestPageSchema },
      handle: async (request, reply) => {
        const run = await find(request.params.run_id);
        return sendPage(parts, request, reply, requestsOf(parts, run, request.query.status ?? null));
      },
    }),
    get("/runs/:run_id/human/:request_id", {
      operationId: "getHumanRequest",
      summary: "Get one request to people",
      answers: { 200: HumanRequestSchema },
      handle: async (request, reply) => {
        const run = await find(request.params.run_id);
        return sendJson(reply, render(run, await humanAnswers.find(run, request.params.request_id)));
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
        sendIdempotent(parts, request, reply, async () => {
          const { decision, comment = null, data = null } = request.body;
          const run = await find(request.params.run_id);
          // Answered outside the promise's transaction: a crash between the two is healed by asking again (A1).
          const answered = await humanAnswers.answer(run, request.params.request_id, {
            decision,
            comment,
            data: data as JsonValue,
            principal: request.principal,
          });
          return async () => ({ status: 200, headers: {}, body: render(run, answered) });
        }),
    }),
  ]);
}

// ----------------------------------------------------------------------------------------- runtime API

interface RuntimeRequest {
  Params: { run_id: string; request_id: string };
  Querystring: Query;
  Body?: JsonBody;
}

export function runtimeRoutes(api: FastifyInstance, parts: Parts & RuntimeRunParts): void {
  const { humanAnswers } = parts;
  const find = runtimeRuns(parts);

  api.get<RuntimeRequest>("/runs/:run_id/human", async ({ params, query }, reply) => {
    const status = readOneOf(query, "status", humanStatuses);
    const limit = readWholeNumber(query, "limit");
    return sendList(reply, requestsOf(parts, await find(params.run_id), status), limit);
  });

  api.get<RuntimeRequest>("/runs/:run_id/human/:request_id", async ({ params }, reply) => {
    const run = await find(params.run_id);
    return sendJson(reply, render(run, await humanAnswers.find(run, params.request_id)));
  });

  api.post<RuntimeRequest>("/runs/:run_id/human/:request_id/response", async ({ params, body }, reply) => {
    const given = readAnswer(readBody(body));
    const run = await find(params.run_id);
    return sendJson(reply, render(run, await humanAnswers.answer(run, params.request_id, given)));
  });
}

function readAnswer({ decision, comment = null, data = null }: JsonObject): GivenAnswer {
  if (typeof decision !== "string") throw new ApiError(400, "decision must be a string");
  if (comment !== null && typeof comment !== "string") throw new ApiError(400, "comment must be a string");
  return { decision, comment, data, principal: ANONYMOUS };
}

// ------------------------------------------------------------------------------------------------ both

/** Oldest first. */
function requestsOf({ humanRequests }: Parts, run: FoundRun, status: HumanStatus | null): List<HumanRequest> {
  return {
    rows: (limit, after) =>
      humanRequests.humanRequests(run.jobId, { status, limit, afterSeq: Number(after?.[0] ?? 0) }),
    positionOf: ({ eventSeq }) => [eventSeq],
    render: (one) => render(run, one),
  };
}

const text = JSON.stringify;
const time = (ms: number | null) => (ms === null ? "null" : `"${isoTime(ms)}"`);

function render({ runId }: FoundRun, request: HumanRequest): string {
  const { requestId, agentId, prompt, allowedDecisions, status, defaultAction } = request;
  return (
    `{"request_id":${text(requestId)},"run_id":${text(runId)},"agent_id":${text(agentId)},` +
    `"prompt":${text(prompt)},"allowed_decisions":${text(allowedDecisions)},"status":"${status}",` +
    `"default_action":${text(defaultAction)},"created_at":${time(request.createdAtMs)},` +
    `"expires_at":${time(request.expiresAtMs)},"response":${renderResponse(request.response)}}`
  );
}

function renderResponse(response: HumanResponse | null): string {
  if (response === null) return "null";
  const { decision, comment, dataJson, principal, respondedAtMs } = response;
  return (
    `{"decision":${text(decision)},"comment":${text(comment)},"data":${dataJson ?? "null"},` +
    `"principal":${text(principal)},"responded_at":${time(respondedAtMs)}}`
  );
}
