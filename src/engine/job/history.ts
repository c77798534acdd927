// A job's history as it is written: events, and the failures that they report.

import { renderEvent } from "../event.ts";
import type { EngineEventType } from "../event-types.ts";
import { type Failure, type FailureContext, makeFailure } from "../failure.ts";
import type { FailureCode } from "../failure-catalogue.ts";
import { countEvent } from "../tally.ts";
import type { Span } from "../trace.ts";
import type { AgentState, Job } from "./state.ts";

/**
 * Appends to the history. Events of workers come through here too, already checked.
 * @returns the length of the event's line in characters
 */
export function addEvent(
  job: Job,
  type: EngineEventType | (string & {}),
  agentId: string | null,
  payload: unknown,
  failure?: Failure,
): number {
  const nowMs = job.context.clock.nowMs();
  const head = { nowMs, type, agentId };
  const line = renderEvent(head, payload, failure);
  job.eventSeq++;
  countEvent(job.tally, { type, payload, hasFailure: failure !== undefined, chars: line.length });
  job.updatedAtMs = nowMs;
  job.draft.eventLines.push(line);
  job.lastEvent = head;
  return line.length;
}

export function markStarted(job: Job, agent: AgentState): void {
  if (agent.started) return;
  agent.started = true;
  job.draft.changedAgents.add(agent.node.index);
  addEvent(job, "agent_started", agent.node.nodeId, { agent_type: agent.node.agentType });
}

/** The agent will do nothing any more; a failed one has already reported it. */
export function markDone(job: Job, agent: AgentState): void {
  agent.done = true;
  job.draft.changedAgents.add(agent.node.index);
  if (!agent.failed) addAgentCompleted(job, agent);
}

export function addAgentCompleted(job: Job, { node, processed }: AgentState): void {
  addEvent(job, "agent_completed", node.nodeId, { processed_messages: processed });
}

/** Makes a failure of this run; the event that reports it is the next one. */
export function failureOfRun(
  job: Job,
  code: FailureCode,
  message: string,
  span: Span,
  context?: FailureContext,
): Failure {
  const { runId, insert, eventSeq } = job;
  const place = { runId, traceId: insert.trace.traceId, spanId: span.id, eventId: eventSeq + 1 };
  return makeFailure(code, message, job.context.clock.nowMs(), place, context);
}
