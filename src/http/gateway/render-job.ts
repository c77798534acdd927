// A job as the gateway shows it.

import { isoTime } from "../../engine/event.ts";
import type { Graph } from "../../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import type { JobView } from "../../launch/records.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { listText } from "../core/text-stream.ts";
import { renderRunSummary } from "./render-run.ts";

/** The members of a job, without the braces, so that the full view can add its own. */
export function renderJobMembers(job: JobView, secrets: ConfigurationSecrets): string {
  const { source } = job;
  const shownSource =
    source.kind === "bundle" ? { bundle_id: source.bundleId } : { blueprint_id: source.blueprintId };
  return (
    `"job_id":${JSON.stringify(job.jobId)},"name":${JSON.stringify(job.name)},"status":"${job.status}",` +
    `"source":${JSON.stringify(shownSource)},"graph_id":${JSON.stringify(job.graphId)},` +
    `"resolved_configuration":${renderConfiguration(job.configurationJson, secrets)},` +
    `"extensions":${JSON.stringify(job.extensions)},"revision":${job.revision},` +
    `"created_at":"${isoTime(job.createdAtMs)}","updated_at":"${isoTime(job.updatedAtMs)}",` +
    `"latest_run":${job.latestRun === null ? "null" : renderRunSummary(job.latestRun)},` +
    `"active_runs":${job.activeRuns}`
  );
}

export function renderJob(job: JobView, secrets: ConfigurationSecrets): string {
  return `{${renderJobMembers(job, secrets)}}`;
}

function renderConfiguration(configurationJson: string, secrets: ConfigurationSecrets): string {
  if (configurationJson === "{}") return "{}";
  return JSON.stringify(secrets.mask(JSON.parse(configurationJson) as JsonObject));
}

/** Nodes and edges for drawing, a few at a time: of an edge only what is drawn, whatever else the manifest says of it. */
export function* renderGraph(graph: Graph, manifest: JsonObject): Generator<string> {
  yield '{"nodes":';
  yield* listText(graph.nodes, (nodes) =>
    JSON.stringify(
      nodes.map(({ nodeId, agentType, role }) => ({ node_id: nodeId, agent_type: agentType, role })),
    ),
  );
  yield ',"edges":';
  yield* listText(objectsIn(manifest.edges), (edges) =>
    JSON.stringify(
      edges.map(({ edge_id, from_node, to_node, message_type }) => ({
        edge_id: edge_id ?? null,
        from_node,
        to_node,
        message_type: message_type ?? null,
      })),
    ),
  );
  const entrypoints = graph.entrypoints.map((index) => graph.nodes[index]?.nodeId);
  yield `,"entrypoints":${JSON.stringify(entrypoints)}}`;
}

/** The objects of a list that a manifest may have. */
export function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
