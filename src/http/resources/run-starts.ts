// Starts of runs of a durable job: POST /jobs/{job_id}/runs, and /jobs/{job_id}/runs:batch for many in one commit, each
// accepted or refused by itself. A start may wait for the end (`Prefer: wait`).

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isTerminal } from "../../engine/journal.ts";
import { defaultTerms } from "../../engine/share.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { GatewayRecords, GatewayWrites, NewRun } from "../../launch/records.ts";
import type { InsertRun, Runs } from "../../launch/runs.ts";
import { Slices } from "../../lib/slices.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import type { Effect } from "../core/idempotency.ts";
import { notAnObject } from "../core/json-body.ts";
import { type Problem, problemText } from "../core/problem.ts";
import { problemOf } from "../core/problem-answers.ts";
import type { ProblemCode } from "../core/problem-codes.ts";
import { addRoutes, post } from "../core/route.ts";
import { textStream } from "../core/text-stream.ts";
import { type Static, Type } from "../core/type.ts";
import {
  answerIdempotent,
  answerStarted,
  type IdempotencyParts,
  type Start,
  sendGiven,
} from "./idempotent.ts";
import { BATCH_ITEMS_MAX, batchText } from "./lists.ts";
import { RunSchema, renderNewRun, renderRun } from "./run-view.ts";
import { idempotencyKeyHeader, Priority, ProblemSchema } from "./schemas.ts";
import type { Waits } from "./waits.ts";

export const runInputs = Type.JsonObject(
  'One body for every entrypoint, in place of the manifest\'s initial_inputs; {} leaves those. {"$entrypoints": {"id": [bodies]}} addresses entrypoints one by one.',
  { topic: "bees" },
);

export const rerunOf = Type.String(
  "The run that this one repeats, of the same job or blueprint. What is not given of inputs and config_overrides is that run's, its secrets included.",
  { minLength: 1, maxLength: 200, examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] },
);

const CreateRunBody = Type.Input(
  {
    inputs: runInputs,
    config_overrides: Type.JsonObject(
      "For jobs made from a catalog blueprint only: laid over the job's configuration. The run, and the job from then on, use the blueprint's package as it is now.",
    ),
    priority: Priority,
    rerun_of: rerunOf,
  },
  { examples: [{ inputs: { topic: "bees" } }] },
);

const CreateRunsBody = Type.Input(
  {
    items: Type.Array(
      // Of any type here: what is wrong with one item is that item's answer.
      Type.Unknown(
        "What starts one run: inputs, config_overrides, priority and rerun_of, as in the start of a single run.",
        {
          examples: [{ inputs: { topic: "bees" } }],
        },
      ),
      { maxItems: BATCH_ITEMS_MAX },
    ),
  },
  {
    required: ["items"],
    examples: [{ items: [{ inputs: { topic: "bees" } }, { inputs: { topic: "wasps" } }] }],
  },
);

const StartedItem = Type.Object({
  status: Type.Integer(
    "What the item would have been answered with alone: 202 when its run was accepted, 200 when it was waited for and has ended, 4xx when it was refused.",
  ),
  id: Type.Optional(Type.String("The run's id.")),
  run: Type.Optional(RunSchema),
  error: Type.Optional(ProblemSchema),
});

const StartedRunsSchema = Type.Object(
  {
    items: Type.Array(
      StartedItem,
      "In the order of the request. Each has id, and run when it has ended; or error.",
    ),
  },
  "What became of each item.",
);

/** Their headers: how often they may be sent, how long they wait for the end, and the trace of the caller. */
export const startRunHeaders = Type.Input({
  ...idempotencyKeyHeader.properties,
  prefer: Type.String(
    "wait=N (RFC 7240): answer when what was started has ended, or after N seconds (60 at most) as without it. A value that is no whole number, and every other preference, is ignored.",
    { examples: ["wait=30"] },
  ),
  traceparent: Type.String(
    "W3C trace context of the caller: the run belongs to this trace, and its span is a child of the caller's. One that is malformed is ignored, and the run gets a trace of its own.",
    { examples: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"] },
  ),
});

/** The problems of starting a run, besides those of bodies and headers. */
export const startRunProblems = [
  "blueprint_not_found",
  "blueprint_busy",
  "conflict",
  "requirements_not_met",
  "resource_unsatisfiable",
  "no_free_port",
] as const satisfies readonly ProblemCode[];

/** By the names that clients see. */
export const schemas = {
  CreateRun: CreateRunBody,
  CreateRuns: CreateRunsBody,
  StartedRuns: StartedRunsSchema,
};

export interface WaitParts {
  readonly records: Pick<GatewayRecords, "run" | "openRun">;
  readonly secrets: ConfigurationSecrets;
  readonly waits: Waits;
}

export interface Parts extends WaitParts, IdempotencyParts {
  readonly runs: Runs;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { runs, secrets, waits } = parts;
  addRoutes(api, "runs", [
    post("/jobs/:job_id/runs", {
      operationId: "createRun",
      summary: "Start a run of a job",
      description:
        "Accepted as soon as it is on disk; the run is prepared and executed afterwards. Acceptance is not completion: follow the run's event stream, get the run again, or wait for its end with `Prefer: wait=N`, which is then answered with 200.",
      headers: startRunHeaders,
      body: CreateRunBody,
      answers: { 200: RunSchema, 202: RunSchema },
      problems: startRunProblems,
      handle: (request, reply) => {
        const trace = parseTraceparent(request.headers.traceparent);
        return sendStartedRun<NewRun>(parts, request, reply, {
          prepare: () => runs.prepare(request.params.job_id, runOf(request.body, trace)),
          answer: (run) => ({
            location: `/api/v1/runs/${run.runId}`,
            body: renderNewRun(run, secrets),
          }),
          started: (run) => runs.accepted(run),
          runOf: (run) => run,
        });
      },
    }),
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
        const given = await answerIdempotent(parts, request, () => prepare(parts, request, fresh));
        const made = given.isReplay ? undefined : fresh;
        const launch = () => {
          for (const run of made ?? []) runs.accepted(run);
        };
        if (!isWaiting) {
          launch();
          return sendGiven(reply, given);
        }
        const { items } = JSON.parse(given.answer.body) as { readonly items: readonly Item[] };
        const runIds = items.flatMap((item) => ("id" in item ? [item.id] : []));
        if (await allEnded(parts, reply, { runIds, fresh: made, launch })) {
          reply.header("preference-applied", "wait");
        }
        const text = batchText(items, async (item) => {
          const run = "id" in item ? await renderEnded(parts, item.id) : null;
          if (run === null || !("id" in item)) return JSON.stringify(item);
          return `{"status":200,"id":${JSON.stringify(item.id)},"run":${run}}`;
        });
        return sendGiven(reply, given, textStream(text));
      },
    }),
  ]);
}

