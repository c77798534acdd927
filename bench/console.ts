// The console in Chromium: the list of 5,000 runs while runs start and end as fast as this machine does them, the graph of
// 1,000 agents while they work, and a log of 1,000,000 lines. What the page's thread is held up by, and what a listener costs the runs.

import { rm } from "node:fs/promises";
import type { Page } from "playwright-core";
import { launchChromium, noChromium, openPage } from "../test/support/chromium.ts";
import { createJob, ended, startRun } from "../test/support/gateway-api.ts";
import { freePorts } from "../test/support/ports.ts";
import { type Program, startProgram, temporaryHome } from "../test/support/program.ts";
import { until } from "../test/support/until.ts";
import { manyCommands, pair } from "./manifests.ts";
import { seedLog } from "./seed-log.ts";
import { seedRuns } from "./seed-runs.ts";

const SEEDED = 5_000;
const SHOWN = [50, 200];
const LOAD_MS = 10_000;
const CLIENTS = 16;
const ROUNDS = 3;
const AGENTS = 1_000;
const LINES = 1_000_000;

/** @returns the figures; each name is a row */
export async function measureConsole(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only === null || only.includes("console") || only.includes("console-log")) await measureLog(figures);
  if (only !== null && !only.includes("console")) return figures;
  const home = await temporaryHome();
  const port = await freePorts(1);
  const env = { SVC_API_PORT: String(port), SVC_LOG_LEVEL: "warn" };
  await (await startProgram({ args: ["gateway"], home, env })).stop();
  seedRuns(home, SEEDED);
  const program = await startProgram({ args: ["gateway"], home, env });
  try {
    const jobId = await createJob(program, pair);
    await load(program, jobId, LOAD_MS / 5);
    await measureListeners(program, jobId, figures);
    if (noChromium !== false) return figures;
    for (const shown of SHOWN) await measurePage(program, jobId, shown, figures);
    await measureGraph(program, figures);
  } finally {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  }
  return figures;
}

/** Starts runs as fast as they are accepted. @returns how many a second */
async function load(program: Program, jobId: string, forMs: number): Promise<number> {
  const untilMs = performance.now() + forMs;
  let count = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (performance.now() < untilMs) {
        const answer = await fetch(`${program.api}/jobs/${jobId}/runs`, {
          method: "POST",
          headers: { "content-type": "application/json", prefer: "wait=30" },
          body: "{}",
        });
        if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
        await answer.arrayBuffer();
        count++;
      }
    }),
  );
  return (count / forMs) * 1_000;
}

/** Runs a second with no listener and with one, in turns. */
async function measureListeners(
  program: Program,
  jobId: string,
  figures: Map<string, string>,
): Promise<void> {
  const without: number[] = [];
  const withOne: number[] = [];
  const heard = { writes: 0, frames: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    without.push(await load(program, jobId, LOAD_MS));
    const over = new AbortController();
    const answer = await fetch(`${program.api}/stream?topics=runs`, { signal: over.signal });
    const reading = (async () => {
      for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        heard.writes++;
        heard.frames += part.split("event: change").length - 1;
      }
    })().catch(() => {});
    withOne.push(await load(program, jobId, LOAD_MS));
    over.abort();
    await reading;
  }
  const shown = (rates: readonly number[]) => [...rates].map((rate) => Math.round(rate)).join(", ");
  const seconds = (ROUNDS * LOAD_MS) / 1_000;
  figures.set("runs a second, waited for, nobody listens to lists", shown(without));
  figures.set("— with a listener, in turns", shown(withOne));
  figures.set(
    "— what it is sent a second: pieces; changes",
    `${Math.round(heard.writes / seconds)}; ${Math.round(heard.frames / seconds)}`,
  );
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds; and of them those in which the thread had a processor. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** The tasks of the page's own thread. */
function tasksOf(trace: Buffer): readonly TraceEvent[] {
  const { traceEvents } = JSON.parse(trace.toString()) as { readonly traceEvents: readonly TraceEvent[] };
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  return traceEvents.filter(({ name, pid, tid }) => name.endsWith("RunTask") && mains.has(`${pid} ${tid}`));
}

async function measurePage(
  program: Program,
  jobId: string,
  shown: number,
  figures: Map<string, string>,
): Promise<void> {
  const browser = await launchChromium();
  try {
    const { page } = await openPage(browser, `${program.url}/console/runs`);
    await page.locator('[data-lists="live"]').waitFor({ state: "attached" });
    while ((await page.locator("tbody tr").count()) < shown) {
      const count = await page.locator("tbody tr").count();
      await page.getByRole("button", { name: "Show more" }).click();
      await page.locator("tbody tr").nth(count).waitFor();
    }
    let rate = 0;
    await traced(page, `${shown} shown`, figures, async () => {
      rate = await load(program, jobId, LOAD_MS);
    });
    figures.set(
      `— ${shown} of ${SEEDED}+ runs shown, runs a second meanwhile`,
      Math.round(rate).toLocaleString("en"),
    );
  } finally {
    await browser.close();
  }
}

