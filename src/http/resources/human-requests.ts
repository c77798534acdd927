// What a run's workers ask people: GET /runs/{run_id}/human, …/{request_id}, and POST …/response, in both APIs; in the
// gateway also GET /human, over all runs. What is stored as JSON text is put into the answer as it is.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { HumanRequest, HumanResponse } from "../../engine/journal.ts";
import type { JsonValue } from "../../engine/json.ts";
import {
  answerLimits,
  type GivenAnswer,
  type HumanAnswers,
  type HumanRequestRecords,
  type HumanStatus,
  humanStatuses,
  type RequestOfRun,
} from "../../runs/human-answers.ts";
import { ANONYMOUS } from "../core/auth.ts";
import type { JsonBody } from "../core/json-body.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { ApiError } from "../core/runtime-errors.ts";
import { readBody } from "../core/runtime-query.ts";
import { type Static, Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import type { FoundRun } from "./find-run.ts";
import { type List, type PageParts, sendJson, sendPage } from "./lists.ts";
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
    Type.String("Who answered: anonymous, or token for a caller with one; null after a timeout."),
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
    data_schema: Type.Unknown(
      "The JSON Schema that the data of an answer is held to; without data, null is. Null: any data is taken.",
    ),
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

const HumanRequestsQuery = Type.Input({ status: Status, ...pageQuery });

const AllHumanRequestsQuery = Type.Input({
  status: Type.OneOf(
    humanStatuses,
    "pending, without it: what can be answered, so only of runs that have not ended.",
  ),
  run_id: Type.String("Of this run only."),
  job_id: Type.String("Of the runs of this job only."),
  ...pageQuery,
});

const AnswerHumanBody = Type.Input(
  {
    decision: Type.String("One of the request's allowed_decisions, if it has any.", {
      minLength: 1,
      maxLength: answerLimits.decisionCharsMax,
    }),
    comment: Type.Nullable(
      Type.String("For the worker and people.", { maxLength: answerLimits.commentCharsMax }),
    ),
    data: Type.Unknown(
      `Any JSON that the request's data_schema allows, for the worker; at most ${answerLimits.dataCharsMax} characters.`,
    ),
  },
  { required: ["decision"], examples: [{ decision: "approve", comment: "Looks good." }] },
);

/** By the names that clients see. */
export const schemas = {
  HumanRequest: HumanRequestSchema,
  HumanRequestPage: HumanRequestPageSchema,
  AnswerHuman: AnswerHumanBody,
};

export function routes(api: Api, parts: Parts): void {
  const { humanAnswers } = parts;
  api.add("runs", [
    get("/runs/:run_id/human", {
      operationId: "listHumanRequests",
      summary: "List what a run asks people",
      description: "Oldest first. status=pending: what waits for an answer.",
      query: HumanRequestsQuery,
      answers: { 200: HumanRequestPageSchema },
      handle: async (request, reply) => {
        const run = await api.findRun(request.params.run_id);
        return api.sendList(request, reply, requestsOf(parts, run, request.query.status ?? null));
      },
    }),
    get("/runs/:run_id/human/:request_id", {
      operationId: "getHumanRequest",
      summary: "Get one request to people",
      answers: { 200: HumanRequestSchema },
      handle: async (request, reply) => {
        const run = await api.findRun(request.params.run_id);
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
        // Answered before the answer is stored: after a crash between the two, the same answer may be given again.
        api.sendOnce(request, reply, async () => {
          const given = api.name === "runtime" ? readAnswer(request.body) : answerOf(request);
          const run = await api.findRun(request.params.run_id);
          const answered = await humanAnswers.answer(run, request.params.request_id, given);
          return { status: 200, headers: {}, body: render(run, answered) };
        }),
    }),
  ]);
}

export function gatewayRoutes(app: FastifyInstance, parts: Parts & PageParts): void {
  addRoutes(app, "runs", [
    get("/human", {
      operationId: "listAllHumanRequests",
      summary: "List what all runs ask people",
      description: "Oldest first; those that wait for an answer, unless the status says otherwise.",
      query: AllHumanRequestsQuery,
      answers: { 200: HumanRequestPageSchema },
      handle: (request, reply) => {
        const { status = "pending", run_id: runId = null, job_id: jobId = null } = request.query;
        return sendPage<RequestOfRun>(parts, request, reply, {
          rows: (limit, position) => {
            const [createdAtMs, lastRunId, eventSeq] = position ?? [];
            const after =
              position === null
                ? null
                : {
                    createdAtMs: Number(createdAtMs),
                    runId: String(lastRunId),
                    eventSeq: Number(eventSeq),
                  };
            return parts.humanRequests.requestsOfRuns({ status, runId, jobId, limit, after });
          },
          positionOf: ({ runId: ofRun, request: one }) => [one.createdAtMs, ofRun, one.eventSeq],
          render: ({ runId: ofRun, request: one }) => render({ runId: ofRun }, one),
        });
      },
    }),
  ]);
}

function answerOf({
  body,
  principal,
}: FastifyRequest<{ Body: Static<typeof AnswerHumanBody> }>): GivenAnswer {
  const { decision, comment = null, data = null } = body;
  return { decision, comment, data: data as JsonValue, principal };
}

/** In the runtime API, where no schema has checked the body. */
function readAnswer(body: unknown): GivenAnswer {
  const { decision, comment = null, data = null } = readBody(body as JsonBody | undefined);
  if (typeof decision !== "string") throw new ApiError(400, "decision must be a string");
  if (comment !== null && typeof comment !== "string") throw new ApiError(400, "comment must be a string");
  return { decision, comment, data, principal: ANONYMOUS };
}

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

function render({ runId }: Pick<FoundRun, "runId">, request: HumanRequest): string {
  const { requestId, agentId, prompt, allowedDecisions, dataSchemaJson, status, defaultAction } = request;
  return (
    `{"request_id":${text(requestId)},"run_id":${text(runId)},"agent_id":${text(agentId)},` +
    `"prompt":${text(prompt)},"allowed_decisions":${text(allowedDecisions)},` +
    `"data_schema":${dataSchemaJson ?? "null"},"status":"${status}",` +
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
