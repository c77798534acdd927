// Bundles: POST /bundles and GET /bundles in both APIs, of an upload, in the runtime API also of a folder on its machine;
// GET and DELETE /bundles/{bundle_id} in the gateway, POST /bundles/{bundle_id}/reload in the runtime API.

import { isAbsolute } from "node:path";
import type { Readable } from "node:stream";
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { descriptionOf } from "../../blueprints/describe-package.ts";
import type { Bundles, ReceivedBundle } from "../../bundles/bundles.ts";
import { BundleProblem, isUploadTooLarge } from "../../bundles/problem.ts";
import type { BundleRecord } from "../../bundles/records.ts";
import { isoTime } from "../../engine/event.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { GatewayRecords } from "../../launch/records.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { JsonBody } from "../core/json-body.ts";
import { Problem } from "../core/problem.ts";
import { limitUploads } from "../core/read-rest.ts";
import { addRoutes, get, post, remove } from "../core/route.ts";
import { ApiError } from "../core/runtime-errors.ts";
import { readBody } from "../core/runtime-query.ts";
import { Type } from "../core/type.ts";
import { pointerPart } from "../core/validation-entries.ts";
import { Finding } from "./blueprints.ts";
import { type IdempotencyParts, sendIdempotent } from "./idempotent.ts";
import { type PageParts, sendList, sendPage } from "./lists.ts";
import { idempotencyKeyHeader, pageOf, pageQuery } from "./schemas.ts";

const BundleSchema = Type.Object(
  {
    bundle_id: Type.String({ examples: ["bundle_3f1c0a9d2b7e4856"] }),
    name: Type.String(),
    graph_id: Type.String(),
    fingerprint: Type.String("SHA-256 over the bundle's files."),
    size: Type.Integer("Bytes of all its files."),
    created_at: Type.Time("When it was first uploaded."),
    warnings: Type.Optional(
      Type.Array(
        Finding,
        "What of the package is ignored, such as unknown fields of its manifest. Not in lists.",
      ),
    ),
  },
  "An uploaded package: manifest, configuration, payload. The same content has the same id.",
);

const BundlePageSchema = pageOf(BundleSchema, "bundles, newest first");

/** By the names that clients see. */
export const schemas = { Bundle: BundleSchema, BundlePage: BundlePageSchema };

export interface Parts {
  readonly bundles: Bundles;
  /** Of an upload. */
  readonly bundleBytesMax: number;
}

// --------------------------------------------------------------------------------------------- gateway

export interface GatewayParts extends Parts, PageParts, IdempotencyParts {
  readonly records: Pick<GatewayRecords, "bundles">;
}

/** To be called in a separate scope: only these routes take uploads. */
export function gatewayRoutes(api: FastifyInstance, parts: GatewayParts): void {
  const { records, bundles, bundleBytesMax } = parts;
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
        const { record, uploadSha256 } = await receive(parts, request);
        try {
          return await sendIdempotent(
            parts,
            request,
            reply,
            async () => async (writes) => {
              await writes.saveBundle(record);
              const saved = (await writes.bundle(record.bundleId)) ?? record;
              const headers = { location: `/api/v1/bundles/${encodeURIComponent(saved.bundleId)}` };
              return { status: 201, headers, body: await renderWhole(parts, saved) };
            },
            uploadSha256,
          );
        } finally {
          await bundles.snapshots.release(record.fingerprint);
        }
      },
    }),

    get("/bundles", {
      operationId: "listBundles",
      summary: "List bundles",
      query: Type.Input(pageQuery),
      answers: { 200: BundlePageSchema },
      handle: (request, reply) =>
        sendPage(parts, request, reply, {
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
        const bundle = await bundles.existing(request.params.bundle_id);
        return reply.type("application/json; charset=utf-8").send(await renderWhole(parts, bundle));
      },
    }),

    remove("/bundles/:bundle_id", {
      operationId: "deleteBundle",
      summary: "Delete a bundle that no job uses",
      answers: { 204: Type.Null("The bundle is gone.") },
      problems: ["bundle_in_use"],
      handle: async (request, reply) => {
        await bundles.delete(request.params.bundle_id);
        return reply.code(204).send();
      },
    }),
  ]);
}

/**
 * Takes the upload in, checks it, and keeps its content; the record is still to be written. The form is read to its
 * end, because what else it holds is refused.
 */
