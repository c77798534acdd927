// The console in Firefox: what browsers differ in. Scripts under its policy, a shared worker, streams, canvases, layout in a
// worker, cookies, and what axe finds. Of the real program, which is killed.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import type { Browser, Page } from "puppeteer-core";
import {
  accessibilityProblems,
  fill,
  launchFirefox,
  noFirefox,
  openPage,
  press,
  shows,
  type WatchedPage,
} from "../support/firefox.ts";
import { call, createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { freePorts } from "../support/ports.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const HOSTILE = '<img src=x onerror="alert(1)"> of Firefox';
const LINES =
  'i=1; while [ $i -le 450 ]; do echo "line $i of the log"; i=$((i+1)); done; echo "broken pipe" >&2; exit 3';
const QUESTION = JSON.stringify({
  type: "human_input_requested",
  payload: { request_id: "ship", prompt: "Ship it?", allowed_decisions: ["ship", "hold"] },
});
const ASKS = `printf '%s\\n' '${QUESTION}' > "$SVC_EVENT_STREAM"; until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.1; done`;

let home: string;
let port: number;
let program: Program;
let browser: Browser;

const start = (more: Readonly<Record<string, string>> = {}) =>
  startProgram({ args: ["gateway"], home, env: { SVC_API_PORT: String(port), ...more } });

if (noFirefox === false) {
  before(async () => {
    [home, port] = [await temporaryHome(), await freePorts(1)];
    [program, browser] = await Promise.all([start(), launchFirefox()]);
  });
  // Pages that a failed test leaves open would go on asking.
  afterEach(() =>
    Promise.all(
      browser
        .browserContexts()
        .map((context) => context !== browser.defaultBrowserContext() && context.close()),
    ),
  );
  after(async () => {
    await browser?.close();
    await program?.stop();
    await rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
}

const consoleAt = (path: string) => `${program.url}/console${path}`;
const isLive = (page: Page) => page.waitForSelector('[data-lists="live"]');

/** Nothing was complained of, and nothing was asked of anybody else. */
function assertQuiet({ complaints, requested }: WatchedPage): void {
  assert.deepEqual(complaints, []);
  const foreign = requested.filter((url) => new URL(url).origin !== program.url && !url.startsWith("data:"));
  assert.deepEqual(foreign, []);
}

describe("the console in Firefox", { skip: noFirefox }, () => {
  test("leads from the list to a failed run's reason, graph, timeline, and the first line of its log", async () => {
    const jobId = await createJob(
      program,
      graph("import", [router("plan"), executor("parse", LINES)], [["plan", "parse"]]),
    );
    await call(program, "PATCH", `/jobs/${jobId}`, { name: HOSTILE }, { "if-match": "*" });
    const opened = await openPage(browser, consoleAt("/runs"));
    const { page } = opened;
    await isLive(page);
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    await shows(page, "Failed", "tbody tr");
    assert.deepEqual(await accessibilityProblems(page), []);
    await press(page, "link", HOSTILE);
    await shows(page, "executor.exit_nonzero");
    assert.deepEqual(await accessibilityProblems(page), []);
    await press(page, "link", "Graph");
    await page.waitForSelector('.box[data-state="failed"]');
    assert.deepEqual(await accessibilityProblems(page), []);
    await press(page, "link", "Timeline");
    await page.waitForSelector(".timeline canvas");
    assert.deepEqual(await accessibilityProblems(page), []);
    await press(page, "link", "Logs");
    await shows(page, "broken pipe", ".log-line");
    await fill(page, "Contains", "line 1 of");
    await shows(page, "line 1 of the log", ".log-line");
    assert.deepEqual(await accessibilityProblems(page), []);
    assertQuiet(opened);
  });

  test("lets one person answer a question, and the page of another one sees it go", async () => {
    const runId = await startRun(program, await createJob(program, graph("asks", [executor("asks", ASKS)])));
    const first = await openPage(browser, consoleAt(`/runs/${runId}`));
    await shows(first.page, "Ship it?");
    const second = await openPage(browser, consoleAt("/questions"));
    await shows(second.page, "Ship it?");
    await press(first.page, "button", "hold");
    await shows(first.page, "Completed");
    await shows(second.page, "Nothing waits for a person.");
    const { response } = await call(program, "GET", `/runs/${runId}/human/ship`);
    assert.equal((response as { decision: string }).decision, "hold");
    for (const one of [first, second]) assertQuiet(one);
  });

  test("says how fresh it is while the gateway is gone, and shows afterwards what happened meanwhile", async () => {
    const jobId = await createJob(program, graph("back", [executor("a", "true")]));
    const { page } = await openPage(browser, consoleAt(`/runs?job=${jobId}`));
    await isLive(page);
    await program.kill();
    await shows(page, "reconnecting…");
    program = await start();
    const runId = await startRun(program, jobId);
    await isLive(page);
    await shows(page, runId, "tbody tr");
    await shows(page, "Completed", "tbody tr");
  });

  test("lets in who has the token, asks again when the session ends, and goes on at the same address", async () => {
    await program.stop();
    program = await start({ SVC_API_TOKEN: TOKEN });
    const { page } = await openPage(browser, consoleAt("/runs?status=failed"));
    const signIn = async () => {
      await fill(page, "Token", TOKEN);
      await press(page, "button", "Sign in");
      await isLive(page);
    };
    await signIn();
    const authorization = `Bearer ${TOKEN}`;
    const { items } = await call(program, "GET", "/sessions?kind=session", undefined, { authorization });
    for (const { session_id: id } of items as readonly { readonly session_id: string }[])
      await call(program, "DELETE", `/sessions/${id}`, undefined, { authorization });
    await page.waitForSelector('input[name="token"]');
    await signIn();
    assert.equal(new URL(page.url()).search, "?status=failed");
    await shows(page, "Failed", "tbody tr");
    const kept = JSON.stringify(
      await page.evaluate("[document.cookie, { ...localStorage }, { ...sessionStorage }]"),
    );
    assert.ok(!kept.includes(TOKEN), kept);
  });
});
