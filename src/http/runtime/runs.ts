// GET /runs/:run_id/artifacts, and each artifact's bytes.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { artifactEntry, fileNameOf, type StoredArtifact } from "../../runs/store/stored-artifact.ts";
import { sendFile } from "../core/file-answer.ts";
import { textStream } from "../core/text-stream.ts";
import { ApiError } from "./errors.ts";
import { readBoolean } from "./query.ts";
import type { RunRequest } from "./run-source.ts";
import type { RuntimeServices } from "./services.ts";

const FILES_PER_PAGE = 100;

type ArtifactRequest = { Params: { run_id: string; artifact_id: string } };

export function runRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { runStore } = services;
  api.get<RunRequest>("/runs/:run_id/artifacts", async (request, reply) => {
    const runId = request.params.run_id;
    const withEvidence = readBoolean(request.query, "evidence", true);
    const found = withEvidence ? await runStore.evidence(runId) : (await runStore.has(runId)) ? [] : null;
    if (found === null) throw new ApiError(404, `Run ${runId} was not found`);
    reply.type("application/json; charset=utf-8");
    return textStream(listAll(services, runId, found));
  });

  const path = "/runs/:run_id/artifacts/:artifact_id";
  const send = (request: FastifyRequest<ArtifactRequest>, reply: FastifyReply) =>
    sendArtifact(services, request, reply);
  // A route of its own: the framework's answer to HEAD would read the whole file for its length.
  api.head<ArtifactRequest>(path, send);
  api.get<ArtifactRequest>(path, send);
}

/** The evidence, then every file, a page at a time: never more of them in memory. */
async function* listAll({ runStore }: RuntimeServices, runId: string, evidence: readonly StoredArtifact[]) {
  yield `{"data":[${renderAll(runId, evidence)}`;
  let isFirst = evidence.length === 0;
  let after: string | null = null;
  for (;;) {
    const page: readonly StoredArtifact[] = await runStore.files(runId, FILES_PER_PAGE, after);
    const last = page.at(-1);
    if (last === undefined) break;
    yield (isFirst ? "" : ",") + renderAll(runId, page);
    isFirst = false;
    after = last.artifactId;
  }
  yield "]}";
}

function renderAll(runId: string, artifacts: readonly StoredArtifact[]): string {
  return artifacts.map((artifact) => JSON.stringify(renderArtifact(runId, artifact))).join(",");
}

/** Title and primary tell which outputs to show, as this API has no list of its own for them. */
function renderArtifact(runId: string, artifact: StoredArtifact) {
  return { ...artifactEntry(runId, artifact), title: artifact.title, primary: artifact.primary };
}

async function sendArtifact(
  { runStore }: RuntimeServices,
  request: FastifyRequest<ArtifactRequest>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { run_id: runId, artifact_id: artifactId } = request.params;
  const notFound = new ApiError(404, `Run ${runId} has no artifact ${artifactId}`);
  const artifact = await runStore.find(runId, artifactId);
  if (artifact === null) throw notFound;
  const { open, size, sha256, contentType } = artifact;
  try {
    const fileName = fileNameOf(artifact);
    return await sendFile(request, reply, { open, sizeBytes: size, sha256, contentType, fileName });
  } catch (error) {
    // It was removed just now.
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? notFound : error;
  }
}
