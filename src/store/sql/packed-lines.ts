// Event lines as a short segment of a history stores them: without the words that every line has (src/engine/event.ts).
//
// - A packed line has four fields with tabs between them, which JSON text never has: its time, its type, the id of its
//   agent (empty for null), and its payload with what follows it. The time is in milliseconds after the packed line
//   before it in the segment, and empty for the same time; that of the first one is after 1970.
// - A type that most histories have is one character: its place in TYPES.
// - A payload that begins with the id of a message in the job, as an earlier one of the segment does, has only the number of
//   the message: `_2","from":…`.
// - A line of another form is stored as it is. It begins with a brace, and so do all lines of older segments.
// - What was packed is read back as the same text.

import { isoTime } from "../../engine/event.ts";

const TIME = '{"timestamp":"';
const TYPE = '","type":"';
const AGENT = '","agent_id":';
const PAYLOAD = ',"payload":';
/** An id that agents never have, because a packed line has it for null. */
const EMPTY_ID = '""';
const MESSAGE = '{"message_id":"msg_';
/** Rows have these places: more may only follow. */
const TYPES: readonly string[] = [
  "job_pending",
  "job_validated",
  "job_scheduled",
  "job_running",
  "job_completed",
  "job_failed",
  "agent_started",
  "agent_message_received",
  "agent_completed",
  "agent_failed",
  "aggregator_received",
  "executor_lease_requested",
  "executor_lease_acquired",
  "executor_lease_released",
  "sandbox_job_started",
  "sandbox_job_completed",
];
const FIRST_CODE = "a".charCodeAt(0);
const codes = new Map(TYPES.map((type, i) => [type, String.fromCharCode(FIRST_CODE + i)]));
const TIME_TO = TIME.length + "2026-11-21T09:30:00.000Z".length;
const TYPE_FROM = TIME_TO + TYPE.length;

/** More characters than a packed line's time can have, and as many as the time of another line needs. */
export const TIME_CHARS = TIME_TO;

/** @param segment lines with line feeds between them */
export function packLines(segment: string): string {
  let packed = "";
  let timeText = "";
  let timeMs = 0;
  let packedMs = 0;
  let message = "";
  let to = 0;
  for (let from = 0; from < segment.length; from = to + 1) {
    to = segment.indexOf("\n", from);
    if (to < 0) to = segment.length;
    if (from > 0) packed += "\n";
    // Most events of a segment have the time of the one before.
    if (timeText === "" || !segment.startsWith(timeText, from + TIME.length)) {
      timeText = segment.slice(from + TIME.length, from + TIME_TO);
      timeMs = Date.parse(timeText);
      if (Number.isNaN(timeMs) || isoTime(timeMs) !== timeText) timeText = "";
    }
    const fields = timeText === "" ? null : packedFields(segment, from, to);
    if (fields === null) packed += segment.slice(from, to);
    else {
      const prefix = messagePrefix(fields.payload);
      const payload =
        prefix !== "" && prefix === message ? fields.payload.slice(prefix.length) : fields.payload;
      if (prefix !== "") message = prefix;
      packed += `${timeMs === packedMs ? "" : timeMs - packedMs}\t${fields.type}\t${fields.agentId}\t${payload}`;
      packedMs = timeMs;
    }
  }
  return packed;
}

/** What the message ids of a job have in common, with what stands before; empty for a payload that begins otherwise. */
function messagePrefix(payload: string): string {
  if (!payload.startsWith(MESSAGE)) return "";
  return payload.slice(0, Math.max(0, payload.indexOf("_", MESSAGE.length)));
}

interface Fields {
  readonly type: string;
  readonly agentId: string;
  readonly payload: string;
}

/** All but the time of the line that begins at `from` and ends before `to`; null for a line of another form. */
function packedFields(segment: string, from: number, to: number): Fields | null {
  const typeFrom = from + TYPE_FROM;
  const typeTo = segment.indexOf('"', typeFrom);
  const agentFrom = typeTo + AGENT.length;
  const agentTo = segment.indexOf(PAYLOAD, agentFrom);
  const payloadFrom = agentTo + PAYLOAD.length;
  const hasForm =
    segment.startsWith(TIME, from) &&
    segment.startsWith(TYPE, from + TIME_TO) &&
    segment.startsWith(AGENT, typeTo) &&
    agentTo > 0 &&
    payloadFrom < to &&
    segment.endsWith("}", to);
  if (!hasForm) return null;
  const agent = segment.slice(agentFrom, agentTo);
  if (agent === EMPTY_ID || typeTo === typeFrom + 1) return null;
  const type = segment.slice(typeFrom, typeTo);
  return {
    type: codes.get(type) ?? type,
    agentId: agent === "null" ? "" : agent.slice(1, -1),
    payload: segment.slice(payloadFrom, to - 1),
  };
}

export function unpackLines(segment: string): string[] {
  const lines = segment.split("\n");
  let timeMs = 0;
  let message = "";
  for (const [i, line] of lines.entries()) {
    if (line.startsWith("{")) continue;
    const [time = "", code = "", agentId, rest = ""] = line.split("\t");
    const type = code.length === 1 ? TYPES[code.charCodeAt(0) - FIRST_CODE] : code;
    const payload = rest.startsWith("_") ? message + rest : rest;
    message = messagePrefix(payload) || message;
    timeMs += Number(time);
    const agent = agentId === "" ? "null" : `"${agentId}"`;
    lines[i] = `${TIME}${isoTime(timeMs)}${TYPE}${type}${AGENT}${agent}${PAYLOAD}${payload}}`;
  }
  return lines;
}

/** The time of a segment's first event. @param start the segment's first `TIME_CHARS` characters */
export function firstTimeMs(start: string): number {
  return start.startsWith("{")
    ? Date.parse(start.slice(TIME.length))
    : Number(start.slice(0, start.indexOf("\t")));
}
