// Marks of processes: a number as their soft limit of file locks. Whatever a process starts inherits its limits, also
// what clears its environment, leaves its session and loses its parents; everybody may set them, and read them in /proc.
// Linux has kept this one without a use since 2.4: it hinders nobody, and programs leave it alone.

import { readFileSync } from "node:fs";

/** The same number on every architecture. */
const RLIMIT_LOCKS = 10;
const LIMIT_CALL = { arguments: ["i32", "buffer"], return: "i32" } as const;
/** Shorter than the mark of any command. */
const PROBE = "1";

interface SoftLimit {
  readonly own: bigint;
  set(value: bigint): void;
}

/** Undefined until it is asked for; null where it cannot be set. */
let softLimit: SoftLimit | null | undefined;

/** Whether this process can mark what it starts. */
export function canMark(): boolean {
  if (softLimit === undefined) softLimit = findSoftLimit();
  return softLimit !== null;
}

/**
 * Calls `start`, so that a process which it starts has this mark. A start matters more than its mark: where there is no
 * way to set it, the process is started all the same.
 */
export function withMark<Result>(mark: string, start: () => Result): Result {
  if (softLimit === undefined) softLimit = findSoftLimit();
  if (softLimit === null) return start();
  softLimit.set(BigInt(mark));
  try {
    return start();
  } finally {
    softLimit.set(softLimit.own);
  }
}

/** The mark in the text of /proc/PID/limits; null when there is none. */
export function markIn(limits: string): string | null {
  return /^Max file locks +(\d+) /m.exec(limits)?.[1] ?? null;
}

/** Node has no call for limits: this needs its foreign function interface, which a build of Node may lack. */
function findSoftLimit(): SoftLimit | null {
  if (process.platform !== "linux") return null;
  try {
    const { dlopen } = process.getBuiltinModule("node:ffi");
    const libc = dlopen(null, { getrlimit: LIMIT_CALL, setrlimit: LIMIT_CALL });
    const softAndHard = new BigUint64Array(2);
    if (libc.functions.getrlimit(RLIMIT_LOCKS, softAndHard) !== 0) return null;
    const [own = 0n] = softAndHard;
    const set = (value: bigint) => {
      softAndHard[0] = value;
      libc.functions.setrlimit(RLIMIT_LOCKS, softAndHard);
    };
    set(BigInt(PROBE));
    const isSet = markIn(readFileSync("/proc/self/limits", "latin1")) === PROBE;
    set(own);
    return isSet ? { own, set } : null;
  } catch {
    return null;
  }
}
