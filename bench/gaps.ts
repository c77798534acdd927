// The longest gap of a program's event loop: how long one request, or one piece of background work, keeps all others
// waiting. The program is started with loop-gap.ts in it.

import { type Program, type ProgramOptions, startProgram } from "../test/support/program.ts";
import { until } from "../test/support/until.ts";

export interface Gap {
  readonly ms: number;
  readonly processorMs: number;
}

/** Starts `troupe up` in a home, with the gaps of its event loop measured. */
export function startWithGaps({ env, ...options }: ProgramOptions): Promise<Program> {
  const preload = `--import=${new URL("./loop-gap.ts", import.meta.url).href}`;
  return startProgram({
    args: ["up"],
    ...options,
    env: { SVC_LOG_LEVEL: "warn", NODE_OPTIONS: preload, ...env },
  });
}

/** Where the two APIs of a program listen. */
export async function addressesOf(program: Program): Promise<{ gateway: string; runtime: string }> {
  const address = (name: string) =>
    until(`the ${name} listens`, () => new RegExp(`${name} +(http\\S+)`).exec(program.output())?.[1] ?? null);
  return { gateway: await address("gateway"), runtime: await address("runtime API") };
}

/** The longest gap since this was called last. */
export async function longestGap(program: Program): Promise<Gap> {
  const seen = gapsIn(program.output()).length;
  process.kill(program.pid, "SIGUSR2");
  return until("the gap is printed", () => gapsIn(program.output())[seen] ?? null);
}

const gapsIn = (output: string): readonly Gap[] =>
  [...output.matchAll(/^longest gap ([\d.]+) ms, of the processor ([\d.]+) ms$/gm)].map(
    ([, ms, processorMs]) => ({ ms: Number(ms), processorMs: Number(processorMs) }),
  );

/**
 * Measures some work, and notes the worst gap of all rounds.
 *
 * @param rounds of which the first is not counted if there are several: it is compiled while it runs
 */
export async function noteGap(
  program: Program,
  figures: Map<string, string>,
  name: string,
  rounds: number,
  work: () => Promise<void>,
): Promise<void> {
  const gaps: Gap[] = [];
  let tookMs = 0;
  for (let round = 0; round < rounds; round++) {
    await longestGap(program);
    const from = performance.now();
    await work();
    tookMs = performance.now() - from;
    const gap = await longestGap(program);
    if (round > 0 || rounds === 1) gaps.push(gap);
  }
  const worst = (of: (gap: Gap) => number) => Math.max(...gaps.map(of)).toFixed(1);
  figures.set(
    `longest gap, ${name}`,
    `${worst((gap) => gap.ms)} ms, of the processor ${worst((gap) => gap.processorMs)} ms (took ${Math.round(tookMs)} ms)`,
  );
}
