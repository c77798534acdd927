// What of a run a person may have to see to, as tables for people. Pure but for `ago`; every text from outside is cleaned
// here. The records are the same on both APIs.

import type { DeadLetter, HumanRequest, Retried } from "../../sdk/src/index.ts";
import { ago } from "./record-text.ts";
import { cleanText, plural } from "./text.ts";

export const requestHead = ["RUN", "REQUEST", "AGENT", "ASKED", "UNTIL", "DECISIONS", "QUESTION"] as const;

const QUESTION_CHARS = 120;

/** @param id of the run, or of the runtime's job: what the other commands take */
export function requestRow(id: string, request: HumanRequest): readonly string[] {
  const { allowed_decisions: allowed, expires_at: until } = request;
  return [
    cleanText(id),
    cleanText(request.request_id),
    cleanText(request.agent_id),
    ago(request.created_at),
    until === null ? "-" : cleanText(until),
    allowed.length === 0 ? "any" : allowed.map(cleanText).join(", "),
    cleanText(request.prompt).slice(0, QUESTION_CHARS),
  ];
}

export function answeredLine({ request_id: id, response }: HumanRequest): string {
  return cleanText(`${id} answered ${JSON.stringify(response?.decision ?? null)}`);
}

export const letterHead = ["DEAD LETTER", "STATUS", "FOR", "REASON", "ATTEMPTS", "WHEN", "MESSAGE"] as const;

export function letterRow(letter: DeadLetter): readonly string[] {
  return [
    cleanText(letter.dead_letter_id),
    cleanText(letter.status),
    cleanText(letter.agent_id ?? ""),
    cleanText(letter.reason),
    String(letter.attempts),
    ago(letter.created_at),
    cleanText(letter.message.type ?? ""),
  ];
}

/** What was done, and, if something was not, why. */
export function retriedLines({ retried, not_deliverable: left }: Retried): readonly [string, string | null] {
  const why = "their agents do not exist, have ended, or have no room";
  return [
    `${plural(retried, "message")} sent again`,
    left === 0 ? null : `${plural(left, "dead letter")} stay open: ${why}.`,
  ];
}
