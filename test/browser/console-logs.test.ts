// The log of a run in a real browser: many lines of one real worker, of which the page holds few.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import {
  accessibilityProblems,
  closeTabs,
  launchChromium,
  noChromium,
  openTab,
} from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

/** Several times what a page holds. */
const LINES = sized(10_000, 50_000);
const MIDDLE = LINES / 2;
/** Every thousandth names itself a warning. */
const PRINT = `awk 'BEGIN { for (i = 1; i <= ${LINES}; i++) print (i % 1000 == 0 ? "WARN " : "") "line " i " of the log" }'`;

let program: Program;
let browser: Browser;
let gates: Gates;
let runId: string;

if (noChromium === false) {
  before(async () => {
    [program, browser, gates] = await Promise.all([startGatewayHere(), launchChromium(), makeGates()]);
    runId = await startRun(program, await createJob(program, graph("long", [executor("prints", PRINT)])));
    await ended(program, runId);
  });
  afterEach(() => closeTabs(browser));
  after(async () => {
    await browser?.close();
    await program?.stop();
    await gates?.remove();
  });
}

const logsAt = (query = "") => `${program.url}/console/runs/${runId}/logs${query}`;
const lineOf = (page: Page, number: number) =>
  page.locator(".log-line", { hasText: new RegExp(`line ${number} of the log`) });

/** Scrolls by what is in sight at a time until a line is there. @returns the numbers of all lines that were, sorted */
const walkedTo = (page: Page, number: number, by: 1 | -1) =>
  page.evaluate<number[]>(`(async () => {
    const list = document.querySelector(".log");
    const seen = new Set();
    while (!seen.has(${number})) {
      for (const { textContent } of list.querySelectorAll(".message")) seen.add(Number(/line (\\d+)/.exec(textContent)[1]));
      list.scrollBy(0, ${by} * list.clientHeight);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return [...seen].sort((a, b) => a - b);
  })()`);
const upTo = (length: number) => Array.from({ length }, (_, i) => i + 1);

/** How many lines are in the page, whatever its window holds. */
const count = (page: Page) => page.locator(".log-line").count();
const focusedText = (page: Page) => page.evaluate("document.activeElement.textContent");

