// A submission, and the job that is made of it.

import type { Graph } from "./graph.ts";
import { type AgentState, type Job, type JobContext, newAgent, newJob } from "./job/state.ts";
import type { JobInsert, JobProgress } from "./journal.ts";
import type { Terms } from "./share.ts";
import { ownTrace, type TraceContext } from "./trace.ts";

export interface Submission extends Terms {
  readonly graph: Graph;
  /** Given by a caller that already keeps a record of this run; null: the engine names both. */
  readonly identity: GivenIdentity | null;
  readonly manifestJson: string;
  readonly bundleFingerprint: string | null;
  /** Whether the run has a payload of its own, made of the bundle's. */
  readonly hasOwnPayload: boolean;
  readonly configurationJson: string | null;
  /** The caller's trace; null: the run has one of its own. */
  readonly trace: TraceContext | null;
}

export interface SubmittedJob {
  readonly jobId: string;
  readonly runId: string;
  /** What the job is, when it ended in the commit that accepted it; null otherwise. */
  readonly ended: EndedJob | null;
}

/** A job as its last commit left it. */
export interface EndedJob {
  readonly insert: JobInsert;
  readonly progress: JobProgress;
}

export interface GivenIdentity {
  /** Never used before. */
  readonly jobId: string;
  readonly runId: string;
  /** What workers are told as their job's id; null for the job's own. */
  readonly definitionId: string | null;
}

/**
 * A job that has not begun, with the identity it was given or one of its own.
 *
 * @param agents those of its graph, if they are made already
 */
export function submittedJob(submission: Submission, context: JobContext, agents?: AgentState[]): Job {
  const { graph, identity } = submission;
  const { randomness, clock } = context;
  const jobId = identity?.jobId ?? `${graph.graphId}-${randomness.id()}`;
  const runId = identity?.runId ?? `run_${randomness.id()}`;
  const insert: JobInsert = {
    graphId: graph.graphId,
    jobName: graph.jobName,
    runId,
    type: graph.type,
    submittedAtMs: clock.nowMs(),
    placementPolicy: graph.placementPolicy,
    recoveryPolicy: graph.recoveryPolicy,
    executorCount: graph.nodes.filter((node) => node.agentType === "executor").length,
    rootAgentIds: graph.entrypoints.map((index) => graph.nodes[index]!.nodeId),
    manifestJson: submission.manifestJson,
    bundleFingerprint: submission.bundleFingerprint,
    hasOwnPayload: submission.hasOwnPayload,
    definitionId: identity?.definitionId ?? null,
    trace: submission.trace ?? ownTrace(runId),
    configurationJson: submission.configurationJson,
    priority: submission.priority,
    weight: submission.weight,
  };
  return newJob({ jobId, epoch: 1, insert, graph }, context, agents);
}

/** Agents that are made before everything else has its turn: a millisecond. */
const AGENTS_PER_TURN = 2_000;

export const hasManyAgents = ({ nodes }: Graph) => nodes.length > AGENTS_PER_TURN;

/** The agents of a graph that has many. @param turn lets everything else have its turn */
export async function agentsInTurns({ nodes }: Graph, turn: () => Promise<void>): Promise<AgentState[]> {
  const agents: AgentState[] = [];
  for (const node of nodes) {
    if (agents.length % AGENTS_PER_TURN === 0) await turn();
    agents.push(newAgent(node));
  }
  return agents;
}
