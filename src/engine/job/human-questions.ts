// What the workers of a job ask people (docs/workers.md "Asking a person").
//
// - Reading is lenient: a field of a wrong kind counts as not given, so that a question is never lost by it.

import { isoTime } from "../event.ts";
import { isLongLived } from "../graph.ts";
import type { HumanRequest } from "../journal.ts";
import { isObject, type JsonObject, type JsonValue } from "../json.ts";
import { limits } from "../limits.ts";
import type { Message } from "../message.ts";
import { addEvent } from "./history.ts";
import { HUMAN_RESPONSE, handOver, sendAnswer } from "./human-answers.ts";
import { armTimer, changeRequest, findRequest, remember } from "./human-requests.ts";
import type { AgentState, HumanEntry, Job, Task } from "./state.ts";

export const HUMAN_INPUT_REQUESTED = "human_input_requested";

/**
 * A worker asks a person. Its task, if it has one, is that of its agent.
 * @param cause the message that the worker works on
 * @returns the characters that this added to the history
 */
export function ask(job: Job, agent: AgentState, payload: JsonValue, cause: Message | null): number {
  const question = readQuestion(payload);
  // A long-lived command listens to both, so that it is always its task that waits.
  const waits = question.reply === "file" || isLongLived(agent.node);
  const task = waits ? agent.task : null;
  const known = find(job, agent, question, task);
  if (known !== null) return askAgain(job, agent, known, { payload, question, task, cause });
  if (job.human.pending.size >= limits.humanRequestsOpenMax) {
    return addEvent(job, HUMAN_INPUT_REQUESTED, agent.node.nodeId, payload) + warnOfCrowd(job, agent);
  }
  const schema = dataSchema(job, payload);
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
    dataSchemaJson: schema.json,
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
  changeRequest(job, entry);
  armTimer(job, entry);
  const warned = warnOfName(job, agent, payload, question, requestId);
  return chars + warned + warnOfSchema(job, agent, requestId, schema.problem);
}

