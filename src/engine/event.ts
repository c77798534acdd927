// Events: the append-only history of a job.
//
// - An event is kept as the line of JSON that every reader will see; nothing renders it twice.
// - The n-th event of a job has the sequence number n, from 1, without a gap. The number is not in the line.
// - Nothing follows the terminal event.

import { boundedValue } from "./bounded-value.ts";
import type { Failure } from "./failure.ts";
import type { JsonValue } from "./json.ts";
import { limits } from "./limits.ts";

/** Where an event happened; `agentId` is null for events of the whole job. */
export interface EventHead {
  readonly nowMs: number;
  readonly type: string;
  readonly agentId: string | null;
}

/** Renders one event as its line: {"timestamp","type","agent_id","payload","error"?}. */
export function renderEvent(head: EventHead, payload: unknown, failure?: Failure): string {
  let body = JSON.stringify(payload);
  if (body.length > limits.eventPayloadCharsMax) {
    // The longest values are replaced; what stands beside them stays.
    body = JSON.stringify(boundedValue(JSON.parse(body) as JsonValue, limits.eventPayloadCharsMax));
  }
  const agent = head.agentId === null ? "null" : JSON.stringify(head.agentId);
  const error = failure === undefined ? "" : `,"error":${JSON.stringify(failure)}`;
  return `{"timestamp":"${isoTime(head.nowMs)}","type":${JSON.stringify(head.type)},"agent_id":${agent},"payload":${body}${error}}`;
}

/** Short form of a job's last event. Its time is when the job was last updated. */
export function lastEventJson({ type, agentId }: EventHead): string {
  return JSON.stringify({ type, agent_id: agentId ?? undefined });
}

/** @returns undefined when the job has no event */
export function lastEventType(json: string): string | undefined {
  return (JSON.parse(json) as { readonly type?: string } | null)?.type;
}

const TYPE_KEY = '"type":"';

/** The type of an event's line, without parsing it: a word of letters, digits and a few signs, so that nothing is escaped. */
export function eventType(line: string): string {
  const from = line.indexOf(TYPE_KEY) + TYPE_KEY.length;
  return line.slice(from, line.indexOf('"', from));
}

let cachedMs = Number.NaN;
let cachedText = "";

/** ISO 8601 UTC with milliseconds. Thousands of events share a millisecond, so the last answer is kept. */
export function isoTime(ms: number): string {
  if (ms !== cachedMs) {
    cachedText = new Date(ms).toISOString();
    cachedMs = ms;
  }
  return cachedText;
}
