// GET /runs/:run_id/dead-letters, …/:dead_letter_id, and POST …/retry: messages that a run has given up, and another
// chance for them.

import type { FastifyInstance } from "fastify";
import { type DeadLetter, letterStatuses } from "../../runs/dead-letters.ts";
import { renderDeadLetter, renderRetried } from "../core/attention-text.ts";
import { textStream } from "../core/text-stream.ts";
import { listText } from "./list-text.ts";
import { readOneOf, readWholeNumber } from "./query.ts";
import { askedRun, type RunRequest } from "./run-source.ts";
import type { RuntimeServices } from "./services.ts";

type AboutRun = { Params: { run_id: string } };
type AboutLetter = { Params: { run_id: string; dead_letter_id: string } };

export function runDeadLetterRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { deadLetterRecords, deadLetters } = services;

  api.get<RunRequest>("/runs/:run_id/dead-letters", async (request, reply) => {
    const status = readOneOf(request.query, "status", letterStatuses);
    const limit = readWholeNumber(request.query, "limit");
    const { runId, jobId } = await askedRun(services, request.params.run_id);
    reply.type("application/json; charset=utf-8");
    return textStream(
      listText<DeadLetter>({
        limit,
        page: (most, last) =>
          deadLetterRecords.deadLetters(jobId, { status, limit: most, before: last?.deadLetterId ?? null }),
        render: (letter) => renderDeadLetter(runId, letter),
      }),
    );
  });

  api.get<AboutLetter>("/runs/:run_id/dead-letters/:dead_letter_id", async (request, reply) => {
    const run = await askedRun(services, request.params.run_id);
    const letter = await deadLetters.find(run, request.params.dead_letter_id);
    return reply.type("application/json; charset=utf-8").send(renderDeadLetter(run.runId, letter));
  });

  api.post<AboutLetter>("/runs/:run_id/dead-letters/:dead_letter_id/retry", async (request, reply) => {
    const run = await askedRun(services, request.params.run_id);
    const retried = await deadLetters.retry(run, request.params.dead_letter_id);
    return reply.code(202).type("application/json; charset=utf-8").send(renderRetried(run.runId, retried));
  });

  api.post<AboutRun>("/runs/:run_id/dead-letters/retry", async (request, reply) => {
    const run = await askedRun(services, request.params.run_id);
    const retried = await deadLetters.retryAll(run);
    return reply.code(202).type("application/json; charset=utf-8").send(renderRetried(run.runId, retried));
  });
}
