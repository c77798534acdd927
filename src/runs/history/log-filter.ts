// Which records of a run's log are shown.
//
// Most lines of a long log are left out by a filter, so they are turned away by what can be told from their text,
// before they are parsed. What passes there is checked once more as a record; each of the two may only turn away
// what the other one would. The cost is bounded by the length of a line, live as well.

import { eventType } from "../../engine/event.ts";
import { type LogLevel, logLevels } from "../../engine/event-types.ts";
import type { EventView } from "../run-history.ts";
import { isOfAgent, timeOf } from "./line.ts";
import { isLogged, type LogStream, type NumberedLog, toNumberedLog } from "./logs.ts";
import type { RunContext } from "./run-context.ts";

export const logTextCharsMax = 200;

/** What is null does not filter. */
export interface LogFilter {
  /** The least urgent level that is shown. */
  readonly level: LogLevel | null;
  readonly agentId: string | null;
  readonly stream: LogStream | null;
  /** Part of the message, whatever the case of its letters; at most `logTextCharsMax` characters. */
  readonly text: string | null;
  /** Records of this time or later. */
  readonly sinceMs: number | null;
  /** Records before this time. */
  readonly untilMs: number | null;
}

/** The log of a run, as far as a filter lets it through. */
export function logView(run: RunContext, filter: LogFilter): EventView<NumberedLog> {
  const mayPass = lineTest(filter);
  const passes = recordTest(filter);
  return (seq, line) => {
    if (!mayPass(line)) return null;
    const record = toNumberedLog(run, seq, line);
    return record !== null && passes(record) ? record : null;
  };
}

/** The same filter has the same name. */
export function nameOfFilter(filter: LogFilter): string {
  const { level, agentId, stream, text, sinceMs, untilMs } = filter;
  return JSON.stringify([level, agentId, stream, text?.toLowerCase() ?? null, sinceMs, untilMs]);
}

type LineTest = (line: string) => boolean;

function lineTest({ level, agentId, stream, text, sinceMs, untilMs }: LogFilter): LineTest {
  const agentJson = agentId === null ? null : JSON.stringify(agentId);
  const isInTime = timeTest(sinceMs, untilMs);
  // Of what workers log. What the runtime says is little, and its words are not in the line.
  const tests = [levelTest(level), streamTest(stream), textTest(text)].filter((test) => test !== null);
  return (line) => {
    const type = eventType(line);
    if (!isLogged(type)) return false;
    if (agentJson !== null && !isOfAgent(line, agentJson)) return false;
    if (isInTime !== null && !isInTime(line)) return false;
    return type === "log" ? tests.every((test) => test(line)) : stream === null || stream === "runtime";
  };
}

function timeTest(sinceMs: number | null, untilMs: number | null): LineTest | null {
  if (sinceMs === null && untilMs === null) return null;
  const from = sinceMs ?? Number.NEGATIVE_INFINITY;
  const to = untilMs ?? Number.POSITIVE_INFINITY;
  return (line) => {
    const atMs = Date.parse(timeOf(line));
    return from <= atMs && atMs < to;
  };
}

/** A record is more urgent than info only when its line has such a word; it is JSON, in which letters are never escaped. */
function levelTest(level: LogLevel | null): LineTest | null {
  if (level === null || !isUrgent(level)) return null;
  return (line) => URGENT_WORD.test(line);
}

const isUrgent = (level: LogLevel) => logLevels.indexOf(level) > logLevels.indexOf("info");
const URGENT_WORD =
  /"(?:warn|warning|err|error|severe|fatal|critical|alert|emerg|emergency|panic)"|"level":[456]\d/i;

function streamTest(stream: LogStream | null): LineTest | null {
  if (stream === null || stream === "worker") return null;
  if (stream === "runtime") return () => false;
  return (line) => line.includes(`"${stream}"`);
}

/** Nothing is told from the line for a text that JSON writes in another way. */
function textTest(text: string | null): LineTest | null {
  if (text === null || JSON.stringify(text) !== `"${text}"`) return null;
  const wanted = text.toLowerCase();
  return (line) => line.toLowerCase().includes(wanted);
}

function recordTest({ level, stream, text }: LogFilter): (record: NumberedLog) => boolean {
  const wanted = text?.toLowerCase() ?? null;
  const least = level === null ? 0 : logLevels.indexOf(level);
  return (record) =>
    logLevels.indexOf(record.level) >= least &&
    (stream === null || record.stream === stream) &&
    (wanted === null || record.message.toLowerCase().includes(wanted));
}
