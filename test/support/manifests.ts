// Small graphs for tests.

import type { JsonObject, JsonValue } from "../../src/engine/json.ts";

/** A manifest of the given nodes; the first one is the entrypoint, and edges are written "from>to". */
export function graph(
  graphId: string,
  nodes: readonly JsonObject[],
  edges: readonly string[] = [],
  rest: JsonObject = {},
): JsonObject {
  return {
    manifest_version: "1.0",
    graph_id: graphId,
    entrypoints: [nodes[0]?.node_id ?? null],
    nodes: [...nodes],
    edges: edges.map((edge) => {
      const [from_node = "", to_node = ""] = edge.split(">");
      return { from_node, to_node };
    }),
    ...rest,
  };
}

/** An executor; a command that is one string runs through the shell. */
export function executor(
  nodeId: string,
  command: string | readonly string[],
  config: JsonObject = {},
): JsonObject {
  const words: JsonValue = typeof command === "string" ? command : [...command];
  return { node_id: nodeId, agent_type: "executor", config: { command: words, ...config } };
}

/** A graph of one executor. */
export function oneCommand(
  graphId: string,
  command: string | readonly string[],
  config: JsonObject = {},
): JsonObject {
  return graph(graphId, [executor("worker", command, config)]);
}
