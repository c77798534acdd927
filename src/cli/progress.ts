// The state of a run as a watcher sees it: built from its events alone, one after another, without a clock.

import type { JsonObject } from "../engine/json.ts";
import {
  eventText,
  type HistoryEvent,
  isQuestion,
  isResultObject,
  progressPercent,
  progressText,
} from "./event-text.ts";
import { cleanText } from "./text.ts";

export type AgentState = "ready" | "queued" | "running" | "retrying" | "done" | "failed" | "stopped";

export interface AgentProgress {
  readonly agentId: string;
  state: AgentState;
  messages: number;
  /** Of the running or last command; 0 before the first. */
  attempt: number;
  /** When the state was entered, as wall time of the runtime. */
  sinceMs: number;
  /** Its last log or progress line. */
  text: string;
  percent: number | null;
}

export interface RunProgress {
  jobState: string;
  startedAtMs: number | null;
  endedAtMs: number | null;
  /** Sequence of the last event seen. */
  sequence: number;
  messages: number;
  artifacts: number;
  readonly agents: Map<string, AgentProgress>;
  /** What people are asked and have not answered yet: the payloads of the questions, by their ids. */
  readonly questions: Map<string, JsonObject>;
}

export function newProgress(): RunProgress {
  return {
    jobState: "pending",
    startedAtMs: null,
    endedAtMs: null,
    sequence: 0,
    messages: 0,
    artifacts: 0,
    agents: new Map(),
    questions: new Map(),
  };
}

/** Takes one more event into account; events must come in order. */
export function applyEvent(run: RunProgress, event: HistoryEvent): void {
  run.sequence = event.sequence;
  const atMs = Date.parse(event.timestamp);
  if (event.type.startsWith("job_")) applyToJob(run, event, atMs);
  else if (event.agentId !== null) applyToAgent(run, agentOf(run, event.agentId, atMs), event, atMs);
}

function applyToJob(run: RunProgress, event: HistoryEvent, atMs: number): void {
  run.startedAtMs ??= atMs;
  switch (event.type) {
    case "job_running":
    case "job_resumed":
    case "job_recovered":
      run.jobState = "running";
      return;
    case "job_paused":
      run.jobState = "paused";
      return;
    case "job_completed":
    case "job_failed":
    case "job_cancelled":
      run.jobState = event.type.slice("job_".length);
      run.endedAtMs = atMs;
      run.questions.clear();
      for (const agent of run.agents.values()) if (isActive(agent)) agent.state = "stopped";
  }
}

/** Whether a command of the agent runs, or is about to. */
export function isActive({ state }: AgentProgress): boolean {
  return state === "queued" || state === "running" || state === "retrying";
}

function agentOf(run: RunProgress, agentId: string, atMs: number): AgentProgress {
  const known = run.agents.get(agentId);
  if (known !== undefined) return known;
  const agent: AgentProgress = {
    agentId,
    state: "ready",
    messages: 0,
    attempt: 0,
    sinceMs: atMs,
    text: "",
    percent: null,
  };
  run.agents.set(agentId, agent);
  return agent;
}

/** The state that an agent enters with an event. */
const entered: ReadonlyMap<string, AgentState> = new Map([
  ["executor_lease_requested", "queued"],
  ["sandbox_job_started", "running"],
  ["sandbox_job_retry_scheduled", "retrying"],
  ["executor_interrupted", "queued"],
  ["sandbox_job_completed", "ready"],
  ["agent_failed", "failed"],
  ["agent_completed", "done"],
]);

function applyToAgent(run: RunProgress, agent: AgentProgress, event: HistoryEvent, atMs: number): void {
  const { payload } = event;
  const state = entered.get(event.type);
  if (state !== undefined && agent.state !== "failed") {
    agent.state = state;
    agent.sinceMs = atMs;
  }
  switch (event.type) {
    case "agent_message_received":
      agent.messages++;
      run.messages++;
      break;
    case "sandbox_job_started":
      agent.attempt = typeof payload.attempt === "number" ? payload.attempt : agent.attempt + 1;
      agent.percent = null;
      break;
    case "sandbox_job_retry_scheduled":
    case "sandbox_job_failed":
    case "message_dead_lettered":
    case "agent_failed":
      agent.text = eventText(event);
      break;
    case "progress":
      agent.percent = progressPercent(payload) ?? agent.percent;
      agent.text = progressText(payload);
      break;
    case "log":
      if (!isResultObject(event)) agent.text = cleanText(payload.message ?? payload) || agent.text;
      break;
    case "human_input_requested":
      agent.text = eventText(event);
      if (isQuestion(event)) run.questions.set(String(payload.request_id), payload);
      break;
    case "human_input_answered":
    case "human_input_timed_out":
      agent.text = eventText(event);
      run.questions.delete(String(payload.request_id));
      break;
    case "artifact_written":
      run.artifacts++;
      break;
  }
}
