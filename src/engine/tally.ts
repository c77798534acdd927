// The tally: what a job's history amounts to, counted while it is written, so that a summary costs nothing to read.
//
// - A count is the number of records that the view of that name has: `logs` that of the log view, `timeline` that
//   of the timeline, `errors` that of errors.jsonl (the events that carry a failure).
// - It is part of the batch that adds the events, so that it is never ahead of them or behind.

import { loggedEvents, logLevelOf, timelineEventTypes } from "./event-types.ts";
import { isObject } from "./json.ts";
import type { Enforcement } from "./resources.ts";

export interface Tally {
  logs: number;
  warnings: number;
  errors: number;
  timeline: number;
  artifacts: number;
  artifactBytes: number;
  /** Characters of the history's lines. */
  historyChars: number;
  /** Attempts that were made again, after a failure or an interruption. */
  retries: number;
  /** CPU time of all commands together, and the largest of them in memory, as the operating system tells. */
  cpuMs: number;
  rssBytesMax: number;
  /** By what commands with resources of their own were kept within them, the weakest of all; null without such a command. */
  enforcement: Enforcement | null;
  /** Tokens that workers reported with `metric` events, and those of models that were asked for them. */
  tokensInput: number;
  tokensOutput: number;
  /** Which of the manifest's outputs were written, by their index. */
  outputs: readonly number[];
  /** While the job is queued: what it waits for beside slots, as a sentence. */
  waitsFor: string | null;
  /** How the job ended; null before that. */
  ends: JobEnds | null;
}

/** How many agents ended how. */
export interface AgentEnds {
  /** They ended well. */
  done: number;
  failed: number;
  /** At work, or with messages still to read, when the job ended. */
  cancelled: number;
  /** The job ended before anything came to them. */
  skipped: number;
  /** No message reached them, though the job ran to quiescence. */
  not_reached: number;
}

export interface JobEnds {
  readonly agents: AgentEnds;
  /** The first of those that were not reached, by their ids. */
  readonly notReached: readonly string[];
  /** The first of the outputs that the manifest lists and no worker wrote. */
  readonly missingOutputs: readonly string[];
  readonly missingOutputsCount: number;
}

export interface EndWarning {
  readonly code: "agents_not_reached" | "outputs_missing";
  /** For people, with names. */
  readonly message: string;
}

/** What a reader of a completed job should know. */
export function endWarnings(ends: JobEnds | null): readonly EndWarning[] {
  if (ends === null) return [];
  const { notReached, missingOutputs } = ends;
  const agents = named(notReached, ends.agents.not_reached);
  const files = named(missingOutputs, ends.missingOutputsCount);
  return [
    ...(agents === ""
      ? []
      : [{ code: "agents_not_reached", message: `No message reached ${agents}.` } as const]),
    ...(files === ""
      ? []
      : [
          {
            code: "outputs_missing",
            message: `No worker wrote ${files}, which the manifest lists as output.`,
          } as const,
        ]),
  ];
}

function named(names: readonly string[], count: number): string {
  const more = count - names.length;
  return names.map((name) => JSON.stringify(name)).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

export function newTally(): Tally {
  return {
    logs: 0,
    warnings: 0,
    errors: 0,
    timeline: 0,
    artifacts: 0,
    artifactBytes: 0,
    historyChars: 0,
    retries: 0,
    cpuMs: 0,
    rssBytesMax: 0,
    enforcement: null,
    tokensInput: 0,
    tokensOutput: 0,
    outputs: [],
    waitsFor: null,
    ends: null,
  };
}

/** A tally as it is stored, as JSON text: without the counts that are 0 and what else is empty, which is most of it. */
export function tallyJson(tally: Tally): string {
  const { ends } = tally;
  return JSON.stringify({
    ...filledPart(tally),
    ends: ends === null ? undefined : { ...filledPart(ends), agents: filledPart(ends.agents) },
  });
}

/** The fields of a record that are not 0, null or an empty list. */
function filledPart<Rec extends object>(record: Rec): Partial<Rec> {
  const filled: Partial<Rec> = {};
  for (const name in record) {
    const value = record[name];
    const isEmpty = value === 0 || value === null || (Array.isArray(value) && value.length === 0);
    if (!isEmpty) filled[name] = value;
  }
  return filled;
}

/** A tally as it was stored: what is not in it is 0 or empty. */
export function readTally(json: string): Tally {
  const stored = JSON.parse(json) as Partial<Tally>;
  const { ends = null } = stored;
  const readEnds = () => ({ ...newEnds(), ...ends, agents: { ...newEnds().agents, ...ends?.agents } });
  return { ...newTally(), ...stored, ends: ends === null ? null : readEnds() };
}

const newEnds = (): JobEnds => ({
  agents: { done: 0, failed: 0, cancelled: 0, skipped: 0, not_reached: 0 },
  notReached: [],
  missingOutputs: [],
  missingOutputsCount: 0,
});

export interface TalliedEvent {
  readonly type: string;
  readonly payload: unknown;
  readonly hasFailure: boolean;
  readonly chars: number;
}

/** Counts one event. */
export function countEvent(tally: Tally, { type, payload, hasFailure, chars }: TalliedEvent): void {
  tally.historyChars += chars;
  if (hasFailure) tally.errors++;
  if (timelineEventTypes.has(type)) tally.timeline++;
  if (type === "log") {
    tally.logs++;
    if (isObject(payload) && logLevelOf(payload.level) === "warn") tally.warnings++;
  } else if (type === "metric" || type === "llm_call") countMetric(tally, payload);
  else {
    const level = loggedEvents.get(type);
    if (level === undefined) return;
    tally.logs++;
    if (level === "warn") tally.warnings++;
  }
}

/** Worker `metric` events may tell tokens (CONTRACTS §6 "Evidence"). */
function countMetric(tally: Tally, payload: unknown): void {
  const tokens = isObject(payload) ? payload.tokens : undefined;
  if (!isObject(tokens)) return;
  tally.tokensInput += count(tokens.input);
  tally.tokensOutput += count(tokens.output);
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
