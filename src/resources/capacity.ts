// Whether the machines could ever run what is asked for: a graph is refused of which no living node could hold some command
// within its limits, even if nothing else ran there.
//
// - A node that is to have labels may join at any time: it is looked for among the nodes that have them, if there are any.

import type { ClusterNodes, NodeView } from "../cluster/cluster-nodes.ts";
import { isLiving, type NodeResources } from "../cluster/nodes.ts";
import type { Graph, GraphNode } from "../engine/graph.ts";
import { hasLabels, type Labels } from "../engine/labels.ts";
import {
  amountsText,
  askedKinds,
  type Claim,
  claimText,
  type Demand,
  demandText,
  deviceClaims,
  isThere,
  listText,
} from "../engine/resources.ts";
import { givesDevices, SANDBOX_ENGINE_LABEL, SANDBOX_LABEL } from "../engine/sandbox.ts";
import { amountsOf } from "../execution/machine-resources.ts";
import { DomainError } from "../lib/domain-error.ts";

/** Nodes that a refusal names. */
const NAMED_MAX = 3;

export interface Sandboxing {
  /** Whether commands run in sandboxes only. */
  readonly requireSandbox: boolean;
  /** Why this node has no sandboxes; null when it has. */
  readonly sandboxRefusal: () => Promise<string | null>;
}

export class Capacity {
  readonly #nodes: Pick<ClusterNodes, "overview">;
  readonly #sandboxing: Sandboxing;

  constructor(nodes: Pick<ClusterNodes, "overview">, sandboxing: Sandboxing) {
    this.#nodes = nodes;
    this.#sandboxing = sandboxing;
  }

  /**
   * @throws DomainError `resource_unsatisfiable`; `validation_failed` for what is to run without a sandbox and may not;
   *   JournalUnavailable when the nodes cannot be read
   */
  async refuseUnsatisfiable({ nodes }: Graph): Promise<void> {
    if (this.#sandboxing.requireSandbox) refuseWithoutSandbox(nodes);
    const sandboxed = nodes.find(({ config }) => config.kind === "executor" && config.sandbox !== null);
    const asking = nodes.flatMap(({ nodeId, config }) =>
      config.kind === "executor" && config.demand !== null
        ? [{ ...config, nodeId, asked: config.demand }]
        : [],
    );
    if (sandboxed === undefined && asking.length === 0) return;
    const living = (await this.#nodes.overview()).filter(isLiving);
    if (sandboxed !== undefined) await this.#requireSandboxes(sandboxed, living);
    for (const node of nodes) refuseLackingDevices(node, living);
    for (const { nodeId, asked, nodeLabels } of asking) {
      const machines = machinesFor(living, nodeLabels);
      if (machines.length > 0 && machines.every((machine) => lacks(machine, asked)))
        throw unsatisfiable(nodeId, asked, machines);
    }
  }

  async #requireSandboxes({ nodeId }: GraphNode, living: readonly NodeView[]): Promise<void> {
    if (living.some(({ labels }) => Object.hasOwn(labels, SANDBOX_LABEL))) return;
    const refusal = (await this.#sandboxing.sandboxRefusal()) ?? "it was started before they could be had.";
    const where =
      living.length > 1 ? `no node has any; this one: ${refusal}` : `this machine has none: ${refusal}`;
    throw new DomainError(
      "resource_unsatisfiable",
      `Node ${JSON.stringify(nodeId)} runs in a sandbox, and ${where} Then start Troupe again.`,
    );
  }
}

function refuseWithoutSandbox(nodes: Graph["nodes"]): void {
  const errors = nodes.flatMap(({ index, nodeId, config }) => {
    const isOutside = config.kind === "module" || (config.kind === "executor" && config.sandbox === null);
    if (!isOutside) return [];
    const what = config.kind === "module" ? "is a module, which runs" : "runs its command";
    const fix = config.kind === "module" ? 'set isolation to "process"' : 'set runner_module to "Sandbox"';
    const message = `Node ${JSON.stringify(nodeId)} ${what} without a sandbox, and SVC_REQUIRE_SANDBOX is true: ${fix}`;
    return [{ path: `/nodes/${index}`, code: "sandbox_required", message }];
  });
  const [first] = errors;
  if (first !== undefined) throw new DomainError("validation_failed", `${first.message}.`, errors);
}

/** A policy in a file of the payload is not known here: what it names is looked at when the command starts. */
function refuseLackingDevices({ nodeId, config }: GraphNode, living: readonly NodeView[]): void {
  if (config.kind !== "executor" || config.sandbox === null) return;
  const claimed = config.demand === null ? [] : deviceClaims(config.demand).map(({ name }) => name);
  const [device] = [...config.sandbox.devices, ...claimed];
  const machines = machinesFor(living, config.nodeLabels);
  if (device === undefined || machines.length === 0) return;
  const engines = machines.map(({ labels }) => labels[SANDBOX_ENGINE_LABEL]);
  if (engines.some(givesDevices)) return;
  throw new DomainError(
    "resource_unsatisfiable",
    `Node ${JSON.stringify(nodeId)} asks for the device ${JSON.stringify(device)} in its sandbox, which ${engines[0]} cannot give it: ` +
      "take that from the node's config, or run it where SVC_SANDBOX_ENGINE is bubblewrap.",
  );
}

function machinesFor(living: readonly NodeView[], labels: Labels): readonly NodeView[] {
  return living.filter((node) => hasLabels(node.labels, labels));
}

/** What a program does not tell of its machine is not known to be missing. */
function lacks({ resources }: NodeView, asked: Demand): boolean {
  if (resources === null) return false;
  return !isThere(asked, amountsOf(resources.effective)) || lackingDevices(resources, asked).length > 0;
}

function lackingDevices({ devices }: NodeResources, asked: Demand): readonly Claim[] {
  return devices === undefined ? [] : deviceClaims(asked).filter(({ name }) => !devices.includes(name));
}

function unsatisfiable(nodeId: string, asked: Demand, machines: readonly NodeView[]): DomainError {
  const kinds = askedKinds(asked);
  const texts = machines.slice(0, NAMED_MAX).flatMap(({ name, resources }) => {
    if (resources === null) return [];
    const who = machines.length === 1 ? "the machine" : `node ${JSON.stringify(name)}`;
    const has = kinds.length === 0 ? [] : [amountsText(amountsOf(resources.effective), kinds)];
    const lacking = lackingDevices(resources, asked).map((device) => `no ${claimText(device)}`);
    return [`${who} has ${listText([...has, ...lacking])}`];
  });
  const more =
    machines.length > NAMED_MAX ? `, and none of ${machines.length - NAMED_MAX} others has it` : "";
  return new DomainError(
    "resource_unsatisfiable",
    `Node ${JSON.stringify(nodeId)} asks for ${demandText(asked)}; for commands ${texts.join(", ")}${more}. ` +
      "Ask for less or something else, or raise the limits (GET /resource).",
  );
}
