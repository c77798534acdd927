// One run's events become spans: run > agent > task > lease and attempt, and what people were asked. The ids are those
// of src/engine/trace.ts, so that timeline, logs, failures and workers speak of the same spans.
//
// - A span is emitted once, when it ends. What is still open at the run's end ends with it.
// - A span whose beginning was not seen is left out.
// - What is kept are open spans alone: agents, each with its one task, and questions to people.

import { eventType } from "../../engine/event.ts";
import { timelineEventTypes } from "../../engine/event-types.ts";
import { agentSpan, namedSpan, runSpan } from "../../engine/trace.ts";
import { fieldsOf, parseEvent, textField, wholeField } from "../../runs/history/line.ts";
import type { OpenSpan, OpenSpans } from "./span.ts";
import { type SeenEvent, TaskSpans } from "./task-spans.ts";

interface OpenAgent {
  span: OpenSpan | null;
  /** An agent works at one task at a time. */
  task: TaskSpans | null;
  /** Its last task was taken from it. */
  isCutOff: boolean;
}

/** Whether an event of this type matters to spans; cheap. */
export function concernsSpans(type: string): boolean {
  return timelineEventTypes.has(type);
}

export class RunSpans {
  readonly #spans: OpenSpans;
  readonly #runId: string;
  readonly #runSpan: OpenSpan | null;
  readonly #agents = new Map<string, OpenAgent>();
  readonly #questions = new Map<string, OpenSpan>();
  /** Agents whose task may have failed for good. */
  readonly #undecided = new Set<OpenAgent>();

