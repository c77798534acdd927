// GET /jobs/:job_id/agent-graph: the nodes and edges of a job's manifest, for drawing.

import type { FastifyInstance } from "fastify";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { jobNotFound } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

export function agentGraphRoutes(api: FastifyInstance, { records }: RuntimeServices): void {
  api.get<{ Params: { job_id: string } }>("/jobs/:job_id/agent-graph", async (request) => {
    const { job_id: jobId } = request.params;
    const texts = await records.texts(jobId);
    if (texts === null) throw jobNotFound(jobId);
    const manifest = JSON.parse(texts.manifestJson) as JsonObject;
    return {
      nodes: objects(manifest.nodes).map(({ node_id, agent_type, type, role }) => ({
        node_id,
        agent_type,
        type: type ?? "generic",
        ...(role != null && { role }),
      })),
      edges: objects(manifest.edges).map(({ edge_id, from_node, to_node, message_type }) => ({
        ...(edge_id != null && { edge_id }),
        from_node,
        to_node,
        ...(message_type != null && { message_type }),
      })),
    };
  });
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
