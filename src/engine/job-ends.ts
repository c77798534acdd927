// How each agent of a job ends, and what a completed job owes: agents that no message ever reached, and outputs that the
// manifest promises and nobody wrote. A graph that stops short says so.

import { isLongLived, outputName } from "./graph.ts";
import type { AgentSlot, Job } from "./job.ts";
import * as human from "./job-human.ts";
import { type AgentEnds, endWarnings } from "./tally.ts";
import type { ArtifactRecord } from "./task-port.ts";

/** Agents and outputs that are named; more are only counted. */
const NAMES_MAX = 20;

/**
 * Notes how the agents end, and what is missing; a warning in the log names it. To be called once the job has its last
 * status, and before what is under way is taken from the agents.
 */
export function settle(job: Job): void {
  const agents: AgentEnds = { done: 0, failed: 0, cancelled: 0, skipped: 0, not_reached: 0 };
  const notReached: string[] = [];
  for (const agent of job.agents) {
    const end = endOf(job, agent);
    agents[end]++;
    if (end === "cancelled") {
      agent.isCutOff = true;
      job.draft.dirtyAgents.add(agent.node.index);
    }
    if (end === "not_reached" && notReached.length < NAMES_MAX) notReached.push(agent.node.nodeId);
  }
  const missing = job.status === "completed" ? missingOutputs(job) : [];
  const missingNames = missing.slice(0, NAMES_MAX);
  job.tally.ends = { agents, notReached, missingOutputs: missingNames, missingOutputsCount: missing.length };
  if (missing.length > 0) job.partial = true;
  for (const { message } of endWarnings(job.tally.ends)) {
    job.event("log", null, { level: "warn", stream: "runtime", message });
  }
}

function endOf(job: Job, agent: AgentSlot): keyof AgentEnds {
  if (agent.failed) return "failed";
  if (agent.done || (agent.started && isCompanion(agent))) return "done";
  const isCompleted = job.status === "completed";
  if (!agent.started) return isCompleted && job.isEndingAtRest ? "not_reached" : "skipped";
  if (agent.node.config.kind === "sensor") return isCompleted ? "done" : "cancelled";
  const isAtWork = agent.task !== null || agent.mailbox.size > 0 || human.waitsForPerson(job, agent);
  return isAtWork ? "cancelled" : "done";
}

/** It ends with its job, whenever that is. */
function isCompanion({ node }: AgentSlot): boolean {
  return isLongLived(node) && !node.isSource;
}

/** Notes which of the declared outputs this file is, if it is one. */
export function noteOutput(job: Job, { name }: ArtifactRecord): void {
  const index = job.graph.outputs.findIndex((output) => outputName(output) === name);
  if (index >= 0 && !job.tally.outputs.includes(index)) job.tally.outputs = [...job.tally.outputs, index];
}

export function missingOutputs(job: Job): readonly string[] {
  return job.graph.outputs.filter((_, index) => !job.tally.outputs.includes(index)).map(outputName);
}
