// Waiting for a fact that announces itself to nobody: a process that is gone, a health that changed.

import { setTimeout as delay } from "node:timers/promises";

const LOOK_EVERY_MS = 20;
/** The variable that makes `LIMIT_MS` another one: most mutations show in a fact that does not come. */
export const LIMIT_VARIABLE = "TROUPE_TEST_UNTIL_MS";
/** How long a broken program can hold up a test run; no test asserts on it. */
const LIMIT_MS = Number(process.env[LIMIT_VARIABLE] ?? 60_000);

/**
 * Looks again and again until `probe` gives something other than null or false.
 *
 * @param what the fact, for the message when it does not come true
 * @param limitMs for what takes long on a slow machine even when all is well
 * @returns what the probe gave
 */
export async function until<T>(
  what: string,
  probe: () => Promise<T | null | false> | T | null | false,
  limitMs: number = LIMIT_MS,
): Promise<T> {
  for (let looks = 0; looks < limitMs / LOOK_EVERY_MS; looks++) {
    const found = await probe();
    if (found !== null && found !== false) return found;
    await delay(LOOK_EVERY_MS);
  }
  throw new Error(`It did not come true within ${limitMs / 1_000} s: ${what}`);
}
