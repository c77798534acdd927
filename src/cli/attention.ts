// `troupe human`, `answer` and `dead-letters`: what runs ask people, and the messages that could not be delivered.

import type { DeadLetter, HumanRequest } from "../../sdk/src/index.ts";
import { isObject } from "../engine/json.ts";
import { type Call, printAnswer, UsageError } from "./command.ts";
import { jsonOption } from "./input.ts";
import { limitOf, printList } from "./lists.ts";
import { type NamedRun, withNamedRun } from "./named-run.ts";
import { ago } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { cleanText, plural } from "./text.ts";

const PAGE = 200;
const QUESTION_CHARS = 120;

// ------------------------------------------------------------------------------------------------ human

/** `troupe human`: open requests of one run, or of every run of the gateway. */
export async function human(call: ServerCall): Promise<number> {
  if (call.words[0] === undefined) return printRequests(call, requestsOfAll(call));
  return withNamedRun(call, (run) => printRequests(call, requestsOf(run)));
}

interface OpenRequest {
  /** What the other commands call the run. */
  readonly id: string;
  readonly request: HumanRequest;
}

async function* requestsOf(run: NamedRun): AsyncGenerator<OpenRequest, undefined> {
  for await (const request of run.requests()) yield { id: run.id, request };
}

async function* requestsOfAll(call: ServerCall): AsyncGenerator<OpenRequest, undefined> {
  const all = call.client.runs.allHumanRequests({ page_size: PAGE });
  for await (const request of all) yield { id: request.run_id, request };
}

function printRequests(call: Call, requests: AsyncIterable<OpenRequest>): Promise<number> {
  return printList<OpenRequest>(call, {
    items: () => requests,
    head: ["RUN", "REQUEST", "AGENT", "ASKED", "UNTIL", "DECISIONS", "DATA", "QUESTION"],
    row: requestRow,
    json: ({ request }) => request,
    nothing: "No open questions.",
    hint: "Answer with: troupe answer RUN REQUEST DECISION; where DATA names fields, with --data. Their schema: --json",
  });
}

function requestRow({ id, request }: OpenRequest): readonly unknown[] {
  const { allowed_decisions: allowed, expires_at: until } = request;
  return [
    id,
    request.request_id,
    request.agent_id,
    ago(request.created_at),
    until ?? "-",
    allowed.length === 0 ? "any" : allowed.join(", "),
    dataText(request.data_schema),
    cleanText(request.prompt).slice(0, QUESTION_CHARS),
  ];
}

/** The fields of the data that an answer brings along; those that may be absent in brackets. */
function dataText(schema: unknown): string {
  if (!isObject(schema)) return "-";
  const names = isObject(schema.properties) ? Object.keys(schema.properties) : [];
  if (names.length === 0) return "yes";
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return cleanText(names.map((name) => (required.includes(name) ? name : `[${name}]`)).join(", "));
}

/** `troupe answer`. */
export async function answer(call: ServerCall): Promise<number> {
  const [, requestId = "", decision = ""] = call.words;
  const comment = call.text("comment");
  const data = jsonOption(call, "data", '{"version": 3}');
  const given = { decision, ...(comment !== null && { comment }), ...(data !== undefined && { data }) };
  return withNamedRun(call, async (run) => {
    const answered = await run.answer(requestId, given);
    const stands = JSON.stringify(answered.response?.decision ?? null);
    return printAnswer(call, answered, () => cleanText(`${answered.request_id} answered ${stands}`));
  });
}

// ----------------------------------------------------------------------------------------- dead letters

/**
 * `troupe dead-letters`: lists them, of one run or the open ones of all, or sends one or all open ones of a run again.
 *
 * @param only the kind of id it takes; any kind when absent
 */
export function deadLetters(only?: "job"): (call: ServerCall) => Promise<number> {
  return async (call) => {
    const one = call.text("retry");
    const isAll = call.flag("retry-all") === true;
    if (one !== null && isAll) throw new UsageError("Give --retry or --retry-all, not both.");
    const isOfAll = call.words[0] === undefined;
    if (one !== null || isAll) {
      if (isOfAll) throw new UsageError("Name the run whose messages are to be sent again.");
      return withNamedRun(call, (run) => retry(call, run, one));
    }
    const limit = limitOf(call);
    if (isOfAll) return printAllLetters(call, limit);
    return withNamedRun(call, (run) => printLetters(call, run, limit), only);
  };
}

function printLetters(call: Call, run: NamedRun, limit: number | null): Promise<number> {
  return printList<DeadLetter>(call, {
    limit,
    items: (pageSize) => run.letters(pageSize, limit),
    head: letterHead,
    row: letterRow,
    nothing: `${cleanText(run.id)} has no dead letters.`,
  });
}

function printAllLetters(call: ServerCall, limit: number | null): Promise<number> {
  return printList<DeadLetter>(call, {
    limit,
    items: (pageSize) => call.client.runs.allDeadLetters({ page_size: pageSize }),
    head: ["RUN", ...letterHead],
    row: (letter) => [letter.run_id, ...letterRow(letter)],
    nothing: "No open dead letters.",
  });
}

const letterHead = ["DEAD LETTER", "STATUS", "FOR", "REASON", "ATTEMPTS", "WHEN", "MESSAGE"];
const letterRow = (letter: DeadLetter) => [
  letter.dead_letter_id,
  letter.status,
  letter.agent_id,
  letter.reason,
  letter.attempts,
  ago(letter.created_at),
  letter.message.type,
];

async function retry(call: Call, run: NamedRun, deadLetterId: string | null): Promise<number> {
  const retried = await run.retry(deadLetterId);
  const { not_deliverable: left } = retried;
  if (left > 0 && !call.flag("json")) {
    const why = "their agents do not exist, have ended, or have no room";
    call.terminal.note(`${plural(left, "dead letter")} stay open: ${why}.`);
  }
  return printAnswer(call, retried, () => `${plural(retried.retried, "message")} sent again`);
}
