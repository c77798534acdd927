// What the machine has no more of: errors of the system that say nothing of the request, and may be over in a moment.

/** By the system's code: what is missing and what to do, without a full stop at the end. */
const shortages: Readonly<Record<string, string>> = {
  ENOSPC: "The disk is full: the files of this request cannot be kept. Free some space, then try again",
  EDQUOT:
    "The disk quota is used up: the files of this request cannot be kept. Free some space, then try again",
  EMFILE:
    "The program has as many open files and connections as it may. Try again in a moment; `ulimit -n` or LimitNOFILE raises the limit",
  ENFILE: "The machine has as many open files as it can. Try again in a moment",
};

/** @returns the sentence for callers, or null when the error is of another kind */
export function machineShortage(error: unknown): string | null {
  // Libraries wrap what the system says.
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++) {
    const { code } = one as NodeJS.ErrnoException;
    if (code !== undefined && Object.hasOwn(shortages, code)) return shortages[code] ?? null;
  }
  return null;
}
