// The messages of a run that were not processed: GET /runs/{run_id}/dead-letters, …/{dead_letter_id}, and POST …/retry, in
// both APIs; in the gateway also GET /jobs/{job_id}/dead-letters and, over all runs, GET /dead-letters.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import { withoutSealed } from "../../engine/sealed.ts";
import {
  type ChangedBody,
  type DeadLetter,
  type DeadLetterRecords,
  type DeadLetters,
  type LetterOfRun,
  type LetterStatus,
  letterStatuses,
  type Retried,
} from "../../runs/dead-letters.ts";
import { ANONYMOUS } from "../core/auth.ts";
import type { Position } from "../core/page-token.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import {
  type FoundRun,
  findJob,
  findRun,
  type JobParts,
  type RunParts,
  runOfGateway,
  runOfJob,
} from "./find-run.ts";
import { type List, type PageParts, sendJson, sendPage } from "./lists.ts";
import { idempotencyKeyHeader, pageOf, pageQuery, RunId, WHICH_RUN, whichRun } from "./schemas.ts";

export interface Parts {
  readonly deadLetterRecords: DeadLetterRecords;
  readonly deadLetters: DeadLetters;
}

const Status = Type.OneOf(letterStatuses, "Whether it was sent again.");

const Reason = Type.OneOf(
  ["ttl_expired", "target_gone", "mailbox_full", "processing_failed"],
  "Why nobody has it.",
);

const ChangeSchema = Type.Object(
  {
    principal: Type.String("Who has changed it: anonymous, or token for a caller with one."),
    body: Type.Unknown("The body with which it was sent again."),
  },
  "The other body with which it was sent again; null: it was sent as it was, or not yet.",
);

const DeadLetterSchema = Type.Object({
  dead_letter_id: Type.String({ examples: ["dl_01k9z1v7m3e8q2x4c6t8b0n5dk"] }),
  run_id: RunId,
  agent_id: Type.Nullable(Type.String("Whom the message was for.")),
  message: Type.JsonObject("The whole envelope: type, from, to, body and the rest.", {
    message_id: "msg_01k9z1v7m3e8q2x4c6t8b0n5dh_7",
    type: "research_result",
    from: "research",
    to: "writer",
    body: { topic: "bees" },
  }),
  reason: Reason,
  attempts: Type.Integer("How often its processing was tried."),
  status: Status,
  created_at: Type.Time("When it was given up."),
  retried_at: Type.Nullable(Type.Time("When it was sent again; null while it is open.")),
  change: Type.Nullable(ChangeSchema),
});

const DeadLetterPageSchema = pageOf(DeadLetterSchema, "messages that were not processed, newest first");

const DeadLettersQuery = Type.Input({ status: Status, ...pageQuery });

const JobDeadLettersQuery = Type.Input({ ...whichRun, status: Status, ...pageQuery });

const AllDeadLettersQuery = Type.Input({
  status: Type.OneOf(letterStatuses, "open, without it: those that were not sent again."),
  reason: Reason,
  run_id: Type.String("Of this run only."),
  job_id: Type.String("Of the runs of this job only."),
  ...pageQuery,
});

const RetryDeadLetterBody = Type.Input(
  {
    body: Type.Unknown(
      "Sent in place of the message's own, which stays in the record; a mask in it keeps the secret that is there. Without it the message is sent as it was.",
    ),
  },
  { examples: [{ body: { topic: "wasps" } }] },
);

const RetriedSchema = Type.Object(
  {
    run_id: RunId,
    retried: Type.Integer("Letters that were sent again."),
    not_deliverable: Type.Integer(
      "Letters that stay open because they would only be given up again: their agent does not exist, has ended, or has no room.",
    ),
  },
  "Result of the retry.",
);

/** By the names that clients see. */
export const schemas = {
  DeadLetter: DeadLetterSchema,
  DeadLetterPage: DeadLetterPageSchema,
  Retried: RetriedSchema,
  RetryDeadLetter: RetryDeadLetterBody,
};

const AS_NEW =
  "As a new message to the same agent, which may fail again. An agent that had failed for good goes on.";

