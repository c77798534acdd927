// Event lines as a short segment of a history stores them: without the words that every line has (src/engine/event.ts).
//
// - A packed line has four fields with tabs between them, which JSON text never has: its time, its type, its agent's id
//   as JSON text (empty for null), and its payload with what follows it. The time is in milliseconds after the packed
//   line before it in the segment; of the first one, after 1970.
// - A line of another form is stored as it is. It begins with a brace, and so do all lines of older segments.
// - What was packed is read back as the same text.

import { isoTime } from "../../engine/event.ts";

const TIME = '{"timestamp":"';
const TYPE = '","type":"';
const AGENT = '","agent_id":';
const PAYLOAD = ',"payload":';
const TIME_TO = TIME.length + "2026-11-21T09:30:00.000Z".length;
const TYPE_FROM = TIME_TO + TYPE.length;

/** More characters than a packed line's time can have, and as many as the time of another line needs. */
export const TIME_CHARS = TIME_TO;

export function packLines(lines: readonly string[]): string {
  let packed = "";
  let timeText = "";
  let timeMs = 0;
  let packedMs = 0;
  for (const line of lines) {
    if (packed !== "") packed += "\n";
    const ownText = line.slice(TIME.length, TIME_TO);
    if (ownText !== timeText) {
      timeText = ownText;
      timeMs = Date.parse(ownText);
    }
    const fields = packedFields(line);
    if (fields === null || Number.isNaN(timeMs) || isoTime(timeMs) !== timeText) packed += line;
    else {
      packed += `${timeMs - packedMs}\t${fields}`;
      packedMs = timeMs;
    }
  }
  return packed;
}

/** All but the time; null for a line of another form. */
function packedFields(line: string): string | null {
  const typeTo = line.indexOf('"', TYPE_FROM);
  const agentFrom = typeTo + AGENT.length;
  const agentTo = line.indexOf(PAYLOAD, agentFrom);
  const hasForm =
    line.startsWith(TIME) &&
    line.startsWith(TYPE, TIME_TO) &&
    line.startsWith(AGENT, typeTo) &&
    agentTo > 0 &&
    line.endsWith("}");
  if (!hasForm) return null;
  const agent = line.slice(agentFrom, agentTo);
  return `${line.slice(TYPE_FROM, typeTo)}\t${agent === "null" ? "" : agent}\t${line.slice(agentTo + PAYLOAD.length, -1)}`;
}

export function unpackLines(segment: string): string[] {
  const lines = segment.split("\n");
  let timeMs = 0;
  for (const [i, line] of lines.entries()) {
    if (line.startsWith("{")) continue;
    const [time = "", type, agent, payload] = line.split("\t");
    timeMs += Number(time);
    lines[i] = `${TIME}${isoTime(timeMs)}${TYPE}${type}${AGENT}${agent || "null"}${PAYLOAD}${payload}}`;
  }
  return lines;
}

/** The time of a segment's first event. @param start the segment's first `TIME_CHARS` characters */
export function firstTimeMs(start: string): number {
  return start.startsWith("{") ? Date.parse(start.slice(TIME.length)) : Number.parseInt(start, 10);
}
