// Supplementary groups of processes: inherited by whatever a process starts, and given up by nobody but root. Batch
// systems mark the processes of a job with them.

/** None of a user's: systemd's list of ids leaves everything from here on unused. */
const PROBE_GROUP = 2 ** 31;

/** Whether this process may give groups to what it starts: it is root, or has CAP_SETGID. */
export function canGiveGroups(): boolean {
  try {
    return withGroups([PROBE_GROUP], () => process.getgroups?.().includes(PROBE_GROUP) ?? false);
  } catch {
    return false;
  }
}

/** Calls `start`, so that a process which it starts has these groups beside those of this process. */
export function withGroups<Result>(groups: readonly number[], start: () => Result): Result {
  if (groups.length === 0) return start();
  const own = process.getgroups?.() ?? [];
  process.setgroups?.([...own, ...groups]);
  try {
    return start();
  } finally {
    process.setgroups?.(own);
  }
}
