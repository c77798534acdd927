// The failure object, svc.error.v1: what went wrong, whose fault it was, and what to do next.
//
// - Every failure is made here from a code of the catalogue; no other place writes a failure by hand.
// - A failure is small, whatever it is made of: desc ≤ 160 characters, message ≤ 2 KiB, stderr_tail ≤ 4 KiB, both as
//   JSON text, and the whole ≤ 16 KiB.

import { textEnd, textStart } from "./bounded-value.ts";
import { type FailureCategory, type FailureCode, failureCatalogue } from "./failure-catalogue.ts";

/** svc.error.v1 (CONTRACTS §5). Details leave out what does not apply. */
export interface Failure {
  readonly schema_version: "svc.error.v1";
  readonly code: FailureCode;
  readonly desc: string;
  readonly details: {
    readonly message: string;
    readonly category: FailureCategory;
    readonly retryable: boolean;
    readonly agent_id?: string;
    readonly attempt?: number;
    readonly max_attempts?: number;
    readonly exit_code?: number;
    readonly signal?: string;
    readonly stderr_tail?: string;
  };
  readonly severity: "error";
  readonly occurred_at: string;
  /** The event that reported it first, by its number in the run's history. */
  readonly event_id: string;
  readonly trace_id: string;
  readonly span_id: string;
  readonly remediation: string;
  /** Where to look next, as paths of the API. */
  readonly links: readonly FailureLink[];
}

export interface FailureLink {
  readonly rel: "run" | "logs" | "timeline";
  readonly url: string;
}

/** Where in which run something failed. */
export interface FailurePlace {
  readonly runId: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly eventId: number;
}

export interface FailureContext {
  readonly agentId?: string;
  readonly attempt?: number;
  readonly maxAttempts?: number;
  readonly exitCode?: number;
  readonly signal?: string;
  readonly stderrTail?: string;
}

const DESC_CHARS_MAX = 160;
const MESSAGE_BYTES_MAX = 2 * 1_024;
const STDERR_TAIL_BYTES_MAX = 4 * 1_024;

/** A message as failures carry it; a longer one loses its end. */
export function failureMessage(message: string): string {
  return textStart(message, MESSAGE_BYTES_MAX);
}

/**
 * Makes a failure from the catalogue.
 *
 * @param message one or two sentences: what happened, and where; cut at 2 KiB
 * @param nowMs wall time in ms since 1970
 */
export function makeFailure(
  code: FailureCode,
  message: string,
  nowMs: number,
  place: FailurePlace,
  context: FailureContext = {},
): Failure {
  const { category, retryable, meaning, remediation } = failureCatalogue[code];
  return {
    schema_version: "svc.error.v1",
    code,
    desc: firstLine(message) || meaning,
    details: {
      message: failureMessage(message),
      category,
      retryable,
      ...(context.agentId !== undefined && { agent_id: context.agentId }),
      ...(context.attempt !== undefined && { attempt: context.attempt }),
      ...(context.maxAttempts !== undefined && { max_attempts: context.maxAttempts }),
      ...(context.exitCode !== undefined && { exit_code: context.exitCode }),
      ...(context.signal !== undefined && { signal: context.signal }),
      ...(context.stderrTail && { stderr_tail: textEnd(context.stderrTail, STDERR_TAIL_BYTES_MAX) }),
    },
    severity: "error",
    occurred_at: new Date(nowMs).toISOString(),
    event_id: String(place.eventId),
    trace_id: place.traceId,
    span_id: place.spanId,
    remediation,
    links: linksOf(place.runId, context.agentId),
  };
}

function linksOf(runId: string, agentId: string | undefined): readonly FailureLink[] {
  const run = `/api/v1/runs/${encodeURIComponent(runId)}`;
  const ofAgent = agentId === undefined ? "" : `?agent_id=${encodeURIComponent(agentId.toWellFormed())}`;
  return [
    { rel: "run", url: run },
    { rel: "logs", url: `${run}/logs${ofAgent}` },
    { rel: "timeline", url: `${run}/timeline` },
  ];
}

function firstLine(message: string): string {
  const line = (message.split("\n", 1)[0] ?? "").trimEnd();
  if (line.length <= DESC_CHARS_MAX) return line;
  // A character that needs two code units is kept or left out as a whole.
  return `${line.slice(0, DESC_CHARS_MAX - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
