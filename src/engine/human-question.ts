// What a worker asks of people, as its event says it (docs/workers.md "Asking a person").
//
// Q1. Reading is lenient: a field of a wrong kind counts as not given, so that a question is never lost by it.

import { isObject, type JsonValue } from "./json.ts";
import { limits } from "./limits.ts";

export interface Question {
  /** The worker's own name for it; null when it gave none that can be used. */
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
export function readQuestion(payload: JsonValue): Question {
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
export function questionPayload(
  payload: JsonValue,
  question: Question,
  became: { readonly requestId: string; readonly expiresAt: string | null; readonly repeated: boolean },
): JsonValue {
  const head = {
    request_id: became.requestId,
    expires_at: became.expiresAt,
    ...(became.repeated && { repeated: true }),
  };
  const whole = { ...(isObject(payload) ? payload : {}), ...head };
  if (JSON.stringify(whole).length <= limits.eventPayloadCharsMax) return whole;
  // Too large to be shown whole: what cannot be done without.
  return {
    prompt: question.prompt,
    allowed_decisions: question.allowedDecisions,
    default_action: question.defaultAction,
    ...head,
  };
}
