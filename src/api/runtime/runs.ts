// GET /runs/:run_id/artifacts, and each artifact's bytes.

import { createReadStream } from "node:fs";
import type { FastifyInstance } from "fastify";
import { ApiError } from "./errors.ts";
import { renderArtifact } from "./render.ts";
import type { RuntimeServices } from "./services.ts";

export function runRoutes(api: FastifyInstance, { records, blobPath }: RuntimeServices): void {
  api.get<{ Params: { run_id: string } }>("/runs/:run_id/artifacts", async (request) => {
    const runId = request.params.run_id;
    if ((await records.findRun(runId)) === null) throw new ApiError(404, `Run ${runId} was not found`);
    const artifacts = await records.artifacts(runId);
    return { data: artifacts.map((artifact) => renderArtifact(runId, artifact)) };
  });

  api.get<{ Params: { run_id: string; artifact_id: string } }>(
    "/runs/:run_id/artifacts/:artifact_id",
    async (request, reply) => {
      const { run_id: runId, artifact_id: artifactId } = request.params;
      const artifact = await records.artifact(runId, artifactId);
      const path = artifact === null ? null : await blobPath(artifact.sha256);
      if (artifact === null || path === null) {
        throw new ApiError(404, `Run ${runId} has no artifact ${artifactId}`);
      }
      const fileName = artifact.name.split("/").at(-1) ?? artifactId;
      return reply
        .headers({
          "content-type": artifact.contentType,
          "content-length": artifact.size,
          etag: `"${artifact.sha256}"`,
          "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(fileName)}`,
          "x-content-type-options": "nosniff",
        })
        .send(createReadStream(path));
    },
  );
}
