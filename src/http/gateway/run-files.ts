// GET /runs/{run_id}/artifacts and /outputs, and each artifact's bytes.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import { comparePlaces, evidencePlace } from "../../runs/store/evidence-names.ts";
import { artifactEntry, fileNameOf, type StoredArtifact } from "../../runs/store/stored-artifact.ts";
import { sendFile } from "../core/file-answer.ts";
import type { Position } from "../core/page-token.ts";
import { Problem, shown } from "../core/problem.ts";
import { addRoutes, get } from "../core/route.ts";
import { type List, sendPage } from "./page.ts";
import { findRun } from "./run-source.ts";
import {
  ArtifactHeaders,
  ArtifactPageSchema,
  ArtifactsQuery,
  bytesOf,
  OutputPageSchema,
  OutputsQuery,
} from "./schemas/artifacts.ts";
import { nothing } from "./schemas/common.ts";
import type { GatewayServices } from "./services.ts";

type FileParams = { Params: { run_id: string; artifact_id: string } };

export function runFileRoutes(api: FastifyInstance, services: GatewayServices): void {
  addRoutes(api, "runs", [
    get("/runs/:run_id/artifacts", {
      operationId: "listRunArtifacts",
      summary: "List the artifacts of a run",
      description:
        "Its evidence under stable ids (kind evidence: run, config, inputs, result, final_artifact, observability_summary_json, events_jsonl, logs_jsonl, errors_jsonl, timeline_jsonl, timeline_json, and full segments such as events_jsonl_001), then every file that its workers left in SVC_OUTPUT_DIR, outputs included. While the run goes on, evidence grows; what is listed is one reading of it.",
      query: ArtifactsQuery,
      answers: { 200: ArtifactPageSchema },
      handle: async (request, reply) => {
        const { runId } = await findRun(services, request.params.run_id);
        return sendPage(services, request, reply, artifacts(services, runId, request.query.evidence ?? true));
      },
    }),

    get("/runs/:run_id/outputs", {
      operationId: "listRunOutputs",
      summary: "List the outputs of a run",
      description:
        "The artifacts that the run was for: those that its manifest or a worker's result names, and final_artifact.* Of several that one producer has made under one name, the newest; older ones are artifacts.",
      query: OutputsQuery,
      answers: { 200: OutputPageSchema },
      handle: async (request, reply) => {
        const { runId } = await findRun(services, request.params.run_id);
        return sendPage(services, request, reply, outputs(services, runId));
      },
    }),

    get("/runs/:run_id/artifacts/:artifact_id", {
      operationId: "getRunArtifact",
      summary: "Download an artifact",
      description:
        "An artifact's bytes, as a download under its own name and content type. The ETag is their SHA-256; one range of bytes can be asked for.",
      headers: ArtifactHeaders,
      answers: {
        200: bytesOf("The whole file."),
        206: bytesOf("The range that was asked for."),
        304: nothing("The client has it already."),
      },
      problems: ["range_not_satisfiable"],
      answersHead: true,
      handle: (request, reply) => sendArtifact(services, request, reply),
    }),
  ]);
}

// ------------------------------------------------------------------------------------------------ lists

/** Where the part of a list begins that an artifact stands in; the sort key goes on with its place there. */
const EVIDENCE = 0;
const FILES = 1;

interface Listed {
  readonly artifact: StoredArtifact;
  readonly position: Position;
}

/** Evidence first, then what workers left: ids are made in the order of time. */
function artifacts({ runStore }: GatewayServices, runId: string, withEvidence: boolean): List<Listed> {
  return {
    async rows(limit, after) {
      const [part = EVIDENCE, ...place] = after ?? [];
      const rows: Listed[] = [];
      if (withEvidence && part === EVIDENCE) {
        const evidence = (await runStore.evidence(runId)) ?? [];
        const behind = evidence
          .map(listedEvidence)
          .filter((one) => comparePlaces(one.place, place.map(Number)) > 0);
        rows.push(...behind.slice(0, limit));
      }
      if (rows.length === limit) return rows;
      const afterId = part === FILES ? String(place[0]) : null;
      const files = await runStore.files(runId, limit - rows.length, afterId);
      return [...rows, ...files.map((artifact) => ({ artifact, position: [FILES, artifact.artifactId] }))];
    },
    positionOf: ({ position }) => position,
    render: ({ artifact }) => JSON.stringify(artifactEntry(runId, artifact)),
  };
}

function listedEvidence(artifact: StoredArtifact) {
  const place = evidencePlace(artifact.artifactId);
  return { artifact, place, position: [EVIDENCE, ...place] };
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

function renderOutput(runId: string, artifact: ArtifactRecord) {
  return { ...artifactEntry(runId, artifact), title: artifact.title, primary: artifact.primary };
}

// ------------------------------------------------------------------------------------------------ bytes

async function sendArtifact(
  services: GatewayServices,
  request: FastifyRequest<FileParams>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { run_id: runId, artifact_id: artifactId } = request.params;
  await findRun(services, runId);
  const artifact = await services.runStore.find(runId, artifactId);
  if (artifact === null) throw artifactNotFound(runId, artifactId);
  const { open, size, sha256, contentType } = artifact;
  try {
    const fileName = fileNameOf(artifact);
    return await sendFile(request, reply, { open, sizeBytes: size, sha256, contentType, fileName });
  } catch (error) {
    // It was removed just now.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw artifactNotFound(runId, artifactId);
    throw error;
  }
}

export function artifactNotFound(runId: string, artifactId: string): Problem {
  return new Problem(
    "artifact_not_found",
    `Run ${shown(runId)} has no artifact ${shown(artifactId)}. GET /api/v1/runs/${encodeURIComponent(runId)}/artifacts lists those it has.`,
  );
}
