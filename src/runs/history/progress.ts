// How far the nodes of a run's graph have come (CONTRACTS §6 "Evidence", workflow-progress): as steps, what the graph
// consists of, and as agents, what those nodes did.

import { isoTime } from "../../engine/event.ts";
import type { Failure } from "../../engine/failure.ts";
import { type AgentStatus, isTerminal, type JobStatus, type TaskRecord } from "../../engine/journal.ts";
import { isObject, type JsonObject } from "../../engine/json.ts";
import type { AgentEnds } from "../../engine/tally.ts";
import { Slices } from "../../lib/slices.ts";
import type { AgentStanding } from "../job-records.ts";
import { textField } from "./line.ts";
import type { NodeEnd } from "./node-ends.ts";

/** Nodes that are shown; a graph may have many more than are of use. */
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
  /** Of the nodes that something has come to, in the same order. */
  readonly agents: readonly AgentStanding[];
  readonly tasks: readonly TaskRecord[];
  readonly mailboxDepths: ReadonlyMap<number, number>;
  /** What the history tells of nodes, by their id; empty while the records say all there is. */
  readonly ends: ReadonlyMap<string, NodeEnd>;
  /** Of the run. */
  readonly failure: Failure | null;
  /** How its agents ended; null before that. */
  readonly agentEnds: AgentEnds | null;
  /** Wall time in ms since 1970, for how long an attempt has been running. */
  readonly nowMs: number;
}

export type NodeState = AgentStatus | "skipped" | "not_reached";

interface NodeProgress {
  readonly state: NodeState;
  readonly attempt: number | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** From the one to the other, or to now. */
  readonly duration_ms: number | null;
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

/** The nodes of a manifest that was found valid. Works in slices. */
export async function nodesOf(manifest: JsonObject): Promise<readonly ProgressNode[]> {
  const slices = new Slices();
  const nodes: ProgressNode[] = [];
  for (const node of Array.isArray(manifest.nodes) ? manifest.nodes : []) {
    if (slices.isOver) await slices.breathe();
    if (!isObject(node)) continue;
    const nodeId = textField(node, "node_id") ?? "";
    nodes.push({
      nodeId,
      agentType: textField(node, "agent_type") ?? "",
      name: textField(node, "role") ?? nodeId,
    });
  }
  return nodes;
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
  not_reached: 4,
};

interface Shown {
  readonly node: ProgressNode;
  readonly index: number;
  readonly agent: AgentStanding | undefined;
  readonly state: NodeState;
}

/**
 * Works in slices.
 *
 * @returns at most PROGRESS_NODES_MAX of both, those of most interest, in the order of the graph
 */
export async function workflowProgress(source: ProgressSource): Promise<{
  readonly steps: readonly StepProgress[];
  readonly agents: readonly AgentProgress[];
}> {
  const { nodes, agents, mailboxDepths } = source;
  const slices = new Slices();
  const tasks = new Map(source.tasks.map((task) => [task.agentIndex, task]));
  const byInterest: Shown[][] = Object.keys(interest).map(() => []);
  let at = 0;
  for (const [index, node] of nodes.entries()) {
    if (slices.isOver) await slices.breathe();
    const agent = agents[at]?.index === index ? agents[at++] : undefined;
    const state = stateOf(source, node, agent);
    const alike = byInterest[interest[state]]!;
    if (alike.length < PROGRESS_NODES_MAX) alike.push({ node, index, agent, state });
  }
  if (slices.isOver) await slices.breathe();
  const shown = byInterest
    .flat()
    .slice(0, PROGRESS_NODES_MAX)
    .sort((a, b) => a.index - b.index)
    .map(({ node, index, agent, state }) => ({
      node,
      index,
      agent,
      progress: {
        state,
        ...timesOf(source, node, tasks.get(index)),
        failure: failureOf(source, node, state),
      },
    }));
  if (slices.isOver) await slices.breathe();
  return {
    steps: shown.map(({ node, progress }) => ({
      step_id: node.nodeId,
      name: node.name,
      agent_id: node.nodeId,
      ...progress,
    })),
    agents: shown.map(({ node, index, agent, progress }) => ({
      agent_id: node.nodeId,
      agent_type: node.agentType,
      ...progress,
      processed_messages: agent?.processedMessages ?? 0,
      mailbox_depth: mailboxDepths.get(index) ?? 0,
      last_error: agent?.lastError ?? null,
    })),
  };
}

const stateOf = (
  { status, ends, agentEnds }: ProgressSource,
  { nodeId }: ProgressNode,
  record: AgentStanding | undefined,
): NodeState =>
  nodeState(record?.status ?? "pending", { status, agentEnds }, () => ends.get(nodeId)?.isCutOff ?? false);

/**
 * An agent's own status, seen with its run's.
 *
 * @param isCutOff asked of a run that has ended: whether the end has cut off what the agent was at
 */
export function nodeState(
  own: AgentStatus,
  { status, agentEnds }: Pick<ProgressSource, "status" | "agentEnds">,
  isCutOff: () => boolean,
): NodeState {
  if (own === "failed" || own === "done" || own === "cancelled") return own;
  if (isTerminal(status)) {
    if (own === "pending") return unbegun(agentEnds);
    return isCutOff() ? "cancelled" : "done";
  }
  return status === "paused" && own !== "running" && own !== "pending" ? "paused" : own;
}

/** How an agent ended to which nothing came. */
export function unbegun(ends: AgentEnds | null): "skipped" | "not_reached" {
  return ends !== null && ends.not_reached > 0 ? "not_reached" : "skipped";
}

function timesOf({ ends, nowMs }: ProgressSource, { nodeId }: ProgressNode, task: TaskRecord | undefined) {
  if (task === undefined) {
    const { attempt = null, startedAt = null, finishedAt = null } = ends.get(nodeId) ?? {};
    const durationMs =
      startedAt === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);
    return { attempt, started_at: startedAt, finished_at: finishedAt, duration_ms: durationMs };
  }
  const startedAtMs = task.state.kind === "running" ? task.state.startedAtMs : null;
  return {
    // A task that waits for its first slots has begun no attempt.
    attempt: task.attempt === 0 ? null : task.attempt,
    started_at: startedAtMs === null ? null : isoTime(startedAtMs),
    finished_at: null,
    duration_ms: startedAtMs === null ? null : Math.max(0, nowMs - startedAtMs),
  };
}

/** What failed the run is shown where it happened; so is what a run went on in spite of. */
function failureOf({ ends, failure }: ProgressSource, { nodeId }: ProgressNode, state: NodeState) {
  if (failure?.details.agent_id === nodeId) return failure;
  return state === "failed" ? (ends.get(nodeId)?.failure ?? null) : null;
}

/**
 * Agents that ended well; before the end, those that have done what there was for them so far: those that are done, and
 * those that have worked, do nothing at the moment and have nothing to read.
 */
export function agentsDone({ agents, mailboxDepths, agentEnds }: ProgressSource): number {
  if (agentEnds !== null) return agentEnds.done;
  return agents.filter(
    (agent) =>
      agent.status === "done" ||
      (agent.status === "ready" && agent.processedMessages > 0 && !mailboxDepths.has(agent.index)),
  ).length;
}

/** 0 to 100; only a completed run is at 100 with agents to which nothing ever came. */
export function percentDone(status: JobStatus | null, done: number, total: number): number {
  if (status === "completed") return 100;
  return total === 0 ? 0 : Math.floor((100 * done) / total);
}
