// Manifests for tests, in as few words as the test itself needs.

import type { JsonObject, JsonValue } from "../../src/engine/json.ts";

/** [from, to], or [from, to, message type]. */
export type Edge = readonly [from: string, to: string, messageType?: string];

/** A manifest whose one entrypoint is the first node, unless `more` names others. */
export function graph(
  graphId: string,
  nodes: readonly JsonObject[],
  edges: readonly Edge[] = [],
  more: JsonObject = {},
): JsonObject {
  return {
    manifest_version: "1.0",
    graph_id: graphId,
    entrypoints: nodes.slice(0, 1).map((node) => node.node_id ?? null),
    nodes,
    edges: edges.map(([from_node, to_node, message_type]) => ({
      from_node,
      to_node,
      ...(message_type !== undefined && { message_type }),
    })),
    ...more,
  };
}

const node =
  (agent_type: string) =>
  (node_id: string, config: JsonObject = {}): JsonObject => ({ node_id, agent_type, config });

export const router = node("router");
export const aggregator = node("aggregator");
export const sensor = node("sensor");
export const module = node("module");

/** An executor; a command that is one string goes through the shell. */
export function executor(node_id: string, command: JsonValue, config: JsonObject = {}): JsonObject {
  return { node_id, agent_type: "executor", config: { command, ...config } };
}

/** The shell command that prints a result object for the runtime. */
export function answer(result: JsonObject): string {
  return `printf '%s\\n' '${JSON.stringify(result).replaceAll("'", "'\\''")}'`;
}
