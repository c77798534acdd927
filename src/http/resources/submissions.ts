// Submissions to the runtime API: POST /jobs and POST /jobs:batch, and their ends for who waits (`Prefer: wait`).

import type { FastifyInstance, FastifyReply } from "fastify";
import type { Engine } from "../../engine/engine.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import type { SubmittedJob } from "../../engine/submission.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import {
  knownManifest,
  type SubmissionParts,
  submittedBundle,
  submittedManifest,
  termsOf,
  type Untraced,
} from "../../launch/submissions.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { Slices } from "../../lib/slices.ts";
import { readSummary } from "../../runs/history/summary.ts";
import { wholeJobOf } from "../../runs/job-records.ts";
import type { JsonBody } from "../core/json-body.ts";
import { ApiError, describeError, invalidPayload } from "../core/runtime-errors.ts";
import { readBody } from "../core/runtime-query.ts";
import { textStream } from "../core/text-stream.ts";
import type { RuntimeRunParts } from "./find-run.ts";
import { BATCH_ITEMS_MAX, batchText } from "./lists.ts";
import { type RenderContext, renderJob } from "./submitted-job-view.ts";
import type { Waits } from "./waits.ts";

export interface Parts extends SubmissionParts, RuntimeRunParts, RenderContext {
  readonly engine: Engine;
  readonly waits: Waits;
  readonly nowMs: () => number;
}

/** An item of a batch that was not accepted. */
interface RefusedItem {
  readonly status: number;
  readonly error: string;
}

export function runtimeRoutes(api: FastifyInstance, parts: Parts): void {
  const { engine, waits } = parts;

  api.post<{ Body?: JsonBody }>("/jobs", async (request, reply) => {
    const isWaiting = waits.isAsked(reply);
    const { body } = request;
    const known = body === undefined ? null : knownManifest(body.text);
    refuseClosed(engine);
    const submitted = await holding(parts, async (held) => {
      const submission = known ?? (await read(parts, readBody(body), { text: () => body!.text, held }));
      return engine.submit({ ...submission, trace: parseTraceparent(request.headers.traceparent) });
    });
    reply.header("location", `/api/v1/jobs/${encodeURIComponent(submitted.jobId)}`);
    if (isWaiting && (await allEnded(parts, reply, [submitted]))) {
      const record = await renderEnded(parts, submitted);
      // A job that was removed right after its end is answered as accepted.
      if (record !== null) {
        reply.header("preference-applied", "wait").type("application/json; charset=utf-8");
        return record;
      }
    }
    const { jobId, runId } = submitted;
    return reply.code(201).send({ id: jobId, status: "pending", run_id: runId });
  });

  // The colon is doubled because a single one would begin a parameter.
  api.post<{ Body?: JsonBody }>("/jobs::batch", async (request, reply) => {
    const isWaiting = waits.isAsked(reply);
    const items = request.body?.object?.items;
    if (items === undefined) throw invalidPayload();
    if (!Array.isArray(items) || items.length > BATCH_ITEMS_MAX) {
      throw new ApiError(400, `items must be a list of at most ${BATCH_ITEMS_MAX} submissions`);
    }
    refuseClosed(engine);
    const answers = await holding(parts, async (held) => {
      const taken = await readAll(parts, items, held);
      const trace = parseTraceparent(request.headers.traceparent);
      const submissions = taken.flatMap((one) => ("error" in one ? [] : [{ ...one, trace }]));
      const submitted = (await engine.submitAll(submissions)).values();
      return taken.map((one) => ("error" in one ? one : answerOf(submitted.next().value!)));
    });
    const accepted = answers.flatMap((one) => ("error" in one ? [] : [one]));
    const haveEnded = isWaiting && (await allEnded(parts, reply, accepted));
    if (haveEnded) reply.header("preference-applied", "wait");
    reply.type("application/json; charset=utf-8");
    return textStream(
      batchText(answers, async (one) => {
        if ("error" in one) return JSON.stringify(one);
        const { jobId, runId } = one;
        const record = isWaiting && !engine.holds(jobId) ? await renderEnded(parts, one) : null;
        const ids = `"id":${JSON.stringify(jobId)},"run_id":${JSON.stringify(runId)}`;
        return record === null ? `{"status":201,${ids}}` : `{"status":200,${ids},"job":${record}}`;
      }),
    );
  });
}

/** @throws DomainError `unavailable` while jobs leave this node */
function refuseClosed({ closed }: Pick<Engine, "closed">): void {
  if (closed !== null) throw new DomainError("unavailable", closed);
}

const answerOf = (one: SubmittedJob | Error): SubmittedJob | RefusedItem =>
  "jobId" in one ? one : asItem(one);

function asItem(error: unknown): RefusedItem {
  const { status, message } = describeError(error);
  return { status, error: message };
}

/** Waits for the ends of jobs. @returns whether all of them have ended */
async function allEnded(
  { engine, waits }: Parts,
  reply: FastifyReply,
  submitted: readonly SubmittedJob[],
): Promise<boolean> {
  const open = submitted.filter(({ jobId }) => engine.holds(jobId)).map(({ jobId }) => jobId);
  const watch = waits.watch(reply, open);
  await watch.over;
  return watch.isComplete;
}

/** @returns null when the job has been removed */
async function renderEnded(parts: Parts, { jobId, ended }: SubmittedJob): Promise<string | null> {
  const whole = ended === null ? await parts.journal.whole(jobId) : wholeJobOf(jobId, ended);
  if (whole === null) return null;
  return renderJob(whole, await readSummary(parts.journal, whole.job, parts.nowMs()), parts);
}

/** Does work with snapshots of bundles: those that are noted in `held` stay until it has ended. */
async function holding<Result>(
  { bundles }: Parts,
  work: (held: string[]) => Promise<Result>,
): Promise<Result> {
  const held: string[] = [];
  try {
    return await work(held);
  } finally {
    for (const fingerprint of held) await bundles.snapshots.release(fingerprint);
  }
}

/** Every item that can be submitted, and what is wrong with every other one. */
async function readAll(
  parts: Parts,
  items: readonly JsonValue[],
  held: string[],
): Promise<readonly (Untraced | RefusedItem)[]> {
  const slices = new Slices();
  const all: (Untraced | RefusedItem)[] = [];
  for (const item of items) {
    if (slices.isOver) await slices.breathe();
    try {
      if (!isObject(item)) throw invalidPayload();
      all.push(await read(parts, item, { text: () => JSON.stringify(item), held }));
    } catch (error) {
      const refused = asItem(error);
      // The runtime's own trouble is no item's: nothing is submitted, and all of it can be sent again.
      if (refused.status >= 500) throw error;
      all.push(refused);
    }
  }
  return all;
}

/** What a body submits: a manifest, or a registered bundle. @param source.text the body as JSON */
function read(
  parts: Parts,
  body: JsonObject,
  source: { readonly text: () => string; readonly held: string[] },
): Promise<Untraced> {
  if (Object.keys(body).length === 0) throw invalidPayload();
  const { bundle_id: bundleId, inputs, config } = body;
  if (bundleId === undefined || body.manifest_version !== undefined) {
    return submittedManifest(parts, body, source.text());
  }
  if (typeof bundleId !== "string") throw new ApiError(400, "bundle_id must be a string");
  if (config !== undefined && !isObject(config)) throw new ApiError(400, "config must be a JSON object");
  return submittedBundle(parts, { bundleId, inputs, config, terms: termsOf(body) }, source.held);
}
