// The console while things change and break: one connection for all tabs, a gateway that is killed and comes back, a session that
// ends. Of the real program, which is killed.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launchChromium, noChromium, openPage } from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, follow, happens, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { freePorts } from "../support/ports.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";

let home: string;
let port: number;
let program: Program;
let browser: Browser;
let gates: Gates;

const start = (more: Readonly<Record<string, string>> = {}) =>
  startProgram({ args: ["gateway"], home, env: { SVC_API_PORT: String(port), ...more } });

if (noChromium === false) {
  before(async () => {
    [home, port] = [await temporaryHome(), await freePorts(1)];
    [program, browser, gates] = await Promise.all([start(), launchChromium(), makeGates()]);
  });
  // Pages that a failed test leaves open would go on asking.
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  after(async () => {
    await browser?.close();
    await program?.stop();
    await gates?.remove();
    await rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
}

const consoleAt = (path: string) => `${program.url}/console${path}`;
const rowOf = (page: Page, runId: string) => page.locator("tbody tr", { hasText: runId });
const isLive = (page: Page) => page.locator('[data-lists="live"]').waitFor({ state: "attached" });

async function readers(): Promise<number> {
  const { runtime } = (await call(program, "GET", "/metrics")) as never as {
    readonly runtime: { readonly stream_readers: number };
  };
  return runtime.stream_readers;
}

describe("a console that stays open", { skip: noChromium }, () => {
  test("has one connection for the lists of all tabs, and each shows what changes without asking again", async () => {
    const gate = gates.pipe("tabs");
    const jobId = await createJob(program, graph("tabs", [executor("held", `cat ${gate}`)]));
    const runId = await startRun(program, jobId);
    const { page, requested, complaints } = await openPage(browser, consoleAt("/runs"));
    const second = await page.context().newPage();
    await second.goto(consoleAt(`/runs?job=${jobId}`));
    await Promise.all([page, second].map(isLive));
    for (const tab of [page, second]) await rowOf(tab, runId).getByText("Running", { exact: true }).waitFor();
    assert.equal(await readers(), 1);
    const reads = () => requested.filter((url) => url.includes("/api/v1/runs?")).length;
    await until("the list is read once more, behind the start of the stream", () => reads() === 2);
    await gates.open(gate);
    for (const tab of [page, second])
      await rowOf(tab, runId).getByText("Completed", { exact: true }).first().waitFor();
    assert.equal(reads(), 2, "the change came with the stream");
    // Where there are no shared workers, each tab has a connection of its own.
    const alone = await page.context().newPage();
    await alone.addInitScript("delete globalThis.SharedWorker");
    await alone.goto(consoleAt("/runs"));
    await isLive(alone);
    assert.equal(await readers(), 2);
    await alone.close();
    await page.close();
    const later = await startRun(program, jobId);
    await rowOf(second, later).waitFor();
    await second.context().close();
    await until("nobody listens", async () => (await readers()) === 0);
    assert.deepEqual(complaints, []);
  });

  test("says how fresh it is while the gateway is gone, and then shows what happened meanwhile; a run's events come once", async () => {
    const gate = gates.pipe("killed");
    const told = `echo before; cat ${gate}; echo after`;
    const jobId = await createJob(program, graph("killed", [executor("held", told)]));
    const runId = await startRun(program, jobId);
    const { page } = await openPage(browser, consoleAt("/runs"));
    await isLive(page);
    await rowOf(page, runId).getByText("Running", { exact: true }).waitFor();
    const run = await page.context().newPage();
    await run.goto(consoleAt(`/runs/${runId}/events?level=0`));
    await run.locator(".event", { hasText: "sandbox_job_started" }).first().waitFor();
    const log = await page.context().newPage();
    await log.goto(consoleAt(`/runs/${runId}/logs`));
    await log.locator(".log-line", { hasText: "before" }).waitFor();
    await log.locator(".histogram").waitFor();
    await log.route("**/logs/histogram?*", (route) => route.abort(), { times: 1 });
    await log.waitForEvent("requestfailed", (request) => request.url().includes("/logs/histogram"));
    await program.kill();
    await page.getByText(/^As of .*, reconnecting…$/).waitFor();
    program = await start();
    const missed = await startRun(
      program,
      await createJob(program, graph("missed", [executor("a", "true")])),
    );
    let starts = 0;
    await happens(program, runId, ({ type }) => type === "sandbox_job_started" && ++starts === 2);
    await gates.open(gate);
    await ended(program, runId);
    await isLive(page);
    await rowOf(page, missed).waitFor();
    await rowOf(page, runId).getByText("Completed", { exact: true }).first().waitFor();
    await log.locator(".log-line", { hasText: "after" }).waitFor();
    const lines = (await walk(program, `/runs/${runId}/logs`)).length;
    await until("each line is counted once", async () => {
      // Of a bar: "09:30:12, 1 s: 3 lines".
      const bars = await log.locator(".histogram title").allTextContents();
      return bars.reduce((sum, bar) => sum + Number(/: (\d+) line/.exec(bar)?.[1]), 0) === lines;
    });
    assert.equal(await log.getByRole("alert").count(), 0);
    await run.locator(".event", { hasText: "job_completed" }).first().waitFor();
    const events = await Array.fromAsync(follow(program, runId));
    const shown = await run.locator(".event").count();
    assert.equal(shown, events.length);
  });

  test("leads to the sign-in when its session ends, and goes on at the same address", async () => {
    await program.stop();
    program = await start({ SVC_API_TOKEN: TOKEN });
    const { page } = await openPage(browser, consoleAt("/runs?status=completed"));
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await isLive(page);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const { items } = (await call(program, "GET", "/sessions?kind=session", undefined, headers)) as never as {
      readonly items: readonly { readonly session_id: string }[];
    };
    for (const { session_id: id } of items)
      await call(program, "DELETE", `/sessions/${id}`, undefined, headers);
    await page.getByLabel("Token").waitFor();
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await isLive(page);
    assert.equal(new URL(page.url()).search, "?status=completed");
    await page.locator("tbody tr").first().waitFor();
  });
});
