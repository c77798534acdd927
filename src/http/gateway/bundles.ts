// POST /bundles (an upload), GET /bundles, GET and DELETE /bundles/{bundle_id}.

import type { Readable } from "node:stream";
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { descriptionOf } from "../../blueprints/describe-package.ts";
import type { Bundles, ReceivedBundle } from "../../bundles/bundles.ts";
import { BundleProblem, isUploadTooLarge } from "../../bundles/problem.ts";
import type { BundleRecord } from "../../bundles/records.ts";
import { isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { Problem } from "../core/problem.ts";
import { limitUploads } from "../core/read-rest.ts";
import { addRoutes, get, post, remove } from "../core/route.ts";
import { pointerPart } from "../core/validation-entries.ts";
import { sendIdempotent } from "./idempotent.ts";
import { sendPage } from "./page.ts";
import { BundlePageSchema, BundleSchema, BundlesQuery } from "./schemas/bundles.ts";
import { idempotencyKeyHeader, nothing } from "./schemas/common.ts";
import type { GatewayServices } from "./services.ts";

export function bundleRoutes(api: FastifyInstance, services: GatewayServices, bundleBytesMax: number): void {
  const { records, bundles } = services;
  limitUploads(api, bundleBytesMax, tooLarge);
  api.register(multipart, { limits: { fileSize: bundleBytesMax + 1, files: 2, fields: 8, parts: 10 } });

  addRoutes(api, "bundles", [
    post("/bundles", {
      operationId: "uploadBundle",
      summary: "Upload a bundle",
      description:
        "A zip whose root, or single top folder, holds manifest.json. The same content gets the same bundle_id. Uploading runs nothing.",
      consumes: ["multipart/form-data"],
      headers: idempotencyKeyHeader,
      answers: { 201: BundleSchema },
      problems: ["insufficient_storage"],
      handle: async (request, reply) => {
        const { record, uploadSha256 } = await receive(services, request);
        try {
          return await sendIdempotent(
            services,
            request,
            reply,
            async () => async (writes) => {
              await writes.saveBundle(record);
              const saved = (await writes.bundle(record.bundleId)) ?? record;
              const headers = { location: `/api/v1/bundles/${encodeURIComponent(saved.bundleId)}` };
              return { status: 201, headers, body: await renderWhole(services, saved) };
            },
            uploadSha256,
          );
        } finally {
          await bundles.release(record);
        }
      },
    }),

    get("/bundles", {
      operationId: "listBundles",
      summary: "List bundles",
      query: BundlesQuery,
      answers: { 200: BundlePageSchema },
      handle: (request, reply) =>
        sendPage(services, request, reply, {
          rows: (limit, after) =>
            records.bundles({
              limit,
              after: after === null ? null : { createdAtMs: Number(after[0]), bundleId: String(after[1]) },
            }),
          positionOf: (bundle) => [bundle.createdAtMs, bundle.bundleId],
          render,
        }),
    }),

    get("/bundles/:bundle_id", {
      operationId: "getBundle",
      summary: "Get a bundle",
      answers: { 200: BundleSchema },
      handle: async (request, reply) => {
        const { bundle_id: bundleId } = request.params;
        const bundle = await bundles.get(bundleId);
        if (bundle === null) throw notFound(bundleId);
        return reply.type("application/json; charset=utf-8").send(await renderWhole(services, bundle));
      },
    }),

    remove("/bundles/:bundle_id", {
      operationId: "deleteBundle",
      summary: "Delete a bundle that no job uses",
      answers: { 204: nothing("The bundle is gone.") },
      problems: ["bundle_in_use"],
      handle: async (request, reply) => {
        const { bundle_id: bundleId } = request.params;
        const bundle = await bundles.get(bundleId);
        if (bundle === null) throw notFound(bundleId);
        await bundles.letGo(bundle, () =>
          records.write(async (writes) => {
            if (await writes.bundleInUse(bundleId)) throw inUse(bundleId);
            if (!(await writes.deleteBundle(bundleId))) throw notFound(bundleId);
          }),
        );
        return reply.code(204).send();
      },
    }),
  ]);
}

/**
 * Takes the upload in, checks it, and keeps its content; the record is still to be written. The form is read to its
 * end, because what else it holds is refused.
 */
async function receive({ bundles }: GatewayServices, request: FastifyRequest): Promise<ReceivedBundle> {
  if (!request.isMultipart()) {
    throw new Problem(
      "unsupported_media_type",
      "Send the bundle as multipart/form-data, with the zip archive in the form field bundle.",
    );
  }
  const form = request.parts();
  const nextPart = () =>
    form.next().catch((error: unknown) => {
      throw asBrokenUpload(error);
    });
  let received: ReceivedBundle | null = null;
  const unknown: string[] = [];
  try {
    for (let part = await nextPart(); !part.done; part = await nextPart()) {
      const { value } = part;
      const isBundle = value.type === "file" && value.fieldname === "bundle";
      if (isBundle && received === null && unknown.length === 0) received = await takeIn(bundles, value.file);
      else {
        // The parser's type does not say so, but a part may come without a name.
        unknown.push((value.fieldname as string | undefined) ?? "");
        if (value.type === "file") value.file.resume();
      }
    }
    if (received === null && !unknown.includes("bundle")) throw noBundle();
    if (received === null || unknown.length > 0) throw onlyBundle(unknown);
    const { problems } = await packageFindings(bundles, received.record);
    if (problems.length > 0) throw new BundleProblem(problems);
    return received;
  } catch (error) {
    if (received !== null) await bundles.release(received.record);
    throw error;
  }
}

/** What is wrong or odd in what a bundle's package declares, and in its graph. */
async function packageFindings(bundles: Bundles, { fingerprint }: BundleRecord) {
  return descriptionOf(await bundles.definition(fingerprint));
}

async function takeIn(bundles: Bundles, file: Readable): Promise<ReceivedBundle> {
  // A torn body makes the parser report more than one error, some of them before anybody reads the file.
  const broken = new Set<unknown>();
  file.on("error", (error: unknown) => broken.add(error));
  try {
    return await bundles.receiveZip(file);
  } catch (error) {
    if (error instanceof BundleProblem && isUploadTooLarge(error)) throw tooLarge();
    throw broken.has(error) || error === file.errored ? asBrokenUpload(error) : error;
  }
}

function noBundle(): DomainError {
  const message = "the upload needs one file in the form field bundle, a zip archive";
  return new DomainError("validation_failed", `No bundle was sent: ${message}.`, [
    { path: "/bundle", code: "missing", message },
  ]);
}

function onlyBundle(others: readonly string[]): DomainError {
  const message = "the form takes one file in the field bundle, and nothing else";
  const errors = [...new Set(others)].map((name) => ({
    path: `/${pointerPart(name)}`,
    code: name === "bundle" ? "not_allowed" : "unknown_field",
    message,
  }));
  return new DomainError("validation_failed", `The upload was not taken: ${message}.`, errors);
}

/** The parser of multipart bodies throws plain errors for what is no such body; the framework's have a code. */
function asBrokenUpload(error: unknown): unknown {
  if ((error as { code?: unknown }).code !== undefined) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new Problem(
    "malformed_request",
    `The upload is not a whole multipart/form-data body (${reason}). Check the boundary, and send it again.`,
    { cause: error },
  );
}

const render = (bundle: BundleRecord) => JSON.stringify(fieldsOf(bundle));

async function renderWhole({ bundles }: GatewayServices, bundle: BundleRecord): Promise<string> {
  const warnings = await packageFindings(bundles, bundle).then(
    (found) => found.warnings,
    (error: unknown) => {
      // The record stays readable when its content was removed from outside.
      if (error instanceof BundleProblem) return [];
      throw error;
    },
  );
  return JSON.stringify({ ...fieldsOf(bundle), warnings });
}

function fieldsOf(bundle: BundleRecord) {
  return {
    bundle_id: bundle.bundleId,
    name: bundle.name,
    graph_id: bundle.graphId,
    fingerprint: bundle.fingerprint,
    size: bundle.sizeBytes,
    created_at: isoTime(bundle.createdAtMs),
  };
}

function tooLarge(): Problem {
  return new Problem(
    "payload_too_large",
    "The zip is larger than SVC_BUNDLE_MAX_BYTES allows. Leave out what the workers do not need, or raise the limit.",
  );
}

function notFound(bundleId: string): DomainError {
  return new DomainError(
    "bundle_not_found",
    `Bundle ${bundleId} was not found. GET /api/v1/bundles lists the bundles there are.`,
  );
}

function inUse(bundleId: string): DomainError {
  return new DomainError(
    "bundle_in_use",
    `Bundle ${bundleId} is used by at least one job. Delete those jobs first: GET /api/v1/jobs lists them.`,
  );
}
