// What a run made, and its records as files: GET /runs/{run_id}/artifacts and each artifact's bytes, in both APIs; in the
// gateway also GET /runs/{run_id}/outputs.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { comparePlaces, historyPlace } from "../../runs/store/history-names.ts";
import type { RunStore } from "../../runs/store/run-store.ts";
import {
  artifactEntry,
  artifactKinds,
  fileNameOf,
  type StoredArtifact,
} from "../../runs/store/stored-artifact.ts";
import { sendFile } from "../core/file-answer.ts";
import type { Position } from "../core/page-token.ts";
import { shown } from "../core/problem.ts";
import { addRoutes, get } from "../core/route.ts";
import { runNotFound } from "../core/runtime-errors.ts";
import { Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import { findRun, type RunParts } from "./find-run.ts";
import { type List, type PageParts, sendPage } from "./lists.ts";
import { pageOf, pageQuery } from "./schemas.ts";

export interface Parts {
  readonly runStore: RunStore;
}

const artifact = {
  artifact_id: Type.String({ examples: ["art_01k9z1v7m3e8q2x4c6t8b0n5dj"] }),
  name: Type.String("Of a worker's file, below its SVC_OUTPUT_DIR.", { examples: ["report/summary.html"] }),
  kind: Type.OneOf(
    artifactKinds,
    "evidence: what is told of the run, under stable ids. output: what the run was for.",
  ),
  size: Type.Integer("Bytes.", { examples: [18_211] }),
  sha256: Type.String("64 hex digits; also the ETag of the bytes."),
  content_type: Type.String({ examples: ["text/html; charset=utf-8"] }),
  url: Type.String("Where its bytes are; good as long as the run is."),
  created_at: Type.Time("When it was kept; of evidence, when the run was created."),
  producer: Type.Nullable(Type.String("The agent that made it; null for evidence.")),
};

const ArtifactSchema = Type.Object(artifact);

const ArtifactPageSchema = pageOf(
  ArtifactSchema,
  "artifacts, evidence first in a fixed order, then oldest first",
);

const OutputSchema = Type.Object({
  ...artifact,
  title: Type.Nullable(Type.String("For people.", { examples: ["The weekly digest"] })),
  primary: Type.Boolean("What to show first."),
});

const OutputPageSchema = pageOf(OutputSchema, "outputs, primary ones first, then oldest first");

const ArtifactsQuery = Type.Input({
  evidence: Type.Boolean("false leaves out the run's evidence, and spares the making of it.", {
    default: true,
  }),
  ...pageQuery,
});

const ArtifactHeaders = Type.Input({
  range: Type.String("One range of bytes; of several, all is sent.", { examples: ["bytes=0-1023"] }),
  "if-range": Type.String("The ETag that the range is meant for."),
  "if-none-match": Type.String("ETags that the client has."),
});

const bytesOf = (description: string) => ({
  description,
  content: { "application/octet-stream": { schema: Type.String({ format: "binary" }) } },
});

/** By the names that clients see. */
export const schemas = {
  Artifact: ArtifactSchema,
  ArtifactPage: ArtifactPageSchema,
  Output: OutputSchema,
  OutputPage: OutputPageSchema,
};

export function routes(api: Api, parts: Parts): void {
  const { runStore } = parts;
  const isGateway = api.name === "gateway";

  api.add("runs", [
    get("/runs/:run_id/artifacts", {
      operationId: "listRunArtifacts",
      summary: "List the artifacts of a run",
      description:
        "Its evidence under stable ids (kind evidence: run, config, inputs, result, final_artifact, observability_summary_json, events_jsonl, logs_jsonl, errors_jsonl, timeline_jsonl, timeline_json, and full segments such as events_jsonl_001), then every file that its workers left in SVC_OUTPUT_DIR, outputs included. While the run goes on, evidence grows; what is listed is one reading of it.",
      query: ArtifactsQuery,
      answers: { 200: ArtifactPageSchema },
      handle: async (request, reply) => {
        const { run_id: runId } = request.params;
        // The runtime API shows the artifacts of any run, also of one that it does not have yet.
        if (isGateway) await api.findRun(runId);
        else if (!(await runStore.has(runId))) throw runNotFound(runId);
        const list = artifactsOf(parts, runId, request.query.evidence ?? true);
        return api.sendList(request, reply, {
          ...list,
          // The runtime API has no list of outputs: title and primary tell which artifacts to show.
          ...(!isGateway && { render: ({ artifact }) => JSON.stringify(withTitle(runId, artifact)) }),
        });
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
        304: Type.Null("The client has it already."),
      },
      problems: ["range_not_satisfiable"],
      answersHead: true,
      handle: async (request, reply) => {
        if (isGateway) await api.findRun(request.params.run_id);
        return sendArtifact(parts, request, reply);
      },
    }),
  ]);
}

export function gatewayRoutes(app: FastifyInstance, parts: RunParts & PageParts): void {
  addRoutes(app, "runs", [
    get("/runs/:run_id/outputs", {
      operationId: "listRunOutputs",
      summary: "List the outputs of a run",
      description:
        "The artifacts that the run was for: those that its manifest or a worker's result names, and final_artifact.* Of several that one producer has made under one name, the newest; older ones are artifacts.",
      query: Type.Input(pageQuery),
      answers: { 200: OutputPageSchema },
      handle: async (request, reply) => {
        const { runId } = await findRun(parts, request.params.run_id);
        return sendPage(parts, request, reply, outputsOf(parts, runId));
      },
    }),
  ]);
}

export function artifactNotFound(runId: string, artifactId: string): DomainError {
  return new DomainError(
    "artifact_not_found",
    `Run ${shown(runId)} has no artifact ${shown(artifactId)}. GET /api/v1/runs/${encodeURIComponent(runId)}/artifacts lists those it has.`,
  );
}

function outputsOf({ journal }: RunParts, runId: string): List<ArtifactRecord> {
  return {
    rows: (limit, after) =>
      journal.outputPage(
        runId,
        limit,
        after === null ? null : { primary: after[0] === 1, artifactId: String(after[1]) },
      ),
    positionOf: ({ primary, artifactId }) => [primary ? 1 : 0, artifactId],
    render: (artifact) => JSON.stringify(withTitle(runId, artifact)),
  };
}

function withTitle(runId: string, artifact: StoredArtifact | ArtifactRecord) {
  return { ...artifactEntry(runId, artifact), title: artifact.title, primary: artifact.primary };
}

/** The parts of a list: the first element of a sort key, before the place in that part. */
const HISTORY = 0;
const FILES = 1;

interface Listed {
  readonly artifact: StoredArtifact;
  readonly position: Position;
}

/** The files of its history first, then those of its workers: ids are made in the order of time. */
function artifactsOf({ runStore }: Parts, runId: string, withHistory: boolean): List<Listed> {
  return {
    async rows(limit, after) {
      const [part = HISTORY, ...place] = after ?? [];
      const rows: Listed[] = [];
      if (withHistory && part === HISTORY) {
        const historyFiles = (await runStore.historyFiles(runId)) ?? [];
        const behind = historyFiles
          .map(listedHistoryFile)
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

function listedHistoryFile(artifact: StoredArtifact) {
  const place = historyPlace(artifact.artifactId);
  return { artifact, place, position: [HISTORY, ...place] };
}

async function sendArtifact(
  { runStore }: Parts,
  request: FastifyRequest<{ Params: { run_id: string; artifact_id: string } }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { run_id: runId, artifact_id: artifactId } = request.params;
  const artifact = await runStore.find(runId, artifactId);
  if (artifact === null) throw artifactNotFound(runId, artifactId);
  const { open, size, sha256, contentType } = artifact;
  try {
    const fileName = fileNameOf(artifact);
    return await sendFile(request, reply, { open, sizeBytes: size, sha256, contentType, fileName });
  } catch (error) {
    // It was removed in the meantime.
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? artifactNotFound(runId, artifactId) : error;
  }
}
