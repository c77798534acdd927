// Submissions to the runtime API: POST /jobs and POST /jobs:batch, and their ends for who waits (`Prefer: wait`).

import type { FastifyInstance, FastifyReply } from "fastify";
import type { Bundles } from "../../bundles/bundles.ts";
import type { Engine } from "../../engine/engine.ts";
import { withInputs } from "../../engine/inputs.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { manifestProblemsText, parseManifest } from "../../engine/manifest.ts";
import { holdsSealed } from "../../engine/sealed.ts";
import type { RequiredService } from "../../engine/service.ts";
import type { Submission, SubmittedJob } from "../../engine/submission.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import { readSummary } from "../../runs/history/read-summary.ts";
import { wholeJobOf } from "../../runs/job-records.ts";
import { Slices } from "../../runs/slices.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { secretPathsIn } from "../../security/secret-paths.ts";
import { hasTooManySecrets, TOO_MANY_SECRETS } from "../../security/values.ts";
import type { ServiceRegistry } from "../../services/registry.ts";
import type { JsonBody } from "../core/json-body.ts";
import {
  ApiError,
  bundleNotFound,
  describeError,
  invalidPayload,
  problemsText,
} from "../core/runtime-errors.ts";
import { readBody } from "../core/runtime-query.ts";
import { textStream } from "../core/text-stream.ts";
import type { RuntimeRunParts } from "./find-run.ts";
import { BATCH_ITEMS_MAX, batchText } from "./lists.ts";
import { type RenderContext, renderJob } from "./submitted-job-view.ts";
import type { Waits } from "./waits.ts";

export interface Parts extends RuntimeRunParts, RenderContext {
  readonly engine: Engine;
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
  readonly services: ServiceRegistry;
  readonly waits: Waits;
  readonly nowMs: () => number;
}

/** A submission, but for the trace of its caller. */
type Untraced = Omit<Submission, "trace">;

/** An item of a batch that was not accepted. */
interface RefusedItem {
  readonly status: number;
  readonly error: string;
}

export function runtimeRoutes(api: FastifyInstance, parts: Parts): void {
  const { engine, waits } = parts;

  api.post<{ Body?: JsonBody }>("/jobs", async (request, reply) => {
    const isWaiting = waits.isAsked(reply);
    const body = readBody(request.body);
    const submitted = await holding(parts, async (held) => {
      const submission = await read(parts, body, { text: () => request.body!.text, held });
      return engine.submit({ ...submission, trace: parseTraceparent(request.headers.traceparent) });
    });
    reply.header("location", `/api/v1/jobs/${encodeURIComponent(submitted.jobId)}`);
    if (isWaiting && (await allEnded(parts, reply, [submitted]))) {
      const record = await renderEnded(parts, submitted);
      // A job that was removed as soon as it had ended is answered as it was accepted.
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
    for (const fingerprint of held) await bundles.release({ fingerprint });
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
async function read(
  parts: Parts,
  body: JsonObject,
  source: { readonly text: () => string; readonly held: string[] },
): Promise<Untraced> {
  if (Object.keys(body).length === 0) throw invalidPayload();
  const submission =
    body.bundle_id !== undefined && body.manifest_version === undefined
      ? await fromBundle(parts, body, source.held)
      : await fromManifest(parts, body, source.text());
  requireServices(parts.services, submission.graph.requiredServices);
  return submission;
}

async function fromManifest({ secrets }: Parts, given: JsonObject, text: string): Promise<Untraced> {
  const { initial_inputs: inputs } = given;
  let [manifest, manifestJson] = [given, text];
  if (isObject(inputs)) {
    const sealed = await secrets.sealAddressed(inputs, {
      at: "/initial_inputs",
      paths: secretPathsIn(given),
    });
    if (sealed.kind === "invalid") throw new ApiError(400, problemsText(sealed.errors));
    if (holdsSealed(sealed.value)) {
      manifest = { ...given, initial_inputs: sealed.value };
      manifestJson = JSON.stringify(manifest);
    }
  }
  const parsed = parseManifest(manifest);
  if (parsed.kind === "invalid") throw new ApiError(400, manifestProblemsText(parsed.problems));
  return {
    graph: parsed.graph,
    identity: null,
    manifestJson,
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
  };
}

/** A registered bundle, launched with its own manifest and configuration; its snapshot is held. */
async function fromBundle(parts: Parts, body: JsonObject, held: string[]): Promise<Untraced> {
  const { bundle_id: bundleId, inputs, config } = body;
  const { secrets, bundles } = parts;
  if (typeof bundleId !== "string") throw new ApiError(400, "bundle_id must be a string");
  if (config !== undefined && !isObject(config)) throw new ApiError(400, "config must be a JSON object");
  const launch = await bundles.launch(bundleId, config ?? {});
  if (launch === null) throw bundleNotFound(bundleId);
  held.push(launch.fingerprint);
  const paths = secretPathsIn(launch.manifest);
  if (config !== undefined && hasTooManySecrets(config, paths)) {
    throw new ApiError(400, `config ${TOO_MANY_SECRETS}`);
  }
  const sealedInputs = isObject(inputs) ? await secrets.sealInputs(inputs, { paths }) : null;
  if (sealedInputs?.kind === "invalid") throw new ApiError(400, problemsText(sealedInputs.errors));
  const answer = withInputs(secrets.withSealedInputs(launch.graph, paths), sealedInputs?.value ?? inputs);
  if (answer.kind === "invalid") throw new ApiError(400, answer.problems.join("; "));
  const { configuration } = launch;
  return {
    graph: answer.graph,
    identity: null,
    manifestJson: launch.manifestJson,
    bundleFingerprint: launch.fingerprint,
    hasOwnPayload: false,
    // What the journal keeps has no secret in clear.
    configurationJson: configuration === null ? null : JSON.stringify(secrets.seal(configuration, paths)),
  };
}

/**
 * Refuses a graph whose services are not there.
 *
 * @throws ApiError 409 that names each of them
 */
function requireServices(services: ServiceRegistry, required: readonly RequiredService[]): void {
  const unmet = services.unmet(required);
  if (unmet.length === 0) return;
  const reasons = unmet.map(({ reason }) => reason).join(" ");
  throw new ApiError(409, `The graph requires services that are not passing. ${reasons}`);
}