describe("a long log", { skip: noChromium }, () => {
  test("has few of them in the page, leads to the first by key and by search, and reads on in both directions", async () => {
    const { page, complaints } = await openTab(browser, logsAt());
    const feed = page.getByRole("feed");
    await lineOf(page, LINES).waitFor();
    assert.ok((await count(page)) < 120);
    await feed.focus();
    await page.keyboard.press("Home");
    await lineOf(page, 1).and(page.locator('[aria-current="true"]')).waitFor();
    assert.match(String(await focusedText(page)), /line 1 of the log/);
    await page.keyboard.press("ArrowDown");
    assert.match(String(await focusedText(page)), /line 2 of the log/);
    // Far beyond what the page holds, and back: what was let go is read again, without a gap.
    const there = await walkedTo(page, 2_500, 1);
    assert.deepEqual(there, upTo(there.length));
    assert.ok((await count(page)) < 120);
    const back = await walkedTo(page, 1, -1);
    assert.deepEqual(back, upTo(back.length));
    await page.getByRole("button", { name: "Newest line" }).click();
    await lineOf(page, LINES).waitFor();
    await page.getByLabel("Contains").fill("line 1 of");
    await lineOf(page, 1).waitFor();
    assert.equal(await count(page), 1);
    assert.deepEqual(complaints, []);
  });

  test("opens at the line of a link, among what is around it, also from a filter and back", async () => {
    const { page, complaints } = await openTab(browser, logsAt(`?text=line+${MIDDLE}&wrap=0`));
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await lineOf(page, MIDDLE).getByRole("link").click();
    const marked = page.locator('.log-line[aria-current="true"]');
    await marked.getByText(`line ${MIDDLE} of the log`).waitFor();
    await lineOf(page, MIDDLE - 10).waitFor();
    await lineOf(page, MIDDLE + 10).waitFor();
    await marked.getByRole("button", { name: "Copy link" }).click();
    const link = await page.evaluate<string>("navigator.clipboard.readText()");
    await page.goBack();
    await lineOf(page, MIDDLE - 10).waitFor({ state: "detached" });
    await marked.getByText(`line ${MIDDLE} of the log`).waitFor();
    await page.goto("about:blank");
    await page.goto(link);
    await marked.getByText(`line ${MIDDLE} of the log`).waitFor();
    await lineOf(page, MIDDLE + 10).waitFor();
    const box = await marked.boundingBox();
    const feed = await page.getByRole("feed").boundingBox();
    assert.ok(box && feed && box.y >= feed.y && box.y + box.height <= feed.y + feed.height);
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByLabel("Level").selectOption("warn");
    await lineOf(page, MIDDLE - 1_000).waitFor();
    await page.getByLabel("Contains").fill("line 3 of");
    await page.getByText("No line passes these filters.").waitFor();
    // What could not be read is read when it is asked for again.
    await page.route(/\/logs\?/, (route) => route.abort(), { times: 1 });
    await page.getByLabel("Contains").fill("line 3000 of");
    await page.getByRole("button", { name: "Try again" }).click();
    await lineOf(page, 3_000).waitFor();
    assert.deepEqual(complaints, []);
  });

  test("draws how much was logged when, of all of it, and leads to a time and to a part of it", async () => {
    const { page, complaints } = await openTab(browser, logsAt());
    const bars = page.locator(".histogram svg");
    await page.getByText("Lines over time as a table").click();
    const table = page.getByRole("group", { name: "Lines over time" });
    /** Of a column, all rows together. */
    const sumOf = async (column: number) =>
      (await table.locator(`td:nth-child(${column})`).allInnerTexts())
        .map((text) => Number(text.replaceAll(",", "")))
        .reduce((a, b) => a + b, 0);
    await until("all lines are counted", async () => (await sumOf(2)) === LINES);
    assert.deepEqual([await sumOf(3), await sumOf(4)], [LINES / 1_000, LINES - LINES / 1_000]);
    assert.deepEqual(await accessibilityProblems(page), []);
    await table.getByRole("button").first().click();
    const marked = page.locator('.log-line[aria-current="true"]');
    await marked.getByText("line 1 of the log").waitFor();
    const box = await bars.boundingBox();
    const last = await bars.locator("g").last().boundingBox();
    assert.ok(box !== null && last !== null);
    // The last bar with lines; how many it holds is up to how busy the machine was when they were read.
    await page.mouse.click(last.x + last.width / 2, box.y + 10);
    const inLast = Number(
      (await table.locator("tr").last().locator("td").first().innerText()).replaceAll(",", ""),
    );
    await marked.getByText(`line ${LINES - inLast + 1} of the log`).waitFor();
    // Over the first bar with lines.
    const bar = await bars.locator("g").first().boundingBox();
    assert.ok(bar !== null);
    await page.mouse.move(Math.max(box.x, bar.x - 5), box.y + 20);
    await page.mouse.down();
    await page.mouse.move(bar.x + bar.width, box.y + 20, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL((url) => url.searchParams.has("since") && url.searchParams.has("until"));
    await page.getByRole("button", { name: "First line" }).click();
    await marked.getByText("line 1 of the log").waitFor();
    await page.getByText("Lines over time as a table").click();
    await table.waitFor();
    const part = await sumOf(2);
    assert.ok(part > 0 && part < LINES, `${part} lines`);
    assert.deepEqual(complaints, []);
  });

  test("saves all lines, in order, and stops when it is told to", async () => {
    const { page, complaints } = await openTab(browser, logsAt("?wrap=0"));
    const button = page.getByRole("button", { name: "Download these lines" });
    const [saved] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const records = (await readFile(await saved.path(), "utf8")).trimEnd().split("\n");
    const messages = records.map((record) => String(JSON.parse(record).message).replace("WARN ", ""));
    assert.deepEqual(
      messages,
      upTo(LINES).map((number) => `line ${number} of the log`),
    );
    // What is stopped is not saved.
    await page.route(/\/logs\/stream/, () => {});
    await button.click();
    await page.getByRole("button", { name: "Stop: 0 lines so far" }).click();
    await button.waitFor();
    assert.deepEqual(complaints, []);
  });

  test("follows what comes while the reader is at the end, and leaves alone what is read elsewhere", async () => {
    const gate = gates.pipe("more");
    const prints = `seq -f 'early %g' 300; cat ${gate}; echo late; cat ${gate}; echo last`;
    const jobId = await createJob(program, graph("goes-on", [executor("prints", prints)]));
    const run = await startRun(program, jobId);
    const { page, complaints } = await openTab(browser, `${program.url}/console/runs/${run}/logs`);
    const line = (text: string) => page.locator(".log-line", { hasText: text });
    await line("early 300").waitFor();
    await gates.open(gate);
    await line("late").waitFor();
    await page.getByRole("feed").focus();
    await page.keyboard.press("Home");
    await line("early 1").and(page.locator('[aria-current="true"]')).waitFor();
    await gates.open(gate);
    await page.getByText("All events are here").waitFor();
    assert.equal(await page.evaluate("document.querySelector('.log').scrollTop"), 0);
    assert.equal(await line("last").count(), 0);
    await page.keyboard.press("End");
    await line("last").waitFor();
    assert.deepEqual(complaints, []);
  });
});
