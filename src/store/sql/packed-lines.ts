// Event lines as a short segment of a history stores them: without the words that every line has (src/engine/event.ts).
//
// - A packed line has four fields with tabs between them, which JSON text never has: its time, its type, the id of its
//   agent (empty for null), and its payload with what follows it. The time is in milliseconds after the packed line
//   before it in the segment, and empty for the same time; that of the first one is after 1970.
// - A line of another form is stored as it is. It begins with a brace, and so do all lines of older segments.
// - What was packed is read back as the same text.

import { isoTime } from "../../engine/event.ts";

const TIME = '{"timestamp":"';
const TYPE = '","type":"';
const AGENT = '","agent_id":';
const PAYLOAD = ',"payload":';
/** An id that agents never have, because a packed line has it for null. */
const EMPTY_ID = '""';
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
      packed += `${timeMs === packedMs ? "" : timeMs - packedMs}\t${fields}`;
      packedMs = timeMs;
    }
  }
  return packed;
}

/** All but the time of the line that begins at `from` and ends before `to`; null for a line of another form. */
function packedFields(segment: string, from: number, to: number): string | null {
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
  if (agent === EMPTY_ID) return null;
  const agentId = agent === "null" ? "" : agent.slice(1, -1);
  return `${segment.slice(typeFrom, typeTo)}\t${agentId}\t${segment.slice(payloadFrom, to - 1)}`;
}

export function unpackLines(segment: string): string[] {
  const lines = segment.split("\n");
  let timeMs = 0;
  for (const [i, line] of lines.entries()) {
    if (line.startsWith("{")) continue;
    const [time = "", type, agentId, payload] = line.split("\t");
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
