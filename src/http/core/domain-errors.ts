// The errors of features, of the store and of the machine as domain errors, for both APIs.

import { BundlesFull } from "../../bundles/problem.ts";
import { FilesUnavailable } from "../../bundles/shared-folders.ts";
import { EngineUnavailable } from "../../engine/batch.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { MachineBusy } from "../../lib/async.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { HistoryUnavailable } from "../../runs/store/run-store.ts";

/** Temporary errors. */
const unavailable = [
  EngineUnavailable,
  JournalUnavailable,
  HistoryUnavailable,
  MachineBusy,
  FilesUnavailable,
];

/** @returns null for an error that is not for callers */
export function domainErrorOf(error: unknown): DomainError | null {
  if (error instanceof DomainError) return error;
  if (error instanceof BundlesFull) return new DomainError("insufficient_storage", error.message);
  if (unavailable.some((kind) => error instanceof kind)) {
    return new DomainError("unavailable", (error as Error).message);
  }
  const shortage = machineShortage(error);
  return shortage === null ? null : new DomainError("unavailable", shortage);
}

// Shortages of the machine: system errors that have nothing to do with the request and may be temporary.

/** By the system's code: what is missing and what to do. */
const shortages: Readonly<Record<string, string>> = {
  ENOSPC: "The disk is full: the files of this request cannot be kept. Free some space, then try again.",
  EDQUOT:
    "The disk quota is used up: the files of this request cannot be kept. Free some space, then try again.",
  EMFILE:
    "The program has as many open files and connections as it may. Try again in a moment; `ulimit -n` or LimitNOFILE raises the limit.",
  ENFILE: "The machine has as many open files as it can. Try again in a moment.",
};

/** @returns the sentence for callers, or null when the error is of another kind */
function machineShortage(error: unknown): string | null {
  // Libraries wrap system errors.
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++) {
    const { code } = one as NodeJS.ErrnoException;
    if (code !== undefined && Object.hasOwn(shortages, code)) return shortages[code] ?? null;
  }
  return null;
}
