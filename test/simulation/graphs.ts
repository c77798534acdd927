// Random graphs, and an independent model of what each agent must have processed in the end: plain arithmetic over
// the edges, knowing nothing of mailboxes, batches or crashes.

import type { JsonObject } from "../../src/engine/json.ts";
import type { Random } from "./random.ts";
import { resourcesOf } from "./sim-machine.ts";

export interface Scenario {
  readonly manifest: JsonObject;
  readonly shape: "dag" | "cycle" | "service" | "deadline" | "failing" | "crowded";
  /** Messages each agent has processed when the job completes; null when that depends on timing. */
  readonly expected: ReadonlyMap<string, number> | null;
  /** Bodies in the result; null when there is no aggregator at the end. */
  readonly resultCount: number | null;
  /** Whether the job goes on until no message is left. */
  readonly drains: boolean;
}

interface Node {
  readonly id: string;
  readonly kind: "router" | "executor" | "module" | "sensor" | "aggregator";
  /** What its tasks do, which is also how the node is called: see sim-runner.ts. */
  readonly habit: Habit | null;
  /** What an attempt may take, in seconds. */
  readonly timeoutSeconds: number;
}

type Habit = "fails" | "refuses" | "hangs" | "asks" | "wonders" | "writes";

/** @param isCrowded whether mailboxes hold a few messages only: then no graph may need that all of them arrive */
export function randomScenario(random: Random, index: number, isCrowded: boolean): Scenario {
  if (isCrowded) return random.chance(0.7) ? crowd(random, index) : service(random, index, false);
  const roll = random.fraction();
  if (roll < 0.15) return cycle(random, index);
  if (roll < 0.3) return service(random, index, false);
  if (roll < 0.36) return service(random, index, true);
  return dag(random, index, roll > 0.9);
}

/** Layers of agents; every edge leads to a later layer. The last layer is one aggregator. */
function dag(random: Random, index: number, withFailure: boolean): Scenario {
  const layers: Node[][] = [];
  const depth = random.between(1, 4);
  let count = 0;
  for (let layer = 0; layer < depth; layer++) {
    layers.push(
      Array.from({ length: random.between(1, 4) }, (_, place) => {
        const kind = layer === 0 ? firstKind(random, place) : random.pick(innerKinds);
        const habit = randomHabit(random, kind, withFailure);
        return {
          id: `${habit ?? kind}_${count++}`,
          kind,
          habit,
          timeoutSeconds: randomTimeout(random, habit),
        };
      }),
    );
  }
  layers.push([{ id: "out", kind: "aggregator", habit: null, timeoutSeconds: 0 }]);
  const edges = connect(random, layers);
  const nodes = layers.flat();
  const entrypoints = layers[0]!.filter(({ kind }) => kind === "router").map((node) => node.id);
  const inputs = Object.fromEntries(
    entrypoints.map((id) => [id, Array.from({ length: random.between(1, 5) }, (_, n) => ({ from: id, n }))]),
  );
  const expected = model(nodes, edges, inputs);
  const arriving = expected.get("out") ?? 0;
  const completes = !withFailure && arriving > 0 && random.chance(0.6);
  const companions = !withFailure && random.chance(0.2) ? [failingCompanion] : [];
  return {
    shape: withFailure ? "failing" : "dag",
    expected,
    resultCount: arriving,
    drains: !completes,
    manifest: {
      ...head(`dag${index}`, random),
      policies: { failure_policy: withFailure ? "continue" : "fail_run" },
      entrypoints,
      initial_inputs: inputs,
      nodes: [...nodes.map((node) => manifestNode(node, completes ? arriving : null)), ...companions],
      edges,
    },
  };
}

/** Beside the graph, and without any part in how the job ends. */
const failingCompanion: JsonObject = {
  node_id: "fails_beside",
  agent_type: "executor",
  config: {
    command: ["true"],
    lifecycle: "long_lived",
    optional: true,
    max_attempts: 3,
    retry_backoff_ms: 100,
    output_message_type: null,
  },
};

