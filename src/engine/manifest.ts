// The manifest: JSON from outside, checked whole and compiled into the graph that a job runs.
//
// - parseManifest never throws, whatever JSON it is given, and either compiles a graph or names every problem.
// - Unknown fields are ignored. A known field with a wrong value is a problem, never a guess.
// - The time it takes grows linearly with the manifest.

import {
  type AgentConfig,
  type DeclaredOutput,
  type Graph,
  type GraphNode,
  type LlmNeed,
  MANIFEST_VERSION,
} from "./graph.ts";
import { isObject, type JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import { aggregatorConfig, routerConfig, secondsRange, sensorConfig } from "./manifest/agent-config.ts";
import { executorConfig } from "./manifest/executor-config.ts";
import { Fields, kindOf, oneOf, shown } from "./manifest/fields.ts";
import { readRunLlm } from "./manifest/llm.ts";
import { moduleConfig } from "./manifest/module-config.ts";
import { type ManifestProblem, Problems, quoted } from "./manifest/problems.ts";
import { readNodeResources } from "./manifest/resources.ts";
import { inSteps, isNoNode, rankNodes, readRoutes } from "./manifest/routes.ts";
import {
  type Ports,
  readPorts,
  readRequiredServices,
  readServices,
  withPortsOf,
} from "./manifest/services.ts";

export type { ManifestProblem } from "./manifest/problems.ts";

export type ManifestResult =
  | { readonly kind: "valid"; readonly graph: Graph }
  | { readonly kind: "invalid"; readonly problems: readonly ManifestProblem[] };

const agentTypes = ["router", "aggregator", "sensor", "executor", "module"] as const;
const anAgentType = oneOf(agentTypes);

/**
 * Checks a manifest and compiles it.
 *
 * @param value the manifest as JSON; anything but an object is one problem
 * @returns the graph, or all problems at once: 100 at most, and a last one that tells how many more there are
 *
 * @example
 * parseManifest({ manifest_version: "1.0", graph_id: "g", entrypoints: ["a"], nodes: [{ node_id: "a", agent_type: "router" }] });
 */
export function parseManifest(value: JsonValue): ManifestResult {
  const steps = manifestSteps(value);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The same in steps of some items of the manifest, for a caller that lets others have their turn in between. */
export function* manifestSteps(value: JsonValue): Generator<void, ManifestResult> {
  const problems = new Problems();
  if (!isObject(value)) {
    problems.add([], "wrong_type", `must be a JSON object, not ${kindOf(value)}`);
    return { kind: "invalid", problems: problems.list() };
  }
  const graph = yield* compile(Fields.root(value, problems));
  return problems.count === 0 ? { kind: "valid", graph } : { kind: "invalid", problems: problems.list() };
}

/** All problems in one line, as the runtime API answers them. */
export function manifestProblemsText(problems: readonly ManifestProblem[]): string {
  return `Invalid manifest: ${problems.map((problem) => problem.message).join("; ")}`;
}

/** Reads everything; the graph means something only if no problem was reported on the way. */
function* compile(manifest: Fields): Generator<void, Graph> {
  checkVersion(manifest);
  const graphId = readGraphId(manifest);
  const jobName = manifest.text("job_name");
  const type = manifest.choice("type", ["batch", "service"], "batch");
  const ports = readPorts(manifest);
  const drafts = yield* readNodes(manifest, ports);
  const indexOf = yield* indexNodes(manifest, drafts);
  const entrypoints = readEntrypoints(manifest, indexOf);
  const initialInputs = readInitialInputs(manifest, indexOf, entrypoints);
  const routes = yield* readRoutes(manifest, indexOf, drafts.length);
  const ranks = yield* rankNodes(routes, entrypoints);
  const nodes: GraphNode[] = [];
  yield* inSteps(drafts, (draft, index) => {
    const { toAll, toByType } = routes[index]!;
    nodes.push({ ...draft, index, toAll, toByType, rank: ranks[index]! });
  });
  const outputs = readOutputs(manifest);
  manifest.object("metadata");
  return {
    graphId,
    jobName,
    type,
    ...readPolicies(manifest),
    entrypoints,
    initialInputs,
    nodes,
    indexOf,
    services: readServices(manifest, ports),
    requiredServices: readRequiredServices(manifest),
    outputs,
  };
}

function checkVersion(manifest: Fields): void {
  const version = manifest.raw("manifest_version");
  const isGiven = manifest.isGiven("manifest_version", `"${MANIFEST_VERSION}"`);
  if (!isGiven || version === undefined || version === MANIFEST_VERSION) return;
  const text = `is ${shown(version)}: this runtime knows "${MANIFEST_VERSION}" only`;
  manifest.report("manifest_version", "unknown_version", text);
}

/** The id begins every job id of the graph, and job ids are part of URLs. */
function readGraphId(manifest: Fields): string {
  const isFit = (id: string) => /^[A-Za-z0-9._-]+$/.test(id) && !/^\.+$/.test(id);
  const text = 'only the letters a to z and A to Z, digits, ".", "_" and "-" are allowed, and not dots alone';
  const graphId = manifest.requiredName("graph_id");
  return manifest.checked("graph_id", graphId, isFit, "invalid_characters", text) ?? "";
}

type NodeDraft = Omit<GraphNode, "index" | "toAll" | "toByType" | "rank">;

function* readNodes(manifest: Fields, ports: Ports): Generator<void, readonly NodeDraft[]> {
  if (!manifest.isGiven("nodes", "a non-empty list of nodes")) return [];
  const values = manifest.list("nodes", limits.nodesMax);
  if (isEmptyList(manifest.raw("nodes"))) {
    manifest.report("nodes", "empty", "is empty: a graph needs at least one node");
  }
  const drafts: NodeDraft[] = [];
  const runLlm = readRunLlm(manifest);
  yield* inSteps(values, (value, i) => {
    drafts.push(readNode(manifest.objectIn("nodes", i, value), ports, runLlm));
  });
  return drafts;
}

function isEmptyList(value: JsonValue | undefined): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Replaces a node that is not even an object, so that the later ones keep their index. */
const brokenNode: NodeDraft = {
  nodeId: "",
  agentType: "router",
  type: null,
  role: null,
  config: { kind: "router", emitType: null },
  isSource: false,
  services: [],
};

function readNode(node: Fields | null, ports: Ports, runLlm: LlmNeed | null): NodeDraft {
  if (node === null) return brokenNode;
  const nodeId = node.requiredName("node_id") ?? "";
  const type = node.text("type");
  const role = node.text("role");
  const resources = readNodeResources(node);
  const services = readServices(node, withPortsOf(resources.ports, ports));
  const config = readConfig(node, { isStream: type === "stream", resources, runLlm });
  if (services.length > 0 && node.raw("agent_type") !== "executor") {
    node.report("services", "no_command", "need a command to live with: only executors offer services");
  }
  return {
    nodeId,
    agentType: config.kind === "executor" && config.module !== null ? "module" : config.kind,
    type,
    role,
    config,
    isSource: config.kind === "executor" && type === "stream",
    services,
  };
}

function readConfig(node: Fields, given: Parameters<typeof executorConfig>[2]): AgentConfig {
  const isGiven = node.isGiven("agent_type", anAgentType);
  const agentType = node.choice("agent_type", agentTypes, "router");
  const config = node.object("config");
  // The config of an unknown agent type cannot be checked.
  if (!isGiven || agentType !== node.raw("agent_type")) return brokenNode.config;
  switch (agentType) {
    case "router":
      return routerConfig(config);
    case "aggregator":
      return aggregatorConfig(config);
    case "sensor":
      return sensorConfig(config);
    case "executor":
      return executorConfig(node, config, given);
    case "module":
      return moduleConfig(config);
    default:
      return agentType satisfies never;
  }
}

function* indexNodes(
  manifest: Fields,
  drafts: readonly NodeDraft[],
): Generator<void, ReadonlyMap<string, number>> {
  const indexOf = new Map<string, number>();
  yield* inSteps(drafts, ({ nodeId }, i) => {
    if (nodeId === "") return;
    const before = indexOf.get(nodeId);
    if (before === undefined) indexOf.set(nodeId, i);
    else {
      const text = `is ${quoted(nodeId)}, which nodes[${before}] has already: every node needs its own`;
      manifest.report(["nodes", i, "node_id"], "duplicate", text);
    }
  });
  return indexOf;
}

function readEntrypoints(manifest: Fields, indexOf: ReadonlyMap<string, number>): readonly number[] {
  const allowed = "a non-empty list of the node_ids that receive the first messages";
  manifest.isGiven("entrypoints", allowed);
  if (isEmptyList(manifest.raw("entrypoints"))) {
    manifest.report("entrypoints", "empty", `is empty: it must be ${allowed}`);
  }
  const found = new Set<number>();
  manifest.list("entrypoints").forEach((value, i) => {
    const nodeId = manifest.checkedName(["entrypoints", i], value);
    if (nodeId === null) return;
    const index = indexOf.get(nodeId);
    if (index === undefined) {
      if (indexOf.size > 0) manifest.report(["entrypoints", i], "unknown_node", isNoNode(nodeId));
    } else if (found.has(index)) {
      manifest.report(["entrypoints", i], "duplicate", `is ${quoted(nodeId)} for the second time`);
    } else found.add(index);
  });
  return [...found];
}

function readInitialInputs(
  manifest: Fields,
  indexOf: ReadonlyMap<string, number>,
  entrypoints: readonly number[],
): ReadonlyMap<number, readonly JsonValue[]> {
  const inputs = new Map<number, readonly JsonValue[]>();
  const given = manifest.raw("initial_inputs");
  if (given === undefined) return inputs;
  if (!isObject(given)) {
    manifest.reportType("initial_inputs", "an object of entrypoints and their message bodies", given);
    return inputs;
  }
  const allowed = new Set(entrypoints);
  for (const [nodeId, value] of Object.entries(given)) {
    const index = indexOf.get(nodeId);
    if (index === undefined || !allowed.has(index)) {
      const text = "stands for no entrypoint: inputs are given by the node_id of an entrypoint";
      if (entrypoints.length > 0) manifest.report(["initial_inputs", nodeId], "unknown_entrypoint", text);
      continue;
    }
    const bodies = Array.isArray(value) ? value : [value];
    // An empty list is an entrypoint without inputs, and gets its one empty `init`.
    if (bodies.length > 0) inputs.set(index, bodies);
  }
  return inputs;
}

function readPolicies(
  manifest: Fields,
): Pick<Graph, "placementPolicy" | "recoveryPolicy" | "failurePolicy" | "timeoutMs"> {
  const policies = manifest.object("policies");
  const recoveryModes = ["local_restart", "cluster_recover", "manual_recover"] as const;
  const alias = policies.choice("recovery_policy", recoveryModes, "local_restart");
  const seconds = policies.number("timeout_seconds", { ...secondsRange, min: 0.001 }, null);
  return {
    placementPolicy: policies.choice("placement_policy", ["local", "spread", "binpack"], "local"),
    recoveryPolicy: policies.choice("recovery_mode", recoveryModes, alias),
    failurePolicy: policies.choice("failure_policy", ["fail_run", "continue"], "fail_run"),
    timeoutMs: seconds === null ? null : Math.ceil(seconds * 1_000),
  };
}

function readOutputs(manifest: Fields): readonly DeclaredOutput[] {
  const outputs: DeclaredOutput[] = [];
  manifest.list("outputs").forEach((value, i) => {
    if (typeof value === "string") {
      const path = manifest.checkedRelativePath(["outputs", i], value);
      if (path !== null) outputs.push({ path, title: null, primary: false });
      return;
    }
    const output = manifest.objectIn("outputs", i, value);
    if (output === null) return;
    const path = output.checkedRelativePath("path", output.raw("path") ?? null);
    const title = output.text("title");
    const primary = output.boolean("primary", false);
    if (path !== null) outputs.push({ path, title, primary });
  });
  return outputs;
}
