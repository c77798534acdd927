// GET /runs/{run_id}/artifacts and /outputs, and each artifact's bytes.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { ArtifactRecord } from "../../engine/ports.ts";
import { artifactUrl } from "../../runs/evidence/run-context.ts";
import { sendFile } from "../shared/file-answer.ts";
import { Problem, shown } from "../shared/problem.ts";
import type { Static } from "../shared/type.ts";
import { type List, sendPage } from "./page.ts";
import { findRun } from "./run-source.ts";
import { nothing, responses } from "./schemas/common.ts";
import {
  ArtifactHeaders,
  ArtifactPageSchema,
  ArtifactParams,
  ArtifactsQuery,
  bytesOf,
  OutputPageSchema,
} from "./schemas/evidence.ts";
import { RunIdParams } from "./schemas/runs.ts";
import type { GatewayServices } from "./services.ts";

type RunParams = { Params: Static<typeof RunIdParams> };
type FileParams = { Params: Static<typeof ArtifactParams> };

export function runFileRoutes(api: FastifyInstance, services: GatewayServices): void {
  api.get<RunParams>(
    "/runs/:run_id/artifacts",
    {
      schema: {
        operationId: "listRunArtifacts",
        tags: ["runs"],
        summary: "List the artifacts of a run",
        description: "Every file that its workers left in SVC_OUTPUT_DIR, outputs included.",
        params: RunIdParams,
        querystring: ArtifactsQuery,
        response: responses({ 200: ArtifactPageSchema }, [
          "invalid_parameter",
          "invalid_page_token",
          "run_not_found",
        ]),
      },
    },
    (request, reply) => sendFiles(services, request, reply, artifacts),
  );

  api.get<RunParams>(
    "/runs/:run_id/outputs",
    {
      schema: {
        operationId: "listRunOutputs",
        tags: ["runs"],
        summary: "List the outputs of a run",
        description:
          "The artifacts that the run was for: those that its manifest or a worker's result names, and final_artifact.*",
        params: RunIdParams,
        querystring: ArtifactsQuery,
        response: responses({ 200: OutputPageSchema }, [
          "invalid_parameter",
          "invalid_page_token",
          "run_not_found",
        ]),
      },
    },
    (request, reply) => sendFiles(services, request, reply, outputs),
  );

  const schema = {
    operationId: "getRunArtifact",
    tags: ["runs"],
    summary: "Download an artifact",
    description:
      "Its bytes, as a download under its own name and content type. The ETag is their SHA-256; one range of bytes can be asked for.",
    params: ArtifactParams,
    headers: ArtifactHeaders,
    response: responses(
      {
        200: bytesOf("The whole file."),
        206: bytesOf("The range that was asked for."),
        304: nothing("The client has it already."),
      },
      ["run_not_found", "artifact_not_found", "range_not_satisfiable"],
    ),
  };
  const path = "/runs/:run_id/artifacts/:artifact_id";
  const handler = (request: FastifyRequest<FileParams>, reply: FastifyReply) =>
    sendArtifact(services, request, reply);
  // A route of its own: the framework's answer to HEAD would read the whole file for its length.
  api.head<FileParams>(path, { schema: { ...schema, hide: true } }, handler);
  api.get<FileParams>(path, { schema }, handler);
}

// ------------------------------------------------------------------------------------------------ lists

/** Ids are made in the order of time. */
function artifacts({ journal }: GatewayServices, runId: string): List<ArtifactRecord> {
  return {
    rows: (limit, after) => journal.artifactPage(runId, limit, after === null ? null : String(after[0])),
    positionOf: ({ artifactId }) => [artifactId],
    render: (artifact) => JSON.stringify(renderArtifact(runId, artifact)),
  };
}

function outputs({ journal }: GatewayServices, runId: string): List<ArtifactRecord> {
  return {
    rows: (limit, after) =>
      journal.outputPage(
        runId,
        limit,
        after === null ? null : { primary: after[0] === 1, artifactId: String(after[1]) },
      ),
    positionOf: ({ primary, artifactId }) => [primary ? 1 : 0, artifactId],
    render: (artifact) => JSON.stringify(renderOutput(runId, artifact)),
  };
}

async function sendFiles(
  services: GatewayServices,
  request: FastifyRequest<RunParams>,
  reply: FastifyReply,
  list: typeof artifacts,
): Promise<FastifyReply> {
  const { runId } = await findRun(services, request.params.run_id);
  return sendPage(services, request, reply, list(services, runId));
}

function renderArtifact(runId: string, artifact: ArtifactRecord) {
  return {
    artifact_id: artifact.artifactId,
    name: artifact.name,
    kind: artifact.kind,
    size: artifact.size,
    sha256: artifact.sha256,
    content_type: artifact.contentType,
    url: artifactUrl(runId, artifact.artifactId),
    created_at: isoTime(artifact.createdAtMs),
    producer: artifact.agentId,
  };
}

function renderOutput(runId: string, artifact: ArtifactRecord) {
  return { ...renderArtifact(runId, artifact), title: artifact.title, primary: artifact.primary };
}

// ------------------------------------------------------------------------------------------------ bytes

async function sendArtifact(
  services: GatewayServices,
  request: FastifyRequest<FileParams>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { run_id: runId, artifact_id: artifactId } = request.params;
  await findRun(services, runId);
  const artifact = await services.journal.artifact(runId, artifactId);
  const path = artifact === null ? null : await services.blobPath(artifact.sha256);
  if (artifact === null || path === null) throw artifactNotFound(runId, artifactId);
  try {
    return await sendFile(request, reply, {
      path,
      sizeBytes: artifact.size,
      sha256: artifact.sha256,
      contentType: artifact.contentType,
      fileName: artifact.name.split("/").at(-1) ?? artifactId,
    });
  } catch (error) {
    // It was removed just now.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw artifactNotFound(runId, artifactId);
    throw error;
  }
}

function artifactNotFound(runId: string, artifactId: string): Problem {
  return new Problem(
    "artifact_not_found",
    `Run ${shown(runId)} has no artifact ${shown(artifactId)}. GET /api/v1/runs/${encodeURIComponent(runId)}/artifacts lists those it has.`,
  );
}
