// The turns of the event loop of a program under test that is given `countsTurns` as its environment. So a test can see
// that a long answer lets others have their turn, without measuring time.

import { performance } from "node:perf_hooks";
import type { Program } from "./program.ts";
import { until } from "./until.ts";

/** For `ProgramOptions.env`. */
export const countsTurns = { NODE_OPTIONS: `--import=${import.meta.url}` };

if (process.env.NODE_OPTIONS?.includes(countsTurns.NODE_OPTIONS)) {
  process.on("SIGUSR2", () => {
    process.stderr.write(`turns ${performance.nodeTiming.uvMetricsInfo.loopCount}.\n`);
  });
}

/** How often the program's event loop has turned since its start. */
export async function turnsOf(program: Program): Promise<number> {
  const counts = () => [...program.output().matchAll(/^turns (\d+)\.$/gm)].map(([, count]) => Number(count));
  const seen = counts().length;
  process.kill(program.pid, "SIGUSR2");
  return until("the program has printed its count", () => counts()[seen] ?? null);
}
