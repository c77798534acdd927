// How far the nodes of a run's graph have come (CONTRACTS §6 "Evidence", workflow-progress): as steps, what the graph
// consists of, and as agents, what those nodes did.

import { isoTime } from "../../engine/event.ts";
import type { Failure } from "../../engine/failure.ts";
import { isObject, type JsonObject } from "../../engine/json.ts";
import {
  type AgentRecord,
  type AgentStatus,
  isTerminal,
  type JobStatus,
  type TaskRecord,
} from "../../engine/ports.ts";
import { eventType, fieldsOf, parseEvent, textField } from "./line.ts";

/** Nodes that are shown; a graph may have many more than anybody looks at. */
export const PROGRESS_NODES_MAX = 1_000;

export interface ProgressNode {
  readonly nodeId: string;
  readonly agentType: string;
  /** For people. */
  readonly name: string;
}

export interface ProgressSource {
  readonly status: JobStatus;
  /** In the order of the graph. */
  readonly nodes: readonly ProgressNode[];
  /** Of the nodes that something has come to. */
  readonly agents: readonly AgentRecord[];
  readonly tasks: readonly TaskRecord[];
  readonly mailboxDepths: ReadonlyMap<number, number>;
  /** Agents that were at work, or waited for slots, when the run ended. */
  readonly cutOff: ReadonlySet<string>;
  /** Of the run. */
  readonly failure: Failure | null;
}

export type NodeState = AgentStatus | "cancelled" | "skipped";

interface NodeProgress {
  readonly state: NodeState;
  readonly attempt: number | null;
  readonly started_at: string | null;
  readonly failure: Failure | null;
}

export interface StepProgress extends NodeProgress {
  readonly step_id: string;
  readonly name: string;
  readonly agent_id: string;
}

export interface AgentProgress extends NodeProgress {
  readonly agent_id: string;
  readonly agent_type: string;
  readonly processed_messages: number;
  readonly mailbox_depth: number;
  readonly last_error: string | null;
}

/** The nodes of a manifest that was found valid. */
export function nodesOf(manifest: JsonObject): readonly ProgressNode[] {
  const nodes = Array.isArray(manifest.nodes) ? manifest.nodes.filter(isObject) : [];
  return nodes.map((node) => {
    const nodeId = textField(node, "node_id") ?? "";
    return {
      nodeId,
      agentType: textField(node, "agent_type") ?? "",
      name: textField(node, "role") ?? nodeId,
    };
  });
}

/** How many of the newest events `agentsCutOff` is to be given: a bound, which few runs reach. */
export const CUT_OFF_EVENTS = 2_000;

/**
 * Which agents a run's end has cut off. Their records do not say: they hold no task any more.
 *
 * @param newest lines of a run that has ended, newest first
 */
export function agentsCutOff(newest: readonly string[]): ReadonlySet<string> {
  const isCutOff = new Map<string, boolean>();
  for (const line of newest) {
    const type = eventType(line);
    if (!type.startsWith("executor_lease_")) continue;
    const event = parseEvent(line);
    if (event.agentId === null || isCutOff.has(event.agentId)) continue;
    // The newest word on an agent's slots: still asked for, or taken from it, or given back because it was through.
    const isThrough =
      type === "executor_lease_released" && textField(fieldsOf(event), "reason") !== "cancelled";
    isCutOff.set(event.agentId, !isThrough);
  }
  return new Set([...isCutOff].flatMap(([agentId, cut]) => (cut ? [agentId] : [])));
}

/** What a reader of a large graph wants to see first. */
const interest: Readonly<Record<NodeState, number>> = {
  failed: 0,
  running: 1,
  waiting: 2,
  paused: 3,
  ready: 4,
  cancelled: 5,
  done: 6,
  pending: 7,
  skipped: 8,
};

/** @returns at most PROGRESS_NODES_MAX of both, those of most interest, in the order of the graph */
export function workflowProgress(source: ProgressSource): {
  readonly steps: readonly StepProgress[];
  readonly agents: readonly AgentProgress[];
} {
  const { nodes, mailboxDepths } = source;
  const records = new Map(source.agents.map((agent) => [agent.index, agent]));
  const tasks = new Map(source.tasks.map((task) => [task.agentIndex, task]));
  const shown = nodes
    .map((node, index) => ({ node, index, state: stateOf(source, node, records.get(index)) }))
    .sort((a, b) => interest[a.state] - interest[b.state] || a.index - b.index)
    .slice(0, PROGRESS_NODES_MAX)
    .sort((a, b) => a.index - b.index)
    .map(({ node, index, state }) => ({
      node,
      index,
      progress: {
        state,
        ...attemptOf(tasks.get(index)),
        failure: source.failure?.details.agent_id === node.nodeId ? source.failure : null,
      },
    }));
  return {
    steps: shown.map(({ node, progress }) => ({
      step_id: node.nodeId,
      name: node.name,
      agent_id: node.nodeId,
      ...progress,
    })),
    agents: shown.map(({ node, index, progress }) => ({
      agent_id: node.nodeId,
      agent_type: node.agentType,
      ...progress,
      processed_messages: records.get(index)?.processedMessages ?? 0,
      mailbox_depth: mailboxDepths.get(index) ?? 0,
      last_error: records.get(index)?.lastError ?? null,
    })),
  };
}

/** The agent's own status, seen with its run's. */
function stateOf(
  { status, cutOff }: ProgressSource,
  { nodeId }: ProgressNode,
  record: AgentRecord | undefined,
): NodeState {
  const own = record?.status ?? "pending";
  if (own === "failed" || own === "done") return own;
  if (isTerminal(status)) {
    if (own === "pending") return "skipped";
    return cutOff.has(nodeId) ? "cancelled" : "done";
  }
  return status === "paused" && own !== "running" && own !== "pending" ? "paused" : own;
}

function attemptOf(task: TaskRecord | undefined) {
  // A task that waits for its first slots has begun no attempt.
  if (task === undefined || task.attempt === 0) return { attempt: null, started_at: null };
  const startedAt = task.state.kind === "running" ? isoTime(task.state.startedAtMs) : null;
  return { attempt: task.attempt, started_at: startedAt };
}
