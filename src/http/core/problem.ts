// A problem: any answer other than success, as application/problem+json (RFC 9457). Features and routes throw it,
// problem-answers.ts sends it.

import { type ProblemCode, problemCodes, titleOf } from "./problem-codes.ts";

/** One mistake of a request. */
export interface ProblemEntry {
  /** JSON Pointer into the body, or the name of a query parameter or header; empty for the whole. */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

export interface ProblemExtras {
  readonly errors?: readonly ProblemEntry[];
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly cause?: unknown;
}

export const PROBLEM_TYPE = "application/problem+json";

const ENTRIES_MAX = 100;
const SHOWN_CHARS_MAX = 200;
/** Of a detail or a message, which may quote what the client sent. */
const TEXT_CHARS_MAX = 2_000;

/**
 * An answer other than success.
 *
 * @param code from the catalogue; it settles the status and the title
 * @param detail what happened, where, and what to do next; no secret and no path of this machine
 *
 * @example throw new Problem("conflict", "The job has no run to pause. Start one first.");
 */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly status: number;
  /** Fastify's word for the status. */
  readonly statusCode: number;
  readonly errors: readonly ProblemEntry[];
  readonly headers: Readonly<Record<string, string | readonly string[]>>;

  constructor(code: ProblemCode, detail: string, extras: ProblemExtras = {}) {
    super(shortened(detail), extras.cause === undefined ? undefined : { cause: extras.cause });
    this.code = code;
    this.status = problemCodes[code].status;
    this.statusCode = this.status;
    this.errors = (extras.errors ?? []).map((one) => ({ ...one, message: shortened(one.message) }));
    this.headers = extras.headers ?? {};
  }
}

/** The problem as the text of an answer. */
export function problemText(problem: Problem, requestId: string): string {
  const { code, status, errors } = problem;
  return JSON.stringify({
    type: "about:blank",
    title: titleOf(code),
    status,
    code,
    detail: problem.message,
    request_id: requestId,
    ...(errors.length > 0 && { errors }),
  });
}

/** What is wrong with a request. */
export interface Mistakes {
  readonly entries: readonly ProblemEntry[];
  /** Whether there may be more: the check was stopped. */
  readonly isCut: boolean;
}

/** Query values or headers that are wrong; each entry's path is a parameter's name. */
export function invalidParameters(mistakes: Mistakes): Problem {
  return new Problem("invalid_parameter", summary("parameter", mistakes), { errors: firstOf(mistakes) });
}

/** A body that is JSON and yet not what the route takes; each entry's path is a JSON Pointer. */
export function invalidBody(mistakes: Mistakes): Problem {
  return new Problem("validation_failed", summary("body", mistakes), { errors: firstOf(mistakes) });
}

/** A mistake alone. */
export const oneMistake = (path: string, code: string, message: string): Mistakes => ({
  entries: [{ path, code, message }],
  isCut: false,
});

function summary(where: "parameter" | "body", { entries, isCut }: Mistakes): string {
  const [first] = entries;
  const place = first === undefined || first.path === "" ? `The ${where}` : `${first.path}:`;
  const count = isCut ? `more than ${entries.length}` : entries.length;
  const rest = entries.length > 1 ? ` There are ${count} mistakes; see errors.` : "";
  // A library's text may be a sentence already.
  const what = first?.message.replace(/\.$/, "") ?? "is not valid";
  return `${place} ${what}.${rest} Nothing was changed.`;
}

function firstOf({ entries, isCut }: Mistakes): readonly ProblemEntry[] {
  const left = entries.length - ENTRIES_MAX;
  if (left <= 0) return entries;
  const message = `and ${isCut ? "more than " : ""}${left} more`;
  return [...entries.slice(0, ENTRIES_MAX), { path: "", code: "more_errors", message }];
}

/** Text from outside, quoted and shortened for a message. */
export function shown(text: string): string {
  return JSON.stringify(text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}…`);
}

const shortened = (text: string) =>
  text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX - 1)}…`;