/** The request that is asked again: by its name, or, without one, what an earlier attempt had asked in these words. */
function find(job: Job, agent: AgentState, question: Question, task: Task | null): HumanEntry | null {
  if (question.requestId !== null) {
    const entry = findRequest(job, question.requestId);
    if (entry === undefined || entry.request.agentId === agent.node.nodeId) return entry ?? null;
  }
  // A long-lived command goes on with new messages when it is started again, and so with new questions.
  if (task === null || task.attempt === 1 || isLongLived(agent.node)) return null;
  let earliest: HumanEntry | null = null;
  for (const entry of [...job.human.pending.values(), ...job.human.closed.values()]) {
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
  agent: AgentState,
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
  if (isSameTask) remember(job.human, now);
  else changeRequest(job, now);
  if (request.response === null) return chars;
  if (task === null) {
    // A worker that works on the answer and asks the same again has it already; answering would go on for ever.
    if (!isAnswerTo(request, cause)) sendAnswerAgain(job, agent, request);
  } else if (!isSameTask) handOver(job, agent, now.request);
  // This attempt has it in its file, but listens to its stdin too.
  else if (isLongLived(agent.node) && known.attempt !== task.attempt) sendAnswerAgain(job, agent, request);
  return chars;
}

/** Sends an answer once more, unless it still waits in the mailbox: an attempt that is made again asks again. */
function sendAnswerAgain(job: Job, agent: AgentState, request: HumanRequest): void {
  if (!agent.mailbox.some((message) => isAnswerTo(request, message))) sendAnswer(job, agent, request);
}

function isAnswerTo(request: HumanRequest, cause: Message | null): boolean {
  return (
    cause?.type === HUMAN_RESPONSE && isObject(cause.body) && cause.body.request_id === request.requestId
  );
}

/** A name that no request of this job has: names of workers may collide, also with those made here. */
function freeId(job: Job, wanted: string, seq: number): string {
  let id = wanted;
  for (let n = 1; findRequest(job, id) !== undefined; n++) id = n === 1 ? `req_${seq}` : `req_${seq}_${n}`;
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
  const shown = questionPayload(payload, question, request, { expiresAt, repeated });
  return addEvent(job, HUMAN_INPUT_REQUESTED, request.agentId, shown);
}

/** @returns characters of the warning that the request is not called what the worker calls it; 0 without one */
function warnOfName(job: Job, agent: AgentState, payload: JsonValue, question: Question, id: string): number {
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

/** Says why an answer's data is not held to the schema that the worker gave. */
function warnOfSchema(job: Job, agent: AgentState, requestId: string, problem: string | null): number {
  if (problem === null) return 0;
  return warn(job, agent, `The data_schema of ${requestId} ${problem}. Any data is taken.`);
}

/** Says why nobody is asked; once for each time that it comes to this. */
function warnOfCrowd(job: Job, agent: AgentState): number {
  if (job.human.isFullSaid) return 0;
  job.human.isFullSaid = true;
  const most = `${limits.humanRequestsOpenMax} requests of this run wait for a person already`;
  return warn(job, agent, `Nobody is asked what this run asks from now on: ${most}.`);
}

function warn(job: Job, agent: AgentState, message: string): number {
  return addEvent(job, "log", agent.node.nodeId, {
    level: "warn",
    stream: "runtime",
    message,
    attempt: agent.task?.attempt ?? null,
  });
}

interface Question {
  /** The worker's own name for it; null when it gave no usable one. */
  readonly requestId: string | null;
  readonly prompt: string;
  /** Empty: any. */
  readonly allowedDecisions: readonly string[];
  readonly defaultAction: string | null;
  /** Milliseconds until the default action is taken; null for never. */
  readonly timeoutMs: number | null;
  /** How the worker waits for the answer. */
  readonly reply: "file" | "message";
}

const TIMEOUT_SECONDS_MAX = 10 * 365 * 24 * 60 * 60;

/** Reads the payload of a `human_input_requested` event. */
function readQuestion(payload: JsonValue): Question {
  const given = isObject(payload) ? payload : {};
  return {
    requestId: isRequestId(given.request_id) ? given.request_id : null,
    prompt: typeof given.prompt === "string" ? wellFormedStart(given.prompt) : "",
    allowedDecisions: decisions(given.allowed_decisions),
    defaultAction: isDecision(given.default_action) ? given.default_action : null,
    timeoutMs: timeoutMs(given.timeout_seconds),
    reply: given.reply === "message" ? "message" : "file",
  };
}

/** The schema of a question's data, or why it cannot be used; neither when there is none. */
function dataSchema({ context }: Job, payload: JsonValue): { json: string | null; problem: string | null } {
  const given = isObject(payload) ? (payload.data_schema ?? null) : null;
  if (given === null) return { json: null, problem: null };
  if (!isObject(given)) return { json: null, problem: "is no JSON object" };
  const json = JSON.stringify(given);
  const max = limits.humanDataSchemaCharsMax;
  const problem =
    json.length > max
      ? `has ${json.length} characters: at most ${max} are allowed`
      : context.schemaProblem(given);
  return { json: problem === null ? json : null, problem };
}

/** As the journal can hold it: an attempt after a restart is recognised by the same words. */
function wellFormedStart(prompt: string): string {
  return prompt.slice(0, limits.humanPromptCharsMax).toWellFormed();
}

/** A name that fits into a path: a word of letters, digits, _ . : and -, which begins with a letter, digit or _. */
function isRequestId(value: unknown): value is string {
  return (
    typeof value === "string" && value.length <= limits.nameCharsMax && /^[A-Za-z0-9_][\w.:-]*$/.test(value)
  );
}

function isDecision(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= limits.nameCharsMax;
}

function decisions(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isDecision).slice(0, limits.humanDecisionsMax);
}

function timeoutMs(seconds: unknown): number | null {
  if (typeof seconds !== "number" || !(seconds > 0 && seconds <= TIMEOUT_SECONDS_MAX)) return null;
  return Math.ceil(seconds * 1_000);
}

/**
 * The payload as the history shows it: what the worker gave, and what the question became.
 * @param expiresAt ISO time; null for a question that waits for ever
 */
function questionPayload(
  payload: JsonValue,
  question: Question,
  { requestId, dataSchemaJson }: HumanRequest,
  became: { readonly expiresAt: string | null; readonly repeated: boolean },
): JsonValue {
  const head = {
    request_id: requestId,
    expires_at: became.expiresAt,
    ...(became.repeated && { repeated: true }),
  };
  const given = isObject(payload) ? payload : {};
  // One that cannot be used is not shown as if it held.
  const schema = dataSchemaJson === null ? null : (JSON.parse(dataSchemaJson) as JsonObject);
  const data = (schema !== null || given.data_schema !== undefined) && { data_schema: schema };
  const whole = { ...given, ...data, ...head };
  if (JSON.stringify(whole).length <= limits.eventPayloadCharsMax) return whole;
  // Too large to be shown whole: what cannot be done without.
  return {
    prompt: question.prompt,
    allowed_decisions: question.allowedDecisions,
    default_action: question.defaultAction,
    ...data,
    ...head,
  };
}