function runOf(body: Static<typeof CreateRunBody>, trace: ReturnType<typeof parseTraceparent>) {
  const { inputs = null, config_overrides: configOverrides = null, rerun_of: original } = body;
  const { priority = defaultTerms.priority } = body;
  const repeats = original === undefined ? {} : { rerunOf: original };
  return {
    inputs,
    configOverrides,
    ...repeats,
    priority,
    trigger: { kind: "api", id: null } as const,
    trace,
  };
}

/** Checks the items. @param fresh filled with the runs that are made */
async function prepare(
  parts: Parts,
  request: FastifyRequest<{ Params: { job_id: string }; Body: Static<typeof CreateRunsBody> }>,
  fresh: NewRun[],
): Promise<Effect> {
  const job = await parts.runs.jobOf(request.params.job_id);
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
        return parts.runs.prepareOf(job, runOf(item as Static<typeof CreateRunBody>, trace));
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

/** Errors of the server fail the whole batch: nothing is started, and it can be sent again. */
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

/** The result of an item, as it is stored. */
type Item = { readonly status: number } & (
  | { readonly id: string }
  | { readonly error: Readonly<Record<string, unknown>> }
);

export interface StartOfRun<Started> extends Start<Started> {
  runOf(started: Started): NewRun;
}

/** Answers 202 under an Idempotency-Key; or, to a request that waits, 200 and the run once it has ended. */
export async function sendStartedRun<Started>(
  parts: WaitParts & IdempotencyParts,
  request: FastifyRequest,
  reply: FastifyReply,
  start: StartOfRun<Started>,
): Promise<FastifyReply> {
  const isWaiting = parts.waits.isAsked(reply);
  const { given, started } = await answerStarted(parts, request, start);
  const launch = () => {
    if (started !== undefined) start.started(started);
  };
  if (!isWaiting) {
    launch();
    return sendGiven(reply, given);
  }
  const { run_id: runId } = JSON.parse(given.answer.body) as { readonly run_id: string };
  await allEnded(parts, reply, { runIds: [runId], fresh: started && [start.runOf(started)], launch });
  const ended = await renderEnded(parts, runId);
  if (ended === null) return sendGiven(reply, given);
  reply.header("preference-applied", "wait");
  return sendGiven(reply, { ...given, answer: { ...given.answer, status: 200, body: ended } });
}

export interface StartedRuns {
  readonly runIds: readonly string[];
  /** The same, as this very request has made them; undefined when an earlier one has. */
  readonly fresh: readonly NewRun[] | undefined;
  /** Launches the fresh ones. */
  launch(): void;
}

/** Launches runs and waits for their ends. @returns whether all of them have ended */
export async function allEnded(
  { records, waits }: WaitParts,
  reply: FastifyReply,
  { runIds, fresh, launch }: StartedRuns,
): Promise<boolean> {
  const runs = fresh ?? (await Promise.all(runIds.map((runId) => records.openRun(runId))));
  const open = runs.filter((run) => run !== null);
  // Before the launch: none of the fresh ones can have ended.
  const watch = waits.watch(
    reply,
    open.map(({ runtimeJobId }) => runtimeJobId),
  );
  launch();
  if (fresh === undefined) {
    // Some may have ended between the read and the watch.
    for (const { runId, runtimeJobId } of open) {
      if ((await records.openRun(runId)) === null) watch.ended(runtimeJobId);
    }
  }
  await watch.over;
  return watch.isComplete;
}

/** @returns null for a run that has not ended, or has been deleted */
export async function renderEnded({ records, secrets }: WaitParts, runId: string): Promise<string | null> {
  const run = await records.run(runId);
  return run === null || !isTerminal(run.status) ? null : renderRun(run, { secrets, nowMs: null });
}
