// What the workers of a job ask people: open requests, their answers, and the way back to who asked.
//
// H1. A request closes once: by the first answer, or by its time being over. The answer is part of the same cut.
// H2. An answer goes to the task that asked, into the file of whichever attempt of it runs; a long-lived command is
//     also sent it as a message. When that task is gone, or was not to wait, it becomes a message to the agent.
// H3. No attempt finds the same answer in its file twice, and no answer waits twice in a mailbox.
// H4. While a job is paused its requests can be answered. Their time runs on, but it is over only when the job goes on.

import { isoTime } from "./event.ts";
import { isLongLived } from "./graph.ts";
import type { HumanEntry } from "./human-book.ts";
import { type Question, questionPayload, readQuestion } from "./human-question.ts";
import type { AgentSlot, Job, Task } from "./job.ts";
import * as mail from "./job-messages.ts";
import type { HumanRequest, HumanResponse } from "./journal.ts";
import { isObject, type JsonObject, type JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import type { Message } from "./message.ts";
import { toSteady } from "./steady-time.ts";

/** The type of the message that carries an answer. */
export const HUMAN_RESPONSE = "human_response";
export const HUMAN_INPUT_REQUESTED = "human_input_requested";

// -------------------------------------------------------------------------------------------------- asking

/**
 * A worker asks a person. Its task, if it has one, is that of its agent.
 * @param cause the message that the worker works on
 * @returns the characters that this added to the history
 */
export function ask(job: Job, agent: AgentSlot, payload: JsonValue, cause: Message | null): number {
  const question = readQuestion(payload);
  // A long-lived command listens to both, so that it is always its task that waits.
  const waits = question.reply === "file" || isLongLived(agent.node);
  const task = waits ? agent.task : null;
  const known = find(job, agent, question, task);
  if (known !== null) return askAgain(job, agent, known, { payload, question, task, cause });
  if (job.human.pending.size >= limits.humanRequestsOpenMax) {
    return job.event(HUMAN_INPUT_REQUESTED, agent.node.nodeId, payload) + warnOfCrowd(job, agent);
  }
  const seq = job.eventSeq + 1;
  const requestId = freeId(job, question.requestId ?? `req_${seq}`, seq);
  const nowMs = job.context.clock.nowMs();
  const request: HumanRequest = {
    requestId,
    eventSeq: seq,
    agentId: agent.node.nodeId,
    taskSeq: task?.seq ?? null,
    prompt: question.prompt,
    allowedDecisions: question.allowedDecisions,
    defaultAction: question.defaultAction,
    status: "pending",
    createdAtMs: nowMs,
    expiresAtMs: question.timeoutMs === null ? null : nowMs + question.timeoutMs,
    response: null,
  };
  const chars = requested(job, request, payload, question, false);
  agent.openRequests++;
  const dueAtMs = question.timeoutMs === null ? null : job.context.clock.steadyMs() + question.timeoutMs;
  const entry = { request, attempt: task?.attempt ?? 0, dueAtMs };
  change(job, entry);
  armTimer(job, entry);
  return chars + warnOfName(job, agent, payload, question, requestId);
}

/** The request that is asked again: by its name, or, without one, what an earlier attempt had asked in these words. */
function find(job: Job, agent: AgentSlot, question: Question, task: Task | null): HumanEntry | null {
  if (question.requestId !== null) {
    const entry = job.human.get(question.requestId);
    if (entry === undefined || entry.request.agentId === agent.node.nodeId) return entry ?? null;
  }
  // A long-lived command goes on with new messages when it is started again, and so with new questions.
  if (task === null || task.attempt === 1 || isLongLived(agent.node)) return null;
  let earliest: HumanEntry | null = null;
  for (const entry of job.human.all()) {
    const { request, attempt } = entry;
    const isSame =
      request.taskSeq === task.seq &&
      attempt !== task.attempt &&
      request.prompt === question.prompt &&
      request.requestId.startsWith(`req_${request.eventSeq}`);
    if (isSame && (earliest === null || request.eventSeq < earliest.request.eventSeq)) earliest = entry;
  }
  return earliest;
}

interface Asking {
  readonly payload: JsonValue;
  readonly question: Question;
  readonly task: Task | null;
  readonly cause: Message | null;
}

function askAgain(
  job: Job,
  agent: AgentSlot,
  known: HumanEntry,
  { payload, question, task, cause }: Asking,
): number {
  const { request } = known;
  const chars = requested(job, request, payload, question, true);
  const isSameTask = request.taskSeq === (task?.seq ?? null);
  const now: HumanEntry = {
    ...known,
    request: { ...request, taskSeq: task?.seq ?? null },
    attempt: task?.attempt ?? 0,
  };
  if (isSameTask) job.human.put(now);
  else change(job, now);
  if (request.response === null) return chars;
  if (task === null) {
    // Whoever works on the answer and asks the same again has it in the hand; answering would go on for ever.
    if (!isAnswerTo(request, cause)) sendMessageAgain(job, agent, request);
  } else if (!isSameTask) hand(job, agent, now.request);
  // This attempt has it in its file, but listens to its stdin too.
  else if (isLongLived(agent.node) && known.attempt !== task.attempt) sendMessageAgain(job, agent, request);
  return chars;
}

/** Sends an answer once more, unless it still waits in the mailbox: an attempt that is made again asks again. */
function sendMessageAgain(job: Job, agent: AgentSlot, request: HumanRequest): void {
  if (!agent.mailbox.some((message) => isAnswerTo(request, message))) sendMessage(job, agent, request);
}

function isAnswerTo(request: HumanRequest, cause: Message | null): boolean {
  return (
    cause?.type === HUMAN_RESPONSE && isObject(cause.body) && cause.body.request_id === request.requestId
  );
}

/** A name that no request of this job has: names of workers may collide, also with those made here. */
function freeId(job: Job, wanted: string, seq: number): string {
  let id = wanted;
  for (let n = 1; job.human.get(id) !== undefined; n++) id = n === 1 ? `req_${seq}` : `req_${seq}_${n}`;
  return id;
}

function requested(
  job: Job,
  request: HumanRequest,
  payload: JsonValue,
  question: Question,
  repeated: boolean,
): number {
  const expiresAt = request.expiresAtMs === null ? null : isoTime(request.expiresAtMs);
  const shown = questionPayload(payload, question, { requestId: request.requestId, expiresAt, repeated });
  return job.event(HUMAN_INPUT_REQUESTED, request.agentId, shown);
}

/** @returns characters of the warning that the request is not called what the worker calls it; 0 without one */
function warnOfName(job: Job, agent: AgentSlot, payload: JsonValue, question: Question, id: string): number {
  const given = isObject(payload) ? payload.request_id : undefined;
  if (given === undefined || given === null || given === id) return 0;
  const why =
    question.requestId === null
      ? "is no word of letters, digits and _ . : -"
      : "names a request of another agent";
  return warn(
    job,
    agent,
    `The request_id ${JSON.stringify(given).slice(0, 200)} ${why}: it is called ${id}.`,
  );
}

/** Says why nobody is asked; once for each time that it comes to this. */
function warnOfCrowd(job: Job, agent: AgentSlot): number {
  if (job.human.isFullSaid) return 0;
  job.human.isFullSaid = true;
  const most = `${limits.humanRequestsOpenMax} requests of this run wait for a person already`;
  return warn(job, agent, `Nobody is asked what this run asks from now on: ${most}.`);
}

function warn(job: Job, agent: AgentSlot, message: string): number {
  return job.event("log", agent.node.nodeId, {
    level: "warn",
    stream: "runtime",
    message,
    attempt: agent.task?.attempt ?? null,
  });
}

// ----------------------------------------------------------------------------------------------- answering

/** An answer as a caller hands it in. */
export interface PersonsAnswer {
  readonly requestId: string;
  readonly decision: string;
  readonly comment: string | null;
  /** As JSON text; null without any. */
  readonly dataJson: string | null;
  readonly principal: string;
}

export type Answered =
  | { readonly kind: "answered"; readonly request: HumanRequest }
  | { readonly kind: "already_closed"; readonly request: HumanRequest }
  | { readonly kind: "unknown_request" };

/** A person answers; the first answer stands (H1). @throws SyntaxError when `dataJson` is no JSON */
export function answer(job: Job, given: PersonsAnswer): Answered {
  const entry = job.human.get(given.requestId);
  if (entry === undefined) return { kind: "unknown_request" };
  if (entry.request.status !== "pending") return { kind: "already_closed", request: entry.request };
  const { decision, comment, dataJson, principal } = given;
  const respondedAtMs = job.context.clock.nowMs();
  const request = close(job, entry, "answered", { decision, comment, dataJson, principal, respondedAtMs });
  return { kind: "answered", request };
}

/** A request's time is over; late and superseded timers change nothing. */
export function expired(job: Job, requestId: string): void {
  const { clock } = job.context;
  const entry = job.human.pending.get(requestId);
  const dueAtMs = entry?.dueAtMs ?? null;
  if (entry === undefined || job.status !== "running" || dueAtMs === null || dueAtMs > clock.steadyMs())
    return;
  const decision = entry.request.defaultAction ?? "timed_out";
  close(job, entry, "timed_out", {
    decision,
    comment: null,
    dataJson: null,
    principal: null,
    respondedAtMs: clock.nowMs(),
  });
}

function close(
  job: Job,
  { request: asked, attempt }: HumanEntry,
  status: "answered" | "timed_out",
  response: HumanResponse,
): HumanRequest {
  const request = { ...asked, status, response };
  const agent = agentOf(job, request);
  const body = bodyOf(request, response);
  const { requestId: request_id, agentId } = request;
  const { decision, principal } = response;
  if (status === "answered") job.event("human_input_answered", agentId, { request_id, decision, principal });
  else job.event("human_input_timed_out", agentId, { request_id, decision });
  agent.openRequests--;
  const seenBy = isLongLived(agent.node) ? attemptToCome(job, request) : attempt;
  change(job, { request, attempt: seenBy, dueAtMs: null });
  hand(job, agent, request, body);
  return request;
}

/** The attempt of a long-lived command that is sent an answer now. */
function attemptToCome(job: Job, request: HumanRequest): number {
  const task = waitingTask(job, request);
  if (task === null) return 0;
  return task.state.kind === "running" ? task.attempt : task.attempt + 1;
}

/** Hands an answer to whoever waits for it (H2); from here on nothing but a question asked again gives it again. */
function hand(
  job: Job,
  agent: AgentSlot,
  request: HumanRequest,
  body: JsonObject = bodyOf(request, request.response!),
): void {
  const task = waitingTask(job, request);
  if (task?.state.kind === "running") {
    const ref = { jobId: job.jobId, taskSeq: task.seq, attempt: task.attempt };
    job.draft.effects.responses.push({ ref, line: JSON.stringify(body) });
  }
  if (task === null || isLongLived(agent.node)) sendMessage(job, agent, request, body);
}

function sendMessage(
  job: Job,
  agent: AgentSlot,
  request: HumanRequest,
  body: JsonObject = bodyOf(request, request.response!),
): void {
  mail.deliver(job, { to: agent.node.index, from: null, type: HUMAN_RESPONSE, body });
}

/** The task that waits for the answer; null when none does, or when it has ended. */
function waitingTask(job: Job, { taskSeq }: HumanRequest): Task | null {
  const task = taskSeq === null ? undefined : job.tasks.get(taskSeq);
  return task === undefined || task.state.kind === "ended" ? null : task;
}

function bodyOf(request: HumanRequest, response: HumanResponse): JsonObject {
  const { decision, comment, dataJson, principal, respondedAtMs } = response;
  return {
    request_id: request.requestId,
    status: request.status,
    decision,
    ...(comment !== null && { comment }),
    ...(dataJson !== null && { data: JSON.parse(dataJson) as JsonValue }),
    principal,
    responded_at: isoTime(respondedAtMs),
  };
}

/** Answers that a new attempt of the task finds in its file, as lines of JSON. */
export function answersFor(job: Job, task: Task): readonly string[] {
  // A first attempt has asked nothing yet.
  if (task.attempt === 1) return [];
  const lines: string[] = [];
  for (const { request } of job.human.closed) {
    if (request.taskSeq === task.seq) lines.push(JSON.stringify(bodyOf(request, request.response!)));
  }
  return lines;
}

// ------------------------------------------------------------------------------------------ a job's course

/** A task has ended: answers to what it asked become messages. */
export function taskGone(job: Job, agent: AgentSlot, taskSeq: number): void {
  if (agent.openRequests === 0 || job.isOver) return;
  for (const entry of [...job.human.pending.values()]) {
    if (entry.request.taskSeq !== taskSeq) continue;
    change(job, { ...entry, request: { ...entry.request, taskSeq: null }, attempt: 0 });
  }
}

/** Whether the job may not complete because the answer to a request will be a message to an agent that lives. */
export function holdsJobOpen(job: Job): boolean {
  for (const { request } of job.human.pending.values()) {
    if (request.taskSeq === null && !agentOf(job, request).done) return true;
  }
  return false;
}

/** Whether a person is what the agent's task waits for; without a task, what the agent waits for. */
export function waitsForPerson(job: Job, agent: AgentSlot): boolean {
  if (agent.openRequests === 0 || isLongLived(agent.node)) return false;
  if (agent.task === null) return agent.mailbox.size === 0;
  for (const { request } of job.human.pending.values()) if (request.taskSeq === agent.task.seq) return true;
  return false;
}

/** Sets the timers of everything that is open; earlier settings of the same timers do no harm. */
export function armTimers(job: Job): void {
  for (const entry of job.human.pending.values()) armTimer(job, entry);
}

function armTimer(job: Job, { request, dueAtMs }: HumanEntry): void {
  if (dueAtMs !== null) job.timer(dueAtMs, { kind: "human", requestId: request.requestId });
}

/** Takes over a request that the journal held. */
export function restore(job: Job, request: HumanRequest): void {
  const isOpen = request.status === "pending" && request.expiresAtMs !== null;
  const dueAtMs = isOpen ? toSteady(job.context.clock, request.expiresAtMs) : null;
  job.human.put({ request, attempt: 0, dueAtMs });
  if (request.status === "pending") agentOf(job, request).openRequests++;
}

function change(job: Job, entry: HumanEntry): void {
  const { request } = entry;
  job.human.put(entry);
  job.draft.humanRequests.set(request.eventSeq, request);
  job.draft.dirtyAgents.add(agentOf(job, request).node.index);
}

function agentOf(job: Job, { agentId }: HumanRequest): AgentSlot {
  return job.agents[job.graph.indexOf.get(agentId)!]!;
}
