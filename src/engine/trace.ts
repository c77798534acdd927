// Traces: which trace a run belongs to, and the spans in it: run > agent > task > attempt, and beside every attempt
// the lease under which it ran. Ids of spans follow from the run's id and their own names, so that every view of the
// history, the workers and the failures give a span the same id, now and after a restart, without keeping one.

/** W3C trace context of a run. */
export interface TraceContext {
  /** 32 hex digits, not all zero. */
  readonly traceId: string;
  /** The caller's span, the parent of the run's: 16 hex digits; null without one. */
  readonly parentSpanId: string | null;
}

export interface Span {
  /** 16 hex digits. */
  readonly id: string;
  /** Null for the run itself. */
  readonly parentId: string | null;
}

/** The trace of a run that no caller gave one: it follows from the run's id. */
export function ownTrace(runId: string): TraceContext {
  return { traceId: hash64(`trace ${runId}`) + hash64(`${runId} trace`), parentSpanId: null };
}

export function runSpan(runId: string): Span {
  return { id: runSpanId(runId), parentId: null };
}

export function agentSpan(runId: string, agentId: string): Span {
  return { id: agentSpanId(runId, agentId), parentId: runSpanId(runId) };
}

/** @param task the task's number in the run */
export function taskSpan(runId: string, agentId: string, task: number): Span {
  return { id: taskSpanId(runId, task), parentId: agentSpanId(runId, agentId) };
}

export interface AttemptName {
  readonly task: number;
  readonly attempt: number;
}

export function attemptSpan(runId: string, { task, attempt }: AttemptName): Span {
  return { id: spanId(runId, `attempt ${task} ${attempt}`), parentId: taskSpanId(runId, task) };
}

/** The slots of one attempt, from asking for them to giving them back. */
export function leaseSpan(runId: string, { task, attempt }: AttemptName): Span {
  return { id: spanId(runId, `lease ${task} ${attempt}`), parentId: taskSpanId(runId, task) };
}

/** Something else of an agent's, or with null of the run's, by a name that is its own in the run. */
export function namedSpan(runId: string, agentId: string | null, kind: string, name: string): Span {
  const parentId = agentId === null ? runSpanId(runId) : agentSpanId(runId, agentId);
  return { id: spanId(runId, `${kind} ${name}`), parentId };
}

/** The header by which a span is handed on: to workers, and by callers. */
export function traceparent(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}

/**
 * Reads a caller's traceparent header (W3C Trace Context, section 3.2).
 *
 * @returns null for a header that is missing or malformed: the run then gets a trace of its own
 */
export function parseTraceparent(header: unknown): TraceContext | null {
  if (typeof header !== "string") return null;
  const match = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/.exec(header.trim());
  if (match === null) return null;
  const [, version, traceId = "", parentSpanId = "", rest] = match;
  // Later versions may append fields; version 00 has none, and ff is forbidden.
  if (version === "ff" || (version === "00" && rest !== undefined)) return null;
  return /^0+$/.test(traceId) || /^0+$/.test(parentSpanId) ? null : { traceId, parentSpanId };
}

const runSpanId = (runId: string) => spanId(runId, "run");
const agentSpanId = (runId: string, agentId: string) => spanId(runId, `agent ${agentId}`);
const taskSpanId = (runId: string, task: number) => spanId(runId, `task ${task}`);

function spanId(runId: string, name: string): string {
  return hash64(`${runId} ${name}`);
}

/** 64 bits of a text as hex, never all zero: two 32-bit mixes, enough to tell the spans of a trace apart. */
export function hash64(text: string): string {
  let a = 0x9e3779b9;
  let b = 0x85ebca6b;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 2_654_435_761);
    b = Math.imul(b ^ code, 1_597_334_677);
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909);
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909);
  return hex32(a | 1) + hex32(b);
}

function hex32(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, "0");
}
