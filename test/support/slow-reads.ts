// A disk that takes its time, for a program under test that is given `slowReads` as its environment: each megabyte that
// it reads at once, as copies of large files do, takes a while. So such a copy is under way as long as a test needs it
// to be, and takes little room meanwhile.

import { open } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const READ_BYTES = 1024 * 1024;
const READ_MS = 20;

/** For `ProgramOptions.env`. */
export const slowReads = { NODE_OPTIONS: `--import=${import.meta.url}` };

// Nothing waits for it: the program reads files of this size long after it has begun.
if (process.env.NODE_OPTIONS?.includes(slowReads.NODE_OPTIONS)) void slowDown();

async function slowDown(): Promise<void> {
  await using any = await open(process.execPath);
  const handles = Object.getPrototypeOf(any) as { read(...given: unknown[]): Promise<unknown> };
  const { read } = handles;
  handles.read = async function (...given) {
    if ((given[0] as Uint8Array | undefined)?.length === READ_BYTES) await delay(READ_MS);
    return read.apply(this, given);
  };
}
