// Processor time of a process, as Linux counts it: what other programs do at the same time changes it less than it changes
// the rates.

import { readFileSync } from "node:fs";

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;

/** Milliseconds that the process has used of any processor, its own and the system's for it. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is a name that may have anything in it, in parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