/** A graph of many agents, while it runs and afterwards. */
async function measureGraph(program: Program, figures: Map<string, string>): Promise<void> {
  const browser = await launchChromium();
  try {
    const jobId = await createJob(program, manyCommands(AGENTS, ["true"]));
    const runId = await startRun(program, jobId);
    const address = `${program.url}/console/runs/${runId}/graph`;
    const { page } = await openPage(browser, address);
    await page.locator(".box").first().waitFor();
    let changes = 0;
    let ms = 0;
    await traced(page, `graph of ${AGENTS} agents`, figures, async () => {
      const from = performance.now();
      const { events } = await ended(program, runId);
      ms = performance.now() - from;
      changes = events.filter(({ type }) => /^agent_|^sandbox_job_/.test(type)).length;
    });
    figures.set(
      `— state changes a second meanwhile`,
      Math.round((changes / ms) * 1_000).toLocaleString("en"),
    );
    const from = performance.now();
    await page.goto(address);
    await page.locator(".box").first().waitFor();
    figures.set(
      `— from its address to the first boxes, after its end`,
      `${Math.round(performance.now() - from)} ms`,
    );
  } finally {
    await browser.close();
  }
}

/** The log of a run that has printed much: opened at its end, gone through, and searched. */
async function measureLog(figures: Map<string, string>): Promise<void> {
  if (noChromium !== false) return;
  const home = await temporaryHome();
  const env = { SVC_API_PORT: String(await freePorts(1)), SVC_LOG_LEVEL: "warn" };
  const first = await startProgram({ args: ["gateway"], home, env });
  const runId = await startRun(first, await createJob(first, pair));
  await ended(first, runId);
  await first.stop();
  seedLog(home, LINES, false);
  const program = await startProgram({ args: ["gateway"], home, env });
  const browser = await launchChromium();
  const name = `log of ${LINES.toLocaleString("en")} lines`;
  try {
    const { page } = await openPage(browser, "about:blank");
    const step = async (what: string, work: () => Promise<unknown>) => {
      const from = performance.now();
      await work();
      figures.set(`${name}: ${what}`, `${Math.round(performance.now() - from)} ms`);
    };
    const line = (number: number) => page.locator(".log-line", { hasText: `things/${number} ` }).first();
    await traced(page, name, figures, async () => {
      await step("from its address to its last line", async () => {
        await page.goto(`${program.url}/console/runs/${runId}/logs`);
        await line(LINES).waitFor();
      });
      await step("all of it is counted over time", () =>
        until("all lines are counted", async () => {
          const bars = await page.locator(".histogram title").allTextContents();
          const counts = bars.map((bar) => Number(/: ([\d,]+) line/.exec(bar)?.[1]?.replaceAll(",", "")));
          return counts.reduce((sum, lines) => sum + lines, 0) >= LINES;
        }),
      );
      await step("to its first line", async () => {
        await page.getByRole("button", { name: "First line" }).click();
        await line(1).waitFor();
      });
      await step("the page has all events", () =>
        page.locator('[data-connection="ended"]').waitFor({ timeout: 300_000 }),
      );
      await step("a text that one line has", async () => {
        await page.getByLabel("Contains").fill("things/123456 ");
        await line(123_456).waitFor();
      });
    });
    const heap = await page.evaluate<number>("performance.memory.usedJSHeapSize");
    figures.set(`— ${name}: memory of the page's script`, `${Math.round(heap / 1e6)} MB`);
  } finally {
    await browser.close();
    await program.stop();
    await rm(home, { recursive: true, force: true });
  }
}

/** Notes what the page's thread does while something happens. */
async function traced(
  page: Page,
  name: string,
  figures: Map<string, string>,
  work: () => Promise<void>,
): Promise<void> {
  const browser = page.context().browser();
  if (browser === null) throw new Error("The page has no browser.");
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline"] });
  const from = performance.now();
  await work();
  const ms = performance.now() - from;
  const tasks = tasksOf(await browser.stopTracing());
  const long = (of: "dur" | "tdur") => {
    const all = tasks.map((task) => (task[of] ?? 0) / 1_000);
    return `${all.filter((one) => one > 50).length}; ${Math.round(Math.max(0, ...all))} ms`;
  };
  const busyMs = tasks.reduce((sum, { tdur = 0 }) => sum + tdur / 1_000, 0);
  figures.set(`${name}: processor time of the page's thread`, `${Math.round((busyMs / ms) * 100)} %`);
  figures.set(`— ${name}: tasks over 50 ms of it; the longest`, long("tdur"));
  figures.set(`— ${name}: tasks over 50 ms by the clock; the longest`, long("dur"));
}
