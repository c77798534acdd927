// GET /runs/{run_id}/dead-letters, …/{dead_letter_id}, and POST …/retry: messages that a run has given up, and another
// chance for them.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { DeadLetter } from "../../runs/attention-records.ts";
import type { Retried } from "../../runs/dead-letters.ts";
import type { AskedRun } from "../../runs/open-run.ts";
import { renderDeadLetter, renderRetried } from "../core/attention-text.ts";
import type { Static } from "../core/type.ts";
import { sendIdempotent } from "./idempotent.ts";
import { sendPage } from "./page.ts";
import { askedRun, sendJson } from "./run-source.ts";
import {
  DeadLetterPageSchema,
  DeadLetterParams,
  DeadLetterSchema,
  DeadLettersQuery,
  RetriedSchema,
} from "./schemas/attention.ts";
import { bodyProblems, idempotencyKeyHeader, responses } from "./schemas/common.ts";
import { RunIdParams } from "./schemas/runs.ts";
import type { GatewayServices } from "./services.ts";

type RunRoute = { Params: Static<typeof RunIdParams> };
type LetterRoute = { Params: Static<typeof DeadLetterParams> };

const AS_NEW =
  "As a new message to the same agent, which may fail again. An agent that had failed for good goes on.";

export function runDeadLetterRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { attention, deadLetters } = services;

  api.get<RunRoute & { Querystring: Static<typeof DeadLettersQuery> }>(
    "/runs/:run_id/dead-letters",
    {
      schema: {
        operationId: "listRunDeadLetters",
        tags: ["runs"],
        summary: "List the messages of a run that were not processed",
        description: "Newest first.",
        params: RunIdParams,
        querystring: DeadLettersQuery,
        response: responses({ 200: DeadLetterPageSchema }, ["invalid_page_token", "run_not_found"]),
      },
    },
    async (request, reply) => {
      const { runId, jobId } = await askedRun(services, request.params.run_id);
      const status = request.query.status ?? null;
      return sendPage<DeadLetter>(services, request, reply, {
        rows: (limit, after) =>
          attention.deadLetters(jobId, { status, limit, before: after === null ? null : String(after[0]) }),
        positionOf: (letter) => [letter.deadLetterId],
        render: (letter) => renderDeadLetter(runId, letter),
      });
    },
  );

  api.get<LetterRoute>(
    "/runs/:run_id/dead-letters/:dead_letter_id",
    {
      schema: {
        operationId: "getRunDeadLetter",
        tags: ["runs"],
        summary: "Get one dead letter",
        params: DeadLetterParams,
        response: responses({ 200: DeadLetterSchema }, ["run_not_found", "dead_letter_not_found"]),
      },
    },
    async (request, reply) => {
      const run = await askedRun(services, request.params.run_id);
      const letter = await deadLetters.find(run, request.params.dead_letter_id);
      return sendJson(reply, renderDeadLetter(run.runId, letter));
    },
  );

  api.post<LetterRoute>(
    "/runs/:run_id/dead-letters/:dead_letter_id/retry",
    {
      schema: {
        operationId: "retryRunDeadLetter",
        tags: ["runs"],
        summary: "Send a dead letter again",
        description: AS_NEW,
        params: DeadLetterParams,
        headers: idempotencyKeyHeader,
        response: responses({ 202: RetriedSchema }, [
          "run_not_found",
          "dead_letter_not_found",
          "already_retried",
          "run_ended",
          "conflict",
          "idempotency_key_reused",
          ...bodyProblems,
        ]),
      },
    },
    (request, reply) =>
      sendRetried(services, request, reply, (run) => deadLetters.retry(run, request.params.dead_letter_id)),
  );

  api.post<RunRoute>(
    "/runs/:run_id/dead-letters/retry",
    {
      schema: {
        operationId: "retryRunDeadLetters",
        tags: ["runs"],
        summary: "Send every open dead letter of a run again",
        description: `Those that are open now, oldest first. ${AS_NEW}`,
        params: RunIdParams,
        headers: idempotencyKeyHeader,
        response: responses({ 202: RetriedSchema }, [
          "run_not_found",
          "run_ended",
          "idempotency_key_reused",
          ...bodyProblems,
        ]),
      },
    },
    (request, reply) => sendRetried(services, request, reply, (run) => deadLetters.retryAll(run)),
  );
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
