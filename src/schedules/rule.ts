// Rules: which times are due.
//
// - A local time that does not exist (clocks are put forward) is due at the first moment that does; one that comes twice is
//   due once. An expression with a wildcard or a step in its hours, minutes or seconds means a distance instead: it goes on as if
//   clocks were not changed.
// - Due times are whole seconds.

import { createHash } from "node:crypto";
import { Cron } from "croner";
import cronstrue from "cronstrue";
import { timeId } from "../engine/ids.ts";
import { describeEvents } from "./event-filter.ts";
import type { EventContent } from "./event-records.ts";
import type { CronRule, EventRule, Rule } from "./records.ts";

/** Most due times that are looked at one by one. */
export const MISSED_MAX = 100;

/** Parsing one takes as long as finding its next time. */
const parsed = new Map<string, Cron>();
const PARSED_MAX = 1_000;

function cronOf(expression: string, timezone: string): Cron {
  const key = `${timezone} ${expression}`;
  let cron = parsed.get(key);
  if (cron === undefined) {
    cron = new Cron(expression, { timezone, fixedTimeRule: "no-wildcard", paused: true });
    if (parsed.size >= PARSED_MAX) parsed.clear();
    parsed.set(key, cron);
  }
  return cron;
}

/** What is wrong with a cron expression, in words; null: nothing. */
export function expressionProblem(expression: string): string | null {
  try {
    const next = cronOf(expression, "UTC").nextRun();
    return next === null ? "never comes" : null;
  } catch (error) {
    return String((error as Error).message).replace(/^CronPattern: |\.$/g, "");
  }
}

export function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** The first due time behind `afterMs`; null when there is none. */
export function dueAfter(rule: Rule, afterMs: number): number | null {
  return duesAfter(rule, afterMs, 1)[0] ?? null;
}

/** The next due times behind `afterMs`, at most `limit`. */
export function duesAfter(rule: Rule, afterMs: number, limit: number): readonly number[] {
  if (rule.kind === "event") return [];
  if (rule.kind === "delayed") return rule.atMs > afterMs ? [rule.atMs] : [];
  return duesFrom(rule, afterMs, next, Math.min).take(limit).toArray();
}

/** The last due times from `fromMs` to `untilMs`, at most `limit`; oldest first. */
export function duesBetween(rule: Rule, fromMs: number, untilMs: number, limit: number): readonly number[] {
  if (rule.kind === "event") return [];
  if (rule.kind === "delayed") return fromMs <= rule.atMs && rule.atMs <= untilMs ? [rule.atMs] : [];
  const dues: number[] = [];
  // What croner finds is before its reference, of which it takes whole seconds.
  const behindMs = (Math.floor(untilMs / 1_000) + 1) * 1_000;
  for (const due of duesFrom(rule, behindMs, previous, Math.max)) {
    if (due < fromMs || dues.length === limit) break;
    dues.unshift(due);
  }
  return dues;
}

type Find = (cron: Cron, fromMs: number) => number | undefined;
const next: Find = (cron, fromMs) => cron.nextRun(new Date(fromMs))?.getTime();
const previous: Find = (cron, fromMs) => cron.previousRuns(1, new Date(fromMs))[0]?.getTime();

/** Due times in one direction, each once. Finding one takes up to half a millisecond: none is looked for before it is asked for. */
function* duesFrom(
  { expressions, timezone }: CronRule,
  fromMs: number,
  find: Find,
  nearest: (...times: readonly number[]) => number,
): Generator<number, undefined> {
  const heads = expressions.map((expression) => {
    const cron = cronOf(expression, timezone);
    return { cron, due: find(cron, fromMs) };
  });
  for (;;) {
    const dues = heads.flatMap(({ due }) => due ?? []);
    if (dues.length === 0) return;
    const due = nearest(...dues);
    yield due;
    for (const head of heads) if (head.due === due) head.due = find(head.cron, due);
  }
}

/** When a run is started for a due time. */
export function startOf(scheduleId: string, rule: Rule, dueAtMs: number): number {
  if (rule.kind !== "cron" || rule.jitterSeconds === 0) return dueAtMs;
  const chance = digestOf(scheduleId, dueAtMs).readUInt32BE(0) / 2 ** 32;
  return dueAtMs + Math.floor(chance * rule.jitterSeconds * 1_000);
}

/** The id of the run of a due time: no second one can be started for it. */
export function runIdOf(scheduleId: string, dueAtMs: number): string {
  return `run_${timeId(dueAtMs, digestOf(scheduleId, dueAtMs))}`;
}

/** The id of the run of an event, or of the batch that it is the last of: no second one can be started for it. */
export function runIdOfEvent(scheduleId: string, { eventId, receivedAtMs }: EventContent): string {
  return `run_${timeId(receivedAtMs, digestOf(scheduleId, eventId))}`;
}

const digestOf = (scheduleId: string, of: number | string) =>
  createHash("sha256").update(`${scheduleId} ${of}`).digest();

/** The rule in plain English. */
export function describeRule(rule: Rule): string {
  if (rule.kind === "event") return `${describeEvents(rule.type, rule.filters)}${describePace(rule)}`;
  if (rule.kind === "delayed") return `Once, at ${new Date(rule.atMs).toISOString()}`;
  const texts = rule.expressions.map(describeExpression);
  const jitter = rule.jitterSeconds === 0 ? "" : `, up to ${rule.jitterSeconds} s later`;
  return `${texts.join("; and ")} (${rule.timezone})${jitter}`;
}

function describePace({ debounceSeconds, throttleSeconds, batch }: EventRule): string {
  if (debounceSeconds !== null) return `, once none has come for ${debounceSeconds} s`;
  if (throttleSeconds !== null) return `, at most once in ${throttleSeconds} s`;
  return batch === null ? "" : `; up to ${batch.max} of them together, after ${batch.seconds} s at most`;
}

/** An expression that is known to the one library and not to the other stands for itself. */
function describeExpression(expression: string): string {
  try {
    return cronstrue.toString(expression, { use24HourTimeFormat: true });
  } catch {
    return expression;
  }
}