export function routes(api: Api, parts: Parts): void {
  const { deadLetters } = parts;

  // Sent before the answer is stored: after a crash between the two, a retry finds the letters sent.
  const sendRetried = (
    request: FastifyRequest<{ Params: { run_id: string } }>,
    reply: FastifyReply,
    retry: (run: FoundRun) => Promise<Retried>,
  ) =>
    api.sendOnce(request, reply, async () => {
      const run = await api.findRun(request.params.run_id);
      const { retried, notDeliverable } = await retry(run);
      const body = JSON.stringify({ run_id: run.runId, retried, not_deliverable: notDeliverable });
      return { status: 202, headers: { location: `/api/v1/runs/${run.runId}` }, body };
    });

  api.add("runs", [
    get("/runs/:run_id/dead-letters", {
      operationId: "listRunDeadLetters",
      summary: "List the messages of a run that were not processed",
      description: "Newest first.",
      query: DeadLettersQuery,
      answers: { 200: DeadLetterPageSchema },
      handle: async (request, reply) => {
        const run = await api.findRun(request.params.run_id);
        return api.sendList(request, reply, lettersOf(parts, run, request.query.status ?? null));
      },
    }),
    get("/runs/:run_id/dead-letters/:dead_letter_id", {
      operationId: "getRunDeadLetter",
      summary: "Get one dead letter",
      answers: { 200: DeadLetterSchema },
      handle: async (request, reply) => {
        const run = await api.findRun(request.params.run_id);
        return sendJson(reply, render(run, await deadLetters.find(run, request.params.dead_letter_id)));
      },
    }),
    post("/runs/:run_id/dead-letters/:dead_letter_id/retry", {
      operationId: "retryRunDeadLetter",
      summary: "Send a dead letter again",
      description: AS_NEW,
      headers: idempotencyKeyHeader,
      body: RetryDeadLetterBody,
      answers: { 202: RetriedSchema },
      problems: ["already_retried", "run_ended", "conflict"],
      handle: (request, reply) =>
        sendRetried(request, reply, (run) =>
          deadLetters.retry(run, request.params.dead_letter_id, changeOf(api, request)),
        ),
    }),
    post("/runs/:run_id/dead-letters/retry", {
      operationId: "retryRunDeadLetters",
      summary: "Send every open dead letter of a run again",
      description: `Those that are open now, oldest first. ${AS_NEW}`,
      headers: idempotencyKeyHeader,
      answers: { 202: RetriedSchema },
      problems: ["run_ended"],
      handle: (request, reply) => sendRetried(request, reply, (run) => deadLetters.retryAll(run)),
    }),
  ]);
}

function changeOf(api: Api, request: FastifyRequest): ChangedBody | null {
  if (request.body == null) return null;
  const { body } = api.readBody(request, RetryDeadLetterBody);
  const principal = api.name === "runtime" ? ANONYMOUS : request.principal;
  return body === undefined ? null : { body: body as JsonValue, principal };
}

export function gatewayRoutes(app: FastifyInstance, parts: Parts & RunParts & JobParts & PageParts): void {
  addRoutes(app, "jobs", [
    get("/jobs/:job_id/dead-letters", {
      operationId: "listJobDeadLetters",
      summary: "List the messages of a job's run that were not processed",
      description: `Newest first. ${WHICH_RUN} Later pages stay with the run of the first one.`,
      query: JobDeadLettersQuery,
      answers: { 200: DeadLetterPageSchema },
      problems: ["run_not_found"],
      handle: async (request, reply) => {
        const { jobId } = await findJob(parts, request.params.job_id);
        const { run_id: runId, status = null } = request.query;
        return sendPage<LetterOfRun>(parts, request, reply, {
          async rows(limit, after) {
            const run =
              after === null ? await runOfJob(parts, jobId, runId) : await findRun(parts, String(after[0]));
            if (run === null) return [];
            const list = lettersOf(parts, runOfGateway(parts, run), status);
            const { rows, isCut } = await list.rows(limit, after === null ? null : after.slice(1));
            return { rows: rows.map((letter) => ({ runId: run.runId, letter })), isCut };
          },
          positionOf: ({ runId: ofRun, letter }) => [ofRun, letter.deadLetterId],
          render: renderOfRun,
        });
      },
    }),
  ]);
  addRoutes(app, "runs", [
    get("/dead-letters", {
      operationId: "listDeadLetters",
      summary: "List the messages of all runs that were not processed",
      description: "Newest first; the open ones, unless the status says otherwise.",
      query: AllDeadLettersQuery,
      answers: { 200: DeadLetterPageSchema },
      handle: (request, reply) => {
        const { status = "open", reason = null, run_id: runId = null, job_id: jobId = null } = request.query;
        return sendPage<LetterOfRun>(parts, request, reply, {
          rows: (limit, after) => {
            const before = after === null ? null : String(after[0]);
            return parts.deadLetterRecords.lettersOfRuns({ status, reason, runId, jobId, limit, before });
          },
          positionOf: ({ letter }) => [letter.deadLetterId],
          render: renderOfRun,
        });
      },
    }),
  ]);
}

/** Newest first. */
function lettersOf({ deadLetterRecords }: Parts, run: FoundRun, status: LetterStatus | null) {
  return {
    rows: (limit: number, after: Position | null) =>
      deadLetterRecords.deadLetters(run.jobId, {
        status,
        limit,
        before: after === null ? null : String(after[0]),
      }),
    positionOf: ({ deadLetterId }) => [deadLetterId],
    render: (letter) => render(run, letter),
  } satisfies List<DeadLetter>;
}

const renderOfRun = ({ runId, letter }: LetterOfRun) => render({ runId }, letter);

function render({ runId }: Pick<FoundRun, "runId">, letter: DeadLetter): string {
  return (
    `{"dead_letter_id":${text(letter.deadLetterId)},"run_id":${text(runId)},` +
    `"agent_id":${text(letter.agentId)},"message":${shownJson(letter.messageJson)},"reason":"${letter.reason}",` +
    `"attempts":${letter.attempts},"status":"${letter.status}","created_at":${time(letter.createdAtMs)},` +
    `"retried_at":${time(letter.retriedAtMs)},"change":${letter.changeJson === null ? "null" : shownJson(letter.changeJson)}}`
  );
}

const text = JSON.stringify;
const time = (ms: number | null) => (ms === null ? "null" : `"${isoTime(ms)}"`);

/** Secrets from a run's inputs are encrypted in a message, and masked here. */
function shownJson(json: string): string {
  if (!json.includes('"$sealed"')) return json;
  return JSON.stringify(withoutSealed(JSON.parse(json) as JsonObject));
}
