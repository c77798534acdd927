// The graphs that are measured.

import type { JsonObject } from "../src/engine/json.ts";

const base = (graphId: string, inputs: number): JsonObject => ({
  manifest_version: "1.0",
  graph_id: graphId,
  entrypoints: ["in"],
  initial_inputs: { in: Array.from({ length: inputs }, (_, n) => ({ n })) },
});

/** A router and an aggregator: one message each. */
export const pair: JsonObject = {
  ...base("pair", 1),
  nodes: [
    { node_id: "in", agent_type: "router", config: { emit_type: "work" } },
    { node_id: "out", agent_type: "aggregator", config: { complete_on_message: true } },
  ],
  edges: [{ from_node: "in", to_node: "out", message_type: "work" }],
};

/** One router, `width` routers, one aggregator. */
export function fan(width: number, inputs: number): JsonObject {
  const workers = Array.from({ length: width }, (_, i) => `w${i}`);
  return {
    ...base("fan", inputs),
    nodes: [
      { node_id: "in", agent_type: "router", config: { emit_type: "work" } },
      ...workers.map((id) => ({ node_id: id, agent_type: "router", config: { emit_type: "done" } })),
      { node_id: "out", agent_type: "aggregator", config: { complete_after: width * inputs } },
    ],
    edges: workers.flatMap((id) => [
      { from_node: "in", to_node: id, message_type: "work" },
      { from_node: id, to_node: "out", message_type: "done" },
    ]),
  };
}

export function chain(length: number): JsonObject {
  const names = ["in", ...Array.from({ length: length - 1 }, (_, i) => `n${i}`)];
  return {
    ...base("chain", 1),
    nodes: [
      ...names.map((id) => ({ node_id: id, agent_type: "router", config: { emit_type: "hop" } })),
      { node_id: "out", agent_type: "aggregator", config: { complete_on_message: true } },
    ],
    edges: names.map((id, i) => ({ from_node: id, to_node: names[i + 1] ?? "out", message_type: "hop" })),
  };
}

/** `count` agents with a command each, as many at once as there are slots. */
export function manyCommands(count: number, command: readonly string[]): JsonObject {
  const { nodes, edges, ...graph } = fan(count, 1) as {
    nodes: JsonObject[];
    edges: JsonObject[];
  } & JsonObject;
  const asCommand = (node: JsonObject) =>
    /^w\d+$/.test(String(node.node_id))
      ? { ...node, agent_type: "executor", config: { command: [...command], output_message_type: "done" } }
      : node;
  return { ...graph, nodes: nodes.map(asCommand), edges };
}

/** `count` commands, one after the other. */
export function commands(count: number, command: readonly string[]): JsonObject {
  return {
    ...base("commands", count),
    nodes: [
      { node_id: "in", agent_type: "router", config: { emit_type: "work" } },
      { node_id: "run", agent_type: "executor", config: { command } },
      { node_id: "out", agent_type: "aggregator", config: { complete_after: count } },
    ],
    edges: [
      { from_node: "in", to_node: "run" },
      { from_node: "run", to_node: "out" },
    ],
  };
}