const innerKinds = ["router", "executor", "executor", "module", "aggregator"] as const;

/** Every graph has an entrypoint. */
function firstKind(random: Random, place: number): "router" | "sensor" {
  return place > 0 && random.chance(0.25) ? "sensor" : "router";
}

function randomHabit(random: Random, kind: Node["kind"], withFailure: boolean): Habit | null {
  if (kind === "router" || kind === "aggregator") return null;
  if (withFailure && kind === "sensor") return random.chance(0.5) ? "refuses" : null;
  if (withFailure) return random.pick(["fails", "refuses", "hangs"] as const);
  return kind === "executor" && random.chance(0.3)
    ? random.pick(["asks", "wonders", "writes"] as const)
    : null;
}

/** Who waits for a person has all the time in the world; 300 s are the default. */
function randomTimeout(random: Random, habit: Habit | null): number {
  if (habit === "asks" || habit === "wonders") return 0;
  // What took too long would be tried again.
  if (habit === "refuses") return 300;
  return habit === "hangs" || random.chance(0.4) ? random.pick([0.25, 1, 2]) : 300;
}

function head(graphId: string, random: Random): JsonObject {
  return {
    manifest_version: "1.0",
    graph_id: graphId,
    job_name: random.chance(0.5) ? "a name" : null,
    services: random.chance(0.3) ? [{ name: "whole", port: 1 }] : [],
  } as JsonObject;
}

interface Edge {
  readonly [key: string]: string;
  readonly from_node: string;
  readonly to_node: string;
}

/** Each node has one to three edges to later layers; some name the message type, some carry everything. */
function connect(random: Random, layers: readonly (readonly Node[])[]): Edge[] {
  const edges: Edge[] = [];
  for (const [at, layer] of layers.slice(0, -1).entries()) {
    for (const node of layer) {
      const targets = new Set(
        Array.from(
          { length: random.between(1, 3) },
          () => random.pick(layers[random.between(at + 1, layers.length - 1)]!).id,
        ),
      );
      for (const to of targets) {
        edges.push({ from_node: node.id, to_node: to, ...(random.chance(0.5) && { message_type: "work" }) });
      }
    }
  }
  return edges;
}

function manifestNode(node: Node, completeAfter: number | null): JsonObject {
  const { id: node_id, kind, timeoutSeconds } = node;
  const tried = {
    max_attempts: 3,
    retry_backoff_ms: 100,
    ...(timeoutSeconds !== 300 && { timeout_seconds: timeoutSeconds }),
  };
  switch (kind) {
    case "router":
      return { node_id, agent_type: kind, config: { emit_type: "work" } };
    case "sensor":
      return {
        node_id,
        agent_type: kind,
        config: { file: `/inbox/${node_id}`, output_message_type: "work" },
      };
    case "module":
      return { node_id, agent_type: kind, config: { module: "work.mjs", ...tried } };
    case "executor": {
      // Every other one of them offers something while its command runs.
      const services = node_id.length % 2 === 0 ? [{ name: node_id, port: 1 }] : [];
      const config = { command: ["true"], ...tried, output_message_type: null };
      return { node_id, agent_type: kind, config, services, ...resourcesOf(node_id) };
    }
    case "aggregator": {
      const config = node_id === "out" ? { complete_after: completeAfter } : { output_message_type: "work" };
      return { node_id, agent_type: kind, config: dropNulls(config) };
    }
    default:
      return kind satisfies never;
  }
}

function dropNulls(given: Record<string, number | string | null>): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function model(
  nodes: readonly Node[],
  edges: readonly Edge[],
  inputs: Record<string, unknown[]>,
): Map<string, number> {
  const received = new Map(nodes.map((node) => [node.id, inputs[node.id]?.length ?? 0]));
  // Nodes stand layer by layer, so that every sender comes before its receivers.
  for (const node of nodes) {
    const got = received.get(node.id)!;
    const emitted = emittedBy(node, got);
    for (const edge of edges) {
      if (edge.from_node === node.id) received.set(edge.to_node, received.get(edge.to_node)! + emitted);
    }
    // Each message, and the answer to the question that came of it.
    if (node.habit === "writes") received.set(node.id, 2 * got);
  }
  return received;
}

