// What a job remembers of what it asked people.
//
// - Memory is bounded: of the closed ones the oldest are forgotten first. One that is forgotten is asked afresh when
//   a worker asks it again, and takes the place of the old one in the journal.

import { isLongLived } from "../graph.ts";
import type { HumanRequest } from "../journal.ts";
import { limits } from "../limits.ts";
import { setTimer } from "./schedule.ts";
import { type AgentState, type HumanEntry, type HumanRequests, isOver, type Job } from "./state.ts";

export function findRequest({ human }: Job, requestId: string): HumanEntry | undefined {
  return human.pending.get(requestId) ?? human.closed.get(requestId);
}

/** Puts an entry in the place of an earlier one of its id. */
export function remember(human: HumanRequests, entry: HumanEntry): void {
  const { request } = entry;
  human.pending.delete(request.requestId);
  forget(human, request.requestId);
  if (request.status === "pending") {
    human.pending.set(request.requestId, entry);
    return;
  }
  human.isFullSaid = false;
  human.closed.set(request.requestId, entry);
  human.closedChars += charsOf(request);
  for (const oldest of human.closed.keys()) {
    const fits =
      human.closed.size <= limits.humanClosedKeptMax && human.closedChars <= limits.humanClosedCharsMax;
    if (fits || oldest === request.requestId) break;
    forget(human, oldest);
  }
}

function forget(human: HumanRequests, requestId: string): void {
  const entry = human.closed.get(requestId);
  if (entry === undefined) return;
  human.closed.delete(requestId);
  human.closedChars -= charsOf(entry.request);
}

function charsOf({ prompt, allowedDecisions, dataSchemaJson, response }: HumanRequest): number {
  const decisions = allowedDecisions.reduce((chars, decision) => chars + decision.length, 0);
  const asked = prompt.length + decisions + (dataSchemaJson?.length ?? 0);
  return asked + (response?.comment?.length ?? 0) + (response?.dataJson?.length ?? 0);
}

/** Remembers a request that the next batch has to carry. */
export function changeRequest(job: Job, entry: HumanEntry): void {
  const { request } = entry;
  remember(job.human, entry);
  job.draft.humanRequests.set(request.eventSeq, request);
  job.draft.changedAgents.add(askerOf(job, request).node.index);
}

/** The agent that asked. */
export function askerOf(job: Job, { agentId }: HumanRequest): AgentState {
  return job.agents[job.graph.indexOf.get(agentId)!]!;
}

/** A task has ended: answers to what it asked become messages. */
export function taskGone(job: Job, agent: AgentState, taskSeq: number): void {
  if (agent.openRequests === 0 || isOver(job)) return;
  for (const entry of [...job.human.pending.values()]) {
    if (entry.request.taskSeq !== taskSeq) continue;
    changeRequest(job, { ...entry, request: { ...entry.request, taskSeq: null }, attempt: 0 });
  }
}

/** Whether the job may not complete because the answer to a request will be a message to an agent that lives. */
export function holdsJobOpen(job: Job): boolean {
  for (const { request } of job.human.pending.values()) {
    if (request.taskSeq === null && !askerOf(job, request).done) return true;
  }
  return false;
}

/** Whether a person is what the agent's task waits for; without a task, what the agent waits for. */
export function waitsForPerson(job: Job, agent: AgentState): boolean {
  if (agent.openRequests === 0 || isLongLived(agent.node)) return false;
  if (agent.task === null) return agent.mailbox.size === 0;
  for (const { request } of job.human.pending.values()) if (request.taskSeq === agent.task.seq) return true;
  return false;
}

/** Sets the timer of an open request; an earlier setting of the same timer does no harm. */
export function armTimer(job: Job, { request, dueAtMs }: HumanEntry): void {
  if (dueAtMs !== null) setTimer(job, dueAtMs, { kind: "human", requestId: request.requestId });
}
