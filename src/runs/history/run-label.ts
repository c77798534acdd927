// The label of a run for people, and how long it will still take.

import type { JobStatus } from "../../engine/journal.ts";

/** The questions to people that a run waits for. */
export interface AskedPeople {
  /** Requests that are not answered yet. */
  readonly pending: number;
  /** What the only one of them asks, perhaps cut; null where that is not known. */
  readonly prompt: string | null;
}

const PROMPT_CHARS = 120;

/**
 * @param agents how many there are, how many have done what there was for them so far, and how many were never reached
 * @param people what is asked of them
 * @param waitsFor what a queued run waits for beside slots; null for nothing else
 */
export function runLabel(
  status: JobStatus,
  agents: { readonly done: number; readonly total: number; readonly notReached: number },
  people: AskedPeople,
  waitsFor: string | null,
): string {
  const done = `${agents.done} of ${agents.total} agents done`;
  switch (status) {
    case "pending":
      return "Waiting to start";
    case "queued":
      return `Waiting for ${waitsFor === null ? "free slots" : "resources"}, ${done}`;
    case "running":
      return people.pending > 0 ? askingWords(people) : done;
    case "paused":
      return `Paused, ${done}`;
    case "completed":
      return agents.notReached === 0
        ? "Completed"
        : `Completed, ${agents.notReached} of ${agents.total} agents not reached`;
    case "failed":
      return "Failed";
    case "cancelled":
      return "Cancelled";
    default:
      return status satisfies never;
  }
}

function askingWords({ pending, prompt }: AskedPeople): string {
  if (pending > 1) return `Waits for ${pending} answers of people`;
  if (prompt === null || prompt.trim() === "") return "Waits for an answer of a person";
  // One line, in whole characters.
  const line = [...prompt.replace(/\s+/g, " ").trim()];
  const cut = line.length > PROMPT_CHARS ? `${line.slice(0, PROMPT_CHARS - 1).join("")}…` : line.join("");
  return `Waits for a person: ${cut}`;
}

/** How many of the newest completed runs are used. */
export const ETA_RUNS = 10;

/**
 * How long a run will still take, going by those of the same job that have completed.
 *
 * @param durationsMs of completed runs, in any order
 * @param elapsedMs since the run's start
 * @returns milliseconds, 0 for a run that takes longer than usual; null without anything to go by
 */
export function etaMs(durationsMs: readonly number[], elapsedMs: number): number | null {
  if (durationsMs.length === 0) return null;
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle]!;
  const median = sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
  return Math.max(0, Math.round(median - elapsedMs));
}