async function receive({ bundles }: Parts, request: FastifyRequest): Promise<ReceivedBundle> {
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
        // A part may have no name, though the parser's type says otherwise.
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
    if (received !== null) await bundles.snapshots.release(received.record.fingerprint);
    throw error;
  }
}

/** What is wrong or odd in what a bundle's package declares, and in its graph. */
async function packageFindings(bundles: Bundles, { fingerprint }: BundleRecord) {
  return descriptionOf(await bundles.definition(fingerprint));
}

async function takeIn(bundles: Bundles, file: Readable): Promise<ReceivedBundle> {
  // A truncated body makes the parser report more than one error, some of them before the file is read.
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

/** The multipart parser throws plain errors for malformed bodies; the framework's errors have a code. */
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

async function renderWhole({ bundles }: Parts, bundle: BundleRecord): Promise<string> {
  const warnings = await packageFindings(bundles, bundle).then(
    (found) => found.warnings,
    (error: unknown) => {
      // The record stays readable when its content was deleted by hand.
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

// ----------------------------------------------------------------------------------------- runtime API

/** To be called in a separate scope: only these routes take uploads. */
export function runtimeRoutes(api: FastifyInstance, { bundles, bundleBytesMax }: Parts): void {
  limitUploads(api, bundleBytesMax, uploadTooLarge);
  api.register(multipart, { limits: { fileSize: bundleBytesMax + 1, files: 1, fields: 4, parts: 5 } });

  api.post<{ Body?: JsonBody }>("/bundles", async (request, reply) => {
    const record = request.isMultipart()
      ? await upload(bundles, request)
      : await fromFolder(bundles, readBody(request.body));
    const { warnings } = await descriptionOf(await bundles.definition(record.fingerprint));
    return reply.code(201).send({
      bundle_id: record.bundleId,
      graph_id: record.graphId,
      fingerprint: record.fingerprint,
      ...(warnings.length > 0 && { warnings }),
    });
  });

  api.get("/bundles", (_request, reply) =>
    sendList<BundleRecord, string>(reply, {
      rows: (limit, after) => bundles.list({ limit, after }),
      positionOf: ({ bundleId }) => bundleId,
      render: (bundle) => JSON.stringify(runtimeFieldsOf(bundle)),
    }),
  );

  api.post<{ Params: { bundle_id: string } }>("/bundles/:bundle_id/reload", async (request) => {
    const bundleId = request.params.bundle_id;
    try {
      const result = await bundles.reload(bundleId);
      if (result === null) throw new ApiError(404, `Bundle ${bundleId} not found`);
      return result;
    } catch (error) {
      if (!(error instanceof BundleProblem)) throw error;
      throw new ApiError(
        500,
        `Bundle ${bundleId} could not be reloaded, its registered version stays: ${error.message}`,
      );
    }
  });
}

async function fromFolder(bundles: Bundles, body: JsonObject): Promise<BundleRecord> {
  const { path, bundle_id: bundleId } = body;
  if (typeof path !== "string" || !isAbsolute(path)) {
    throw new ApiError(400, "path must be the absolute path of a bundle's folder on the runtime's machine");
  }
  if (bundleId !== undefined && typeof bundleId !== "string")
    throw new ApiError(400, "bundle_id must be a string");
  return bundles.registerFolder({ path, ...(bundleId !== undefined && { bundleId }) });
}

async function upload(bundles: Bundles, request: FastifyRequest): Promise<BundleRecord> {
  const part = await request.file();
  if (part === undefined || part.fieldname !== "bundle") {
    throw new ApiError(400, "the upload needs one file in the form field bundle, a zip archive");
  }
  try {
    return await bundles.registerZip({ file: part.file });
  } catch (error) {
    if (error instanceof BundleProblem && isUploadTooLarge(error)) throw uploadTooLarge();
    throw error;
  }
}

const uploadTooLarge = () => new ApiError(413, "the zip is larger than SVC_BUNDLE_MAX_BYTES allows");

function runtimeFieldsOf(record: BundleRecord) {
  return {
    bundle_id: record.bundleId,
    name: record.name,
    graph_id: record.graphId,
    fingerprint: record.fingerprint,
    size: record.sizeBytes,
    source: record.source.kind,
    created_at: new Date(record.createdAtMs).toISOString(),
    updated_at: new Date(record.updatedAtMs).toISOString(),
  };
}
