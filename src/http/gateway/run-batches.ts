// POST /jobs/{job_id}/runs:batch: many runs of a job in one commit, each accepted or refused by itself.

import type { FastifyInstance, FastifyRequest } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { GatewayWrites, NewRun } from "../../launch/records.ts";
import type { InsertRun } from "../../launch/runs.ts";
import { Slices } from "../../runs/slices.ts";
import { batchText } from "../core/batch-text.ts";
import type { Effect } from "../core/idempotency.ts";
import { notAnObject } from "../core/json-request.ts";
import { type Problem, problemText } from "../core/problem.ts";
import { problemOf } from "../core/problem-answers.ts";
import { addRoutes, post } from "../core/route.ts";
import { textStream } from "../core/text-stream.ts";
import type { Static } from "../core/type.ts";
import { answerIdempotent, sendGiven } from "./idempotent.ts";
import { allEnded, renderEnded } from "./run-waits.ts";
import { CreateRunBody, CreateRunsBody, StartedRunsSchema } from "./schemas/runs.ts";
import { startRunHeaders, startRunProblems } from "./schemas/start-run.ts";
import type { GatewayServices } from "./services.ts";

type BatchRequest = FastifyRequest<{
  Params: { job_id: string };
  Body: Static<typeof CreateRunsBody>;
}>;

/** What became of an item, as it is kept. */
type Item = { readonly status: number } & (
  | { readonly id: string }
  | { readonly error: Readonly<Record<string, unknown>> }
);

export function runBatchRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { runs, waits } = services;

  addRoutes(api, "runs", [
    // The colon is doubled because a single one would begin a parameter.
    post("/jobs/:job_id/runs::batch", {
      operationId: "createRuns",
      summary: "Start many runs of a job",
      description:
        "Up to 1,000 runs, accepted in one commit. Each item is what starts a single run, and is answered with the status that it would have had alone; a refused one does not affect the others. The Idempotency-Key covers the whole batch. With `Prefer: wait=N` each item whose run has ended carries it.",
      headers: startRunHeaders,
      body: CreateRunsBody,
      answers: { 200: StartedRunsSchema },
      problems: startRunProblems,
      handle: async (request, reply) => {
        const isWaiting = waits.isAsked(reply);
        const fresh: NewRun[] = [];
        const given = await answerIdempotent(services, request, () => prepare(services, request, fresh));
        const launch = () => {
          for (const run of fresh) runs.accepted(run);
        };
        if (!isWaiting) {
          launch();
          return sendGiven(reply, given);
        }
        const { items } = JSON.parse(given.answer.body) as { readonly items: readonly Item[] };
        const runIds = items.flatMap((item) => ("id" in item ? [item.id] : []));
        const made = given.isReplay ? undefined : fresh;
        if (await allEnded(services, reply, { runIds, fresh: made, launch })) {
          reply.header("preference-applied", "wait");
        }
        const text = batchText(items, async (item) => {
          const run = "id" in item ? await renderEnded(services, item.id) : null;
          if (run === null || !("id" in item)) return JSON.stringify(item);
          return `{"status":200,"id":${JSON.stringify(item.id)},"run":${run}}`;
        });
        return sendGiven(reply, given, textStream(text));
      },
    }),
  ]);
}

/** Checks the items. @param fresh filled with the runs that are made */
async function prepare(services: GatewayServices, request: BatchRequest, fresh: NewRun[]): Promise<Effect> {
  const job = await services.runs.jobOf(request.params.job_id);
  const trace = parseTraceparent(request.headers.traceparent);
  const check = request.compileValidationSchema(CreateRunBody, "body");
  const slices = new Slices();
  const prepared: (InsertRun | Problem)[] = [];
  for (const item of request.body.items) {
    if (slices.isOver) await slices.breathe();
    prepared.push(
      await orProblem(async () => {
        if (item === null) throw notAnObject();
        const verdict = check(item) as unknown as true | { readonly error?: Problem };
        if (verdict !== true && verdict.error !== undefined) throw verdict.error;
        const { inputs, config_overrides: overrides } = item as Static<typeof CreateRunBody>;
        return services.runs.prepareOf(job, {
          inputs: (inputs ?? {}) as JsonObject,
          configOverrides: (overrides as JsonObject | undefined) ?? null,
          trigger: { kind: "api", id: null },
          trace,
        });
      }),
    );
  }
  return async (writes) => {
    const items: Item[] = [];
    for (const one of prepared) {
      const run = typeof one === "function" ? await insert(writes, one) : one;
      if ("runId" in run) fresh.push(run);
      items.push("runId" in run ? { status: 202, id: run.runId } : refused(run, request.id));
    }
    return { status: 200, headers: {}, body: JSON.stringify({ items }) };
  };
}

const insert = (writes: GatewayWrites, one: InsertRun) => orProblem(() => writes.apart(() => one(writes)));

/** The server's own trouble is no item's: nothing is started then, and all of it can be sent again. */
async function orProblem<Value>(work: () => Promise<Value>): Promise<Value | Problem> {
  try {
    return await work();
  } catch (error) {
    const problem = problemOf(error);
    if (problem.status >= 500) throw error;
    return problem;
  }
}

function refused(problem: Problem, requestId: string): Item {
  const error = JSON.parse(problemText(problem, requestId)) as Readonly<Record<string, unknown>>;
  return { status: problem.status, error };
}
