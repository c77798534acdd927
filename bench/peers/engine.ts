// What every engine is measured by.

import { readdirSync, readFileSync } from "node:fs";

/** Each function starts a job, and resolves when the engine has it on disk as completed. */
export interface Engine {
  pair(): Promise<void>;
  fan(width: number): Promise<void>;
  /** 1,000 pairs in one request; for engines that have one. */
  batch?(): Promise<void>;
  stop(): Promise<void>;
}

export type Figures = Readonly<Record<string, number>>;

/** The first jobs of every engine are compiled while they run. */
const WARM_UP = 2_000;
const SINGLE = 150;
const JOBS = 1_000;
const SUBMITTERS = 32;
const FANS = 3;

export const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** @param pids processes whose time counts, with their descendants */
export async function measure(engine: Engine, pids: readonly number[]): Promise<Figures> {
  await pairs(engine, WARM_UP);
  const single = await timesOf(SINGLE, () => engine.pair());
  const before = processorMs(pids);
  const from = performance.now();
  await pairs(engine, JOBS);
  const perSecond = (JOBS / (performance.now() - from)) * 1_000;
  const perPair = (processorMs(pids) - before) / JOBS;
  await engine.fan(20);
  const fans = await timesOf(FANS, () => engine.fan(1_000));
  const { batch } = engine;
  const batches = batch === undefined ? [] : await timesOf(2 * FANS, batch);
  return {
    "pair p50, ms": median(single),
    "pairs/s": perSecond,
    "processor time per pair, ms": perPair,
    "fan 1,000, ms": median(fans),
    ...(batches.length > 0 && { "batch of 1,000, jobs/s": (JOBS / median(batches.slice(FANS))) * 1_000 }),
  };
}

async function pairs(engine: Engine, count: number): Promise<void> {
  let left = count;
  const submit = async () => {
    while (left-- > 0) await engine.pair();
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submit));
}

async function timesOf(count: number, work: () => Promise<void>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const from = performance.now();
    await work();
    times.push(performance.now() - from);
  }
  return times;
}

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;

/** Processor time of processes and of everything below them, children that have ended included. */
function processorMs(roots: readonly number[]): number {
  const parents = new Map<number, number>();
  const times = new Map<number, number>();
  for (const pid of readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)) {
    const fields = statOf(pid);
    if (fields === null) continue;
    parents.set(pid, Number(fields[1]));
    times.set(pid, TICK_MS * fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0));
  }
  const counts = (pid: number): boolean =>
    roots.includes(pid) || (parents.has(pid) && counts(parents.get(pid) ?? 0));
  return [...times].reduce((sum, [pid, ms]) => (counts(pid) ? sum + ms : sum), 0);
}

/** null: the process has ended meanwhile. */
function statOf(pid: number): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
