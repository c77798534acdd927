// GET /runs/{run_id}/dead-letters, …/{dead_letter_id}, and POST …/retry: messages that a run has given up, and another
// chance for them.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { DeadLetter, Retried } from "../../runs/dead-letters.ts";
import type { AskedRun } from "../../runs/open-run.ts";
import { renderDeadLetter, renderRetried } from "../core/attention-text.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { sendIdempotent } from "./idempotent.ts";
import { sendPage } from "./page.ts";
import { askedRun, sendJson } from "./run-source.ts";
import {
  DeadLetterPageSchema,
  DeadLetterSchema,
  DeadLettersQuery,
  RetriedSchema,
} from "./schemas/attention.ts";
import { idempotencyKeyHeader } from "./schemas/common.ts";
import type { GatewayServices } from "./services.ts";

type RunRoute = { Params: { run_id: string } };

const AS_NEW =
  "As a new message to the same agent, which may fail again. An agent that had failed for good goes on.";

export function runDeadLetterRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { deadLetterRecords, deadLetters } = services;

  addRoutes(api, "runs", [
    get("/runs/:run_id/dead-letters", {
      operationId: "listRunDeadLetters",
      summary: "List the messages of a run that were not processed",
      description: "Newest first.",
      query: DeadLettersQuery,
      answers: { 200: DeadLetterPageSchema },
      handle: async (request, reply) => {
        const { runId, jobId } = await askedRun(services, request.params.run_id);
        const status = request.query.status ?? null;
        return sendPage<DeadLetter>(services, request, reply, {
          rows: (limit, after) =>
            deadLetterRecords.deadLetters(jobId, {
              status,
              limit,
              before: after === null ? null : String(after[0]),
            }),
          positionOf: (letter) => [letter.deadLetterId],
          render: (letter) => renderDeadLetter(runId, letter),
        });
      },
    }),

    get("/runs/:run_id/dead-letters/:dead_letter_id", {
      operationId: "getRunDeadLetter",
      summary: "Get one dead letter",
      answers: { 200: DeadLetterSchema },
      handle: async (request, reply) => {
        const run = await askedRun(services, request.params.run_id);
        const letter = await deadLetters.find(run, request.params.dead_letter_id);
        return sendJson(reply, renderDeadLetter(run.runId, letter));
      },
    }),

    post("/runs/:run_id/dead-letters/:dead_letter_id/retry", {
      operationId: "retryRunDeadLetter",
      summary: "Send a dead letter again",
      description: AS_NEW,
      headers: idempotencyKeyHeader,
      answers: { 202: RetriedSchema },
      problems: ["already_retried", "run_ended", "conflict"],
      handle: (request, reply) =>
        sendRetried(services, request, reply, (run) => deadLetters.retry(run, request.params.dead_letter_id)),
    }),

    post("/runs/:run_id/dead-letters/retry", {
      operationId: "retryRunDeadLetters",
      summary: "Send every open dead letter of a run again",
      description: `Those that are open now, oldest first. ${AS_NEW}`,
      headers: idempotencyKeyHeader,
      answers: { 202: RetriedSchema },
      problems: ["run_ended"],
      handle: (request, reply) => sendRetried(services, request, reply, (run) => deadLetters.retryAll(run)),
    }),
  ]);
}

function sendRetried(
  services: GatewayServices,
  request: FastifyRequest<RunRoute>,
  reply: FastifyReply,
  retry: (run: AskedRun) => Promise<Retried>,
): Promise<FastifyReply> {
  return sendIdempotent(services, request, reply, async () => {
    const run = await askedRun(services, request.params.run_id);
    // Sent outside the promise's transaction: after a crash between the two, the letters are found sent.
    const body = renderRetried(run.runId, await retry(run));
    const location = `/api/v1/runs/${run.runId}`;
    return async () => ({ status: 202, headers: { location }, body });
  });
}