function emittedBy({ habit, kind }: Node, got: number): number {
  if (habit === "fails" || habit === "refuses" || habit === "hangs") return 0;
  if (kind === "sensor") return 1;
  return kind === "aggregator" ? Math.min(got, 1) : got;
}

/** More messages than fit into the mailboxes, in one line, so that it is plain what became of each. */
function crowd(random: Random, index: number): Scenario {
  const kind = random.pick(["router", "executor", "module"] as const);
  const inputs = Array.from({ length: random.between(1, 12) }, (_, n) => ({ n }));
  return {
    shape: "crowded",
    expected: null,
    resultCount: null,
    drains: true,
    manifest: {
      ...head(`crowd${index}`, random),
      entrypoints: ["door"],
      initial_inputs: { door: inputs },
      nodes: [
        manifestNode({ id: "door", kind: "router", habit: null, timeoutSeconds: 300 }, null),
        manifestNode({ id: "worker", kind, habit: null, timeoutSeconds: randomTimeout(random, null) }, null),
        manifestNode({ id: "out", kind: "aggregator", habit: null, timeoutSeconds: 300 }, null),
      ],
      edges: [
        { from_node: "door", to_node: "worker" },
        { from_node: "worker", to_node: "out", message_type: "work" },
      ],
    },
  };
}

/** A ring that would go round for ever; an aggregator beside it ends the run. */
function cycle(random: Random, index: number): Scenario {
  const bound = random.between(1, 60);
  const kind = random.pick(["router", "router", "executor", "module"] as const);
  return {
    shape: "cycle",
    expected: null,
    resultCount: bound,
    drains: false,
    manifest: {
      ...head(`cycle${index}`, random),
      entrypoints: ["a"],
      nodes: [
        manifestNode({ id: "a", kind: "router", habit: null, timeoutSeconds: 300 }, null),
        manifestNode({ id: "b", kind, habit: null, timeoutSeconds: 300 }, null),
        { node_id: "out", agent_type: "aggregator", config: { complete_after: bound } },
      ],
      edges: [
        { from_node: "a", to_node: "b", message_type: "work" },
        { from_node: "b", to_node: "a", message_type: "work" },
        { from_node: "b", to_node: "out", message_type: "work" },
      ],
    },
  };
}

/** A service that is fed from outside and by a timer; it ends when it is cancelled, or by its time limit. */
function service(random: Random, index: number, hasLimit: boolean): Scenario {
  const kind = random.pick(["router", "executor", "module"] as const);
  const policies = hasLimit ? { policies: { timeout_seconds: random.between(1, 3) } } : {};
  return {
    shape: hasLimit ? "deadline" : "service",
    expected: null,
    resultCount: null,
    drains: !hasLimit,
    manifest: {
      ...head(`service${index}`, random),
      ...policies,
      type: "service",
      entrypoints: ["door"],
      nodes: [
        {
          node_id: "door",
          agent_type: "sensor",
          config: { complete_after: null, output_message_type: "work" },
        },
        {
          node_id: "clock",
          agent_type: "sensor",
          config: { complete_after: 3, interval_ms: random.between(50, 500), output_message_type: "work" },
        },
        manifestNode({ id: "worker", kind, habit: null, timeoutSeconds: randomTimeout(random, null) }, null),
        { node_id: "sum", agent_type: "aggregator", config: { complete_run: false } },
      ],
      edges: [
        { from_node: "door", to_node: "worker" },
        { from_node: "clock", to_node: "worker" },
        { from_node: "worker", to_node: "sum", message_type: "work" },
      ],
    },
  };
}
