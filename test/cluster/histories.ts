// What is wrong with the histories that a cluster shows: from the API's words alone, without knowledge of the program.
//
// - A run's events are numbered from 1, without a gap or a repetition.
// - One event ends the run, it is the last one, and the run's record has its status.
// - A run is begun once, works only while it is neither paused nor over, and is paused and resumed in turn.
// - A message is received once. Of an attempt there is one start, and one end at most; the next attempt of its task comes behind
//     the end; and nothing of a task comes behind its success.
// - Every node tells the same history, by its pages and by its stream, the same record, and the same files.
// - What was acknowledged is listed once, under the id that was acknowledged, and nothing else is.

import type { SeenEvent } from "../support/gateway-api.ts";

/** A run as one node tells it. */
export interface ToldRun {
  /** Of the record. */
  readonly status: string;
  /** From its pages. */
  readonly events: readonly SeenEvent[];
  /** From its stream, read from the begin to its end. */
  readonly streamed: readonly SeenEvent[];
  /** What its commands left: what is in each file. */
  readonly files: readonly string[];
}

const BEGINS = ["job_pending", "job_validated", "job_scheduled", "job_running"];
/** With the status that each gives the run. */
const ENDS: ReadonlyMap<string, string> = new Map([
  ["job_completed", "completed"],
  ["job_failed", "failed"],
  ["job_cancelled", "cancelled"],
]);
const ATTEMPT_ENDS = new Set(["sandbox_job_completed", "sandbox_job_failed", "executor_interrupted"]);

/** @returns a sentence for each thing that is wrong with one run; none when all is well */
export function wrongWithRun(runId: string, byNode: ReadonlyMap<string, ToldRun>): readonly string[] {
  const wrong: string[] = [];
  const [first] = byNode;
  if (first === undefined) return [`${runId}: no node tells it`];
  const [firstNode, { status, events, files }] = first;
  const expected = JSON.stringify(events);
  for (const [node, told] of byNode) {
    if (told.status !== status) wrong.push(`it is ${status} on ${firstNode} and ${told.status} on ${node}`);
    if (told.files.join() !== files.join())
      wrong.push(`its files are ${files} on ${firstNode} and ${told.files} on ${node}`);
    if (JSON.stringify(told.events) !== expected)
      wrong.push(`${node} has another history than ${firstNode}: ${difference(events, told.events)}`);
    if (JSON.stringify(told.streamed) !== expected)
      wrong.push(`the stream of ${node} is not the history: ${difference(events, told.streamed)}`);
  }
  wrong.push(...wrongNumbers(events), ...wrongEnd(events, status), ...wrongStatuses(events));
  wrong.push(...wrongMessages(events), ...wrongAttempts(events));
  return wrong.map((text) => `${runId}: ${text}`);
}

/**
 * @param acknowledged the id that each submission was answered with
 * @param listed the ids of all runs that a node lists
 * @returns a sentence for each thing that is wrong
 */
export function wrongWithList(acknowledged: Iterable<string>, listed: readonly string[]): readonly string[] {
  const wrong: string[] = [];
  const expected = new Set<string>();
  for (const id of acknowledged) {
    if (expected.has(id)) wrong.push(`${id} was acknowledged for two submissions`);
    expected.add(id);
  }
  const seen = new Set<string>();
  for (const id of listed) {
    if (seen.has(id)) wrong.push(`${id} is listed twice`);
    if (!expected.has(id)) wrong.push(`${id} is listed, and nobody was told of it`);
    seen.add(id);
  }
  for (const id of expected) if (!seen.has(id)) wrong.push(`${id} was acknowledged and is not listed`);
  return wrong;
}

function wrongNumbers(events: readonly SeenEvent[]): readonly string[] {
  return events.flatMap(({ id }, i) => {
    const expected = (events[i - 1]?.id ?? 0) + 1;
    return id === expected ? [] : [`event ${id} comes where ${expected} is expected`];
  });
}

function wrongEnd(events: readonly SeenEvent[], status: string): readonly string[] {
  const ends = events.filter(({ type }) => ENDS.has(type));
  const [end] = ends;
  if (end === undefined) return [`it has not ended; its last event is ${events.at(-1)?.type}`];
  const wrong: string[] = [];
  if (ends.length > 1) wrong.push(`it ends ${ends.length} times`);
  if (events.at(-1) !== end) wrong.push(`${events.at(-1)?.type} comes behind its end`);
  if (ENDS.get(end.type) !== status) wrong.push(`its record says ${status} behind ${end.type}`);
  return wrong;
}

function wrongStatuses(events: readonly SeenEvent[]): readonly string[] {
  const wrong: string[] = [];
  let isPaused = false;
  for (const { id, type } of events) {
    if (type === "job_paused" || type === "job_resumed") {
      if (isPaused === (type === "job_paused")) wrong.push(`${type} comes twice, as ${id}`);
      isPaused = type === "job_paused";
    }
    if (isPaused && type === "sandbox_job_started")
      wrong.push(`a command is started while it is paused, as ${id}`);
  }
  const begin = events.filter(({ type }) => BEGINS.includes(type)).map(({ type }) => type);
  // One may be cancelled before it has begun.
  const isUnbegun = begin.length <= 1 && events.at(-1)?.type === "job_cancelled";
  if (begin.join() !== BEGINS.join() && !isUnbegun) wrong.push(`it begins with ${begin.join(", ")}`);
  return wrong;
}

function wrongMessages(events: readonly SeenEvent[]): readonly string[] {
  const seen = new Set<unknown>();
  return events
    .filter(({ type }) => type === "agent_message_received")
    .flatMap(({ payload: { message_id: message }, agent_id: agent }) => {
      if (seen.has(message)) return [`${agent} received ${message} again`];
      seen.add(message);
      return [];
    });
}

/** What is known of a task so far. */
interface Task {
  attempt: number;
  isRunning: boolean;
  hasSucceeded: boolean;
}

function wrongAttempts(events: readonly SeenEvent[]): readonly string[] {
  const wrong: string[] = [];
  const tasks = new Map<unknown, Task>();
  for (const { id, type, agent_id: agent, payload } of events) {
    const isStart = type === "sandbox_job_started";
    if (!isStart && !ATTEMPT_ENDS.has(type)) continue;
    const task = tasks.get(payload.task) ?? { attempt: 0, isRunning: false, hasSucceeded: false };
    tasks.set(payload.task, task);
    const attempt = Number(payload.attempt);
    const name = `attempt ${attempt} of ${agent}`;
    if (task.hasSucceeded) wrong.push(`${type} of ${name} comes behind its success, as ${id}`);
    if (isStart) {
      if (task.isRunning) wrong.push(`${name} starts while attempt ${task.attempt} runs, as ${id}`);
      if (attempt <= task.attempt) wrong.push(`${name} starts behind attempt ${task.attempt}, as ${id}`);
      task.attempt = attempt;
    } else if (!task.isRunning || attempt !== task.attempt)
      wrong.push(`${type} of ${name} comes without its start, as ${id}`);
    task.isRunning = isStart;
    task.hasSucceeded ||= type === "sandbox_job_completed";
  }
  return wrong;
}

function difference(one: readonly SeenEvent[], other: readonly SeenEvent[]): string {
  const at = one.findIndex((event, i) => JSON.stringify(event) !== JSON.stringify(other[i]));
  const shown = (event: SeenEvent | undefined) => (event === undefined ? "nothing" : JSON.stringify(event));
  const place = at === -1 ? one.length : at;
  return `${shown(one[place])} became ${shown(other[place])}`;
}
