// Answers of people, or the end of the time for one, and their way to the worker that asked.
//
// - A request closes once: by the first answer, or by its time being over. The answer is part of the same cut.
// - An answer goes to the task that asked, into the file of whichever attempt of it runs; a long-lived command is
//   also sent it as a message. When that task is gone, or was not to wait, it becomes a message to the agent.
// - No attempt finds the same answer in its file twice, and no answer waits twice in a mailbox.
// - While a job is paused its requests can be answered. Their time runs on, but it is over only when the job goes on.

import { isoTime } from "../event.ts";
import { isLongLived } from "../graph.ts";
import type { HumanRequest, HumanResponse } from "../journal.ts";
import type { JsonObject, JsonValue } from "../json.ts";
import { addEvent } from "./history.ts";
import { askerOf, changeRequest, findRequest } from "./human-requests.ts";
import { deliver } from "./messages.ts";
import { type AgentState, type HumanEntry, type Job, refOf, type Task } from "./state.ts";

/** The type of the message that carries an answer. */
export const HUMAN_RESPONSE = "human_response";

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
  /** Somebody was faster, or its time was over: the first answer stands. */
  | { readonly kind: "already_closed"; readonly request: HumanRequest }
  /** Never asked, or closed so long ago that only the journal knows it. */
  | { readonly kind: "unknown_request" };

/** A person answers; the first answer stands. @throws SyntaxError when `dataJson` is no JSON */
export function answer(job: Job, given: PersonsAnswer): Answered {
  const entry = findRequest(job, given.requestId);
  if (entry === undefined) return { kind: "unknown_request" };
  if (entry.request.status !== "pending") return { kind: "already_closed", request: entry.request };
  const { decision, comment, dataJson, principal } = given;
  const respondedAtMs = job.context.clock.nowMs();
  const request = close(job, entry, "answered", { decision, comment, dataJson, principal, respondedAtMs });
  return { kind: "answered", request };
}

/** A request's time is over; late and superseded timers change nothing. */
export function expireRequest(job: Job, requestId: string): void {
  const { clock } = job.context;
  const entry = job.human.pending.get(requestId);
  const dueAtMs = entry?.dueAtMs ?? null;
  if (entry === undefined || job.status !== "running" || dueAtMs === null || dueAtMs > clock.steadyMs())
    return;
  const decision = entry.request.defaultAction ?? "timed_out";
  const respondedAtMs = clock.nowMs();
  close(job, entry, "timed_out", { decision, comment: null, dataJson: null, principal: null, respondedAtMs });
}

function close(
  job: Job,
  { request: asked, attempt }: HumanEntry,
  status: "answered" | "timed_out",
  response: HumanResponse,
): HumanRequest {
  const request = { ...asked, status, response };
  const agent = askerOf(job, request);
  const body = bodyOf(request, response);
  const { requestId: request_id, agentId } = request;
  const { decision, principal } = response;
  if (status === "answered")
    addEvent(job, "human_input_answered", agentId, { request_id, decision, principal });
  else addEvent(job, "human_input_timed_out", agentId, { request_id, decision });
  agent.openRequests--;
  const seenBy = isLongLived(agent.node) ? attemptToCome(job, request) : attempt;
  changeRequest(job, { request, attempt: seenBy, dueAtMs: null });
  handOver(job, agent, request, body);
  return request;
}

/** The attempt of a long-lived command that is sent an answer now. */
function attemptToCome(job: Job, request: HumanRequest): number {
  const task = waitingTask(job, request);
  if (task === null) return 0;
  return task.state.kind === "running" ? task.attempt : task.attempt + 1;
}

/** Hands an answer to its waiting worker; from here on nothing but a question asked again gives it again. */
export function handOver(
  job: Job,
  agent: AgentState,
  request: HumanRequest,
  body: JsonObject = bodyOf(request, request.response!),
): void {
  const task = waitingTask(job, request);
  if (task?.state.kind === "running") {
    job.draft.effects.responses.push({ ref: refOf(job, task), line: JSON.stringify(body) });
  }
  if (task === null || isLongLived(agent.node)) sendAnswer(job, agent, request, body);
}

/** Makes an answer a message to its agent. */
export function sendAnswer(
  job: Job,
  agent: AgentState,
  request: HumanRequest,
  body: JsonObject = bodyOf(request, request.response!),
): void {
  deliver(job, agent.node.index, { from: null, type: HUMAN_RESPONSE, body });
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
  for (const { request } of job.human.closed.values()) {
    if (request.taskSeq === task.seq) lines.push(JSON.stringify(bodyOf(request, request.response!)));
  }
  return lines;
}