  constructor(spans: OpenSpans) {
    const { runId, graphId, jobName, submittedAtMs } = spans.run;
    this.#spans = spans;
    this.#runId = runId;
    this.#runSpan = spans.open(runSpan(runId), `run ${graphId}`, submittedAtMs, {
      "troupe.graph_id": graphId,
      ...(jobName !== null && { "troupe.job_name": jobName }),
    });
  }

  /** Takes the run's next event, in order; `settle` follows the last one of every cut. */
  apply(seq: number, line: string): void {
    if (!concernsSpans(eventType(line))) return;
    const event = parseEvent(line);
    const seen = { event, fields: fieldsOf(event), seq, atMs: Date.parse(event.timestamp) };
    if (event.agentId === null) this.#ofRun(seen);
    else this.#ofAgent(event.agentId, seen);
  }

  /** The cut is over: a task whose attempt failed, and of which no further attempt was announced, has ended. */
  settle(): void {
    for (const agent of this.#undecided) endTask(agent, "failed");
    this.#undecided.clear();
  }

  // ------------------------------------------------------------------------------------------------- the run

  #ofRun(seen: SeenEvent): void {
    switch (seen.event.type) {
      case "job_completed":
        this.#endRun(seen, "completed");
        return;
      case "job_failed":
        this.#endRun(seen, "failed");
        return;
      case "job_cancelled":
        this.#endRun(seen, "cancelled");
        return;
      case "job_paused":
      case "job_resumed":
      case "job_recovered":
      case "job_handed_over":
      case "message_dead_lettered":
        happenedIn(this.#runSpan, seen);
        return;
      default:
      // How a run comes to be running takes no time worth showing.
    }
  }

  #endRun({ event, atMs }: SeenEvent, status: string): void {
    this.settle();
    for (const span of this.#questions.values()) this.#spans.end(span, atMs, "cancelled");
    this.#questions.clear();
    for (const agent of this.#agents.values()) {
      // What waits when a run ends is cancelled, also when the run fails: it has not failed itself.
      endTask(agent, "cancelled", atMs);
      this.#endAgent(agent, agent.isCutOff && status !== "completed" ? "cancelled" : "completed", atMs);
    }
    this.#agents.clear();
    if (event.failure !== null) this.#runSpan?.failed(event.failure, atMs);
    this.#spans.end(this.#runSpan, atMs, status, status === "failed" ? "The run failed." : null);
  }

  // ---------------------------------------------------------------------------------------------------- agents

  #ofAgent(agentId: string, seen: SeenEvent): void {
    const { event, fields, atMs, seq } = seen;
    const agent = this.#agent(agentId);
    switch (event.type) {
      case "agent_started":
        agent.span ??= this.#spans.open(agentSpan(this.#runId, agentId), `agent ${agentId}`, atMs, {
          "troupe.agent_id": agentId,
          "troupe.agent_type": textField(fields, "agent_type") ?? "",
        });
        return;
      case "agent_completed":
        agent.span?.set({ "troupe.processed_messages": wholeField(fields, "processed_messages") });
        this.#endAgent(agent, "completed", atMs);
        this.#agents.delete(agentId);
        return;
      case "agent_failed":
        // It failed at one message permanently; under failure_policy continue it processes the next one.
        if (event.failure !== null) {
          agent.task?.span?.failed(event.failure, atMs);
          agent.span?.failed(event.failure, atMs);
        }
        this.#undecided.delete(agent);
        endTask(agent, "failed", atMs);
        return;
      case "human_input_requested":
        this.#ask(agentId, textField(fields, "request_id") ?? `req_${seq}`, atMs);
        return;
      case "human_input_answered":
        this.#answered(seen, "answered");
        return;
      case "human_input_timed_out":
        this.#answered(seen, "timed_out");
        return;
      case "artifact_written":
      case "message_dead_lettered":
      case "message_retried":
        happenedIn(agent.task?.attempt ?? agent.span ?? this.#runSpan, seen);
        return;
      default:
        this.#ofTask(agentId, agent, seen);
    }
  }

  #agent(agentId: string): OpenAgent {
    let agent = this.#agents.get(agentId);
    if (agent === undefined) {
      agent = { span: null, task: null, isCutOff: false };
      this.#agents.set(agentId, agent);
    }
    return agent;
  }

  #endAgent(agent: OpenAgent, status: string, atMs: number): void {
    endTask(agent, status, atMs);
    this.#spans.end(agent.span, atMs, agent.span?.hasFailed === true ? "failed" : status);
    agent.span = null;
  }

  #ofTask(agentId: string, agent: OpenAgent, seen: SeenEvent): void {
    const { event, fields, atMs } = seen;
    const number = wholeField(fields, "task");
    if (number === null) return;
    if (event.type === "executor_lease_requested" && agent.task?.number !== number) {
      // A new task is the end of the one before.
      endTask(agent, "completed");
      agent.isCutOff = false;
      agent.task = new TaskSpans(this.#spans, agentId, number, atMs);
    }
    if (agent.task?.number !== number) return;
    const change = agent.task.apply(seen);
    if (change === "may_have_failed") this.#undecided.add(agent);
    else this.#undecided.delete(agent);
    if (typeof change === "object") endTask(agent, change.endedAs, atMs);
  }

  // ------------------------------------------------------------------------------------------------- questions

  #ask(agentId: string, requestId: string, atMs: number): void {
    // A question that is asked again is still the same.
    if (this.#questions.has(requestId)) return;
    const span = this.#spans.open(
      namedSpan(this.#runId, agentId, "human", requestId),
      `human ${agentId}`,
      atMs,
      { "troupe.agent_id": agentId, "troupe.request_id": requestId },
    );
    if (span !== null) this.#questions.set(requestId, span);
  }

  #answered({ fields, atMs }: SeenEvent, status: string): void {
    const requestId = textField(fields, "request_id") ?? "";
    const span = this.#questions.get(requestId);
    if (span === undefined) return;
    span.set({ "troupe.decision": textField(fields, "decision") });
    this.#spans.end(span, atMs, status);
    this.#questions.delete(requestId);
  }
}

/** @param atMs by default the time of its last event */
function endTask(agent: OpenAgent, status: string, atMs?: number): void {
  if (agent.task === null) return;
  agent.task.end(status, atMs);
  agent.task = null;
  agent.isCutOff = status === "cancelled";
}

const TEXT_CHARS_MAX = 256;

/** Notes an event with its small fields. */
function happenedIn(span: OpenSpan | null, { event, fields, atMs }: SeenEvent): void {
  const attributes: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === "number" || typeof value === "boolean") attributes[`troupe.${name}`] = value;
    else if (typeof value === "string") attributes[`troupe.${name}`] = value.slice(0, TEXT_CHARS_MAX);
  }
  span?.happened({ name: event.type, atMs, attributes });
}
