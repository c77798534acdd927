// POST /bundles (a folder on this machine, or a zip), GET /bundles, POST /bundles/:bundle_id/reload.

import { isAbsolute } from "node:path";
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { descriptionOf } from "../../blueprints/describe-package.ts";
import { BundleProblem, isUploadTooLarge } from "../../bundles/problem.ts";
import type { BundleRecord } from "../../bundles/records.ts";
import type { JsonBody } from "../core/json-body.ts";
import { limitUploads } from "../core/read-rest.ts";
import { ApiError, bundleNotFound, invalidPayload } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

const BUNDLES_PER_PAGE = 500;

export function bundleRoutes(api: FastifyInstance, services: RuntimeServices, bundleBytesMax: number): void {
  const { bundles } = services;
  limitUploads(api, bundleBytesMax, tooLarge);
  api.register(multipart, { limits: { fileSize: bundleBytesMax + 1, files: 1, fields: 4, parts: 5 } });

  api.post<{ Body?: JsonBody }>("/bundles", async (request, reply) => {
    const record = request.isMultipart()
      ? await upload(services, request)
      : await fromFolder(services, request.body);
    const { warnings } = descriptionOf(await bundles.definition(record.fingerprint));
    return reply.code(201).send({
      bundle_id: record.bundleId,
      graph_id: record.graphId,
      fingerprint: record.fingerprint,
      ...(warnings.length > 0 && { warnings }),
    });
  });

  api.get("/bundles", async () => {
    const data: ReturnType<typeof render>[] = [];
    for (;;) {
      const after = data.at(-1)?.bundle_id ?? null;
      const page = await bundles.list({ limit: BUNDLES_PER_PAGE, after });
      data.push(...page.map(render));
      if (page.length < BUNDLES_PER_PAGE) return { data };
    }
  });

  api.post<{ Params: { bundle_id: string } }>("/bundles/:bundle_id/reload", async (request) => {
    const bundleId = request.params.bundle_id;
    try {
      const result = await bundles.reload(bundleId);
      if (result === null) throw bundleNotFound(bundleId);
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

async function fromFolder({ bundles }: RuntimeServices, body: JsonBody | undefined): Promise<BundleRecord> {
  const object = body?.object;
  if (object == null) throw invalidPayload();
  const { path, bundle_id: bundleId } = object;
  if (typeof path !== "string" || !isAbsolute(path)) {
    throw new ApiError(400, "path must be the absolute path of a bundle's folder on the runtime's machine");
  }
  if (bundleId !== undefined && typeof bundleId !== "string")
    throw new ApiError(400, "bundle_id must be a string");
  return bundles.registerFolder({ path, ...(bundleId !== undefined && { bundleId }) });
}

async function upload({ bundles }: RuntimeServices, request: FastifyRequest): Promise<BundleRecord> {
  const part = await request.file();
  if (part === undefined || part.fieldname !== "bundle") {
    throw new ApiError(400, "the upload needs one file in the form field bundle, a zip archive");
  }
  try {
    return await bundles.registerZip({ file: part.file });
  } catch (error) {
    if (error instanceof BundleProblem && isUploadTooLarge(error)) throw tooLarge();
    throw error;
  }
}

const tooLarge = () => new ApiError(413, "the zip is larger than SVC_BUNDLE_MAX_BYTES allows");

function render(record: BundleRecord) {
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
