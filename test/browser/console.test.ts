// The console in a real browser: of real runs of the real program, which tests hold and release.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import {
  accessibilityProblems,
  assertAccessibleHere,
  closeTabs,
  launchChromium,
  noChromium,
  openPage,
  openTab,
} from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const HOSTILE = '<img src=x onerror="alert(1)"> \u202egnp.exe';
const WIDE = { width: 1280, height: 900 };
const views = [
  ["light", { colorScheme: "light" }, WIDE],
  ["dark", { colorScheme: "dark" }, WIDE],
  ["narrow", { colorScheme: "light" }, { width: 360, height: 780 }],
  // What a window of 1280 px shows at 200 %.
  ["zoomed", { colorScheme: "light" }, { width: 640, height: 450 }],
  // On a phone with text of twice the size.
  ["large", { colorScheme: "light" }, { width: 360, height: 780 }],
] as const;
const textSize = (size: string) => `document.documentElement.style.setProperty("font-size", "${size}")`;
/** Of a long table, the rows that were wholly in sight on five screens, in order. */
const WALK_TABLE = `(async () => {
  const list = document.querySelector(".virtual");
  const seen = new Set();
  for (let screen = 0; screen < 5; screen++) {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const { top, bottom } = list.getBoundingClientRect();
    for (const row of list.querySelectorAll("tbody tr[aria-rowindex]")) {
      const box = row.getBoundingClientRect();
      if (box.bottom > top && box.bottom <= bottom + 1) seen.add(Number(row.getAttribute("aria-rowindex")));
    }
    list.scrollBy(0, list.clientHeight * 0.8);
  }
  return [...seen].sort((a, b) => a - b);
})()`;
/** What of the page cannot be read on its screen: what is wider, where nothing scrolls it. */
const CUT_OFF = `[...document.querySelectorAll("main *, .rail *")]
  .filter((one) => one.children.length === 0 && one.closest(".virtual, .graph, .log, .tabs, pre, svg, .visually-hidden") === null)
  .filter((one) => one.getBoundingClientRect().width > 0 && one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML)`;

let program: Program;
let browser: Browser;
let gates: Gates;

if (noChromium === false) {
  before(async () => {
    [program, browser, gates] = await Promise.all([startGatewayHere(), launchChromium(), makeGates()]);
  });
  afterEach(() => closeTabs(browser));
  after(async () => {
    await browser?.close();
    await program?.stop();
    await gates?.remove();
  });
}

async function namedJob(name: string, manifest: Parameters<typeof createJob>[1]): Promise<string> {
  const jobId = await createJob(program, manifest);
  await call(program, "PATCH", `/jobs/${jobId}`, { name }, { "if-match": "*" });
  return jobId;
}

const ask = (payload: object) =>
  `printf '%s\\n' '${JSON.stringify({ type: "human_input_requested", payload })}' > "$SVC_EVENT_STREAM"; until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.1; done`;

const consoleAt = (path: string) => `${program.url}/console${path}`;
const heading = (page: Page, text: string) =>
  page.getByRole("heading", { level: 1, name: text, exact: true }).waitFor();

/** As a link does. */
const goTo = (page: Page, path: string) =>
  page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(consoleAt(path))}); dispatchEvent(new PopStateEvent("popstate"))`,
  );

/** What of the console makes the picture that is there now, compressed and with headers, fits its budget. */
async function assertSmall(page: Page): Promise<void> {
  const bytes = await page.evaluate(`
    [...new Map(performance.getEntries().map(({ name, encodedBodySize }) => [name, encodedBodySize]))]
      .filter(([name]) => /\\/console\\b/.test(name))
      .reduce((sum, [, size]) => sum + size + 300, 0)`);
  assert.ok(Number(bytes) > 40_000 && Number(bytes) <= 90_000, `${bytes} bytes to the first picture`);
}

/** Nothing was complained of, and nothing was asked of anybody else. */
function assertQuiet({ complaints, requested }: Awaited<ReturnType<typeof openPage>>): void {
  assert.deepEqual(complaints, []);
  const foreign = requested.filter((url) => new URL(url).origin !== program.url && !url.startsWith("data:"));
  assert.deepEqual(foreign, []);
}

describe("the console", { skip: noChromium }, () => {
  test("lists runs as they start and end, with hostile names as text, and filters them by its address", async () => {
    const gate = gates.pipe("list");
    const jobId = await namedJob(HOSTILE, graph("list", [executor("held", `cat ${gate}`)]));
    const opened = await openTab(browser, consoleAt(`/runs?job=${jobId}`));
    const { page } = opened;
    await heading(page, "Runs");
    const runId = await startRun(program, jobId);
    const row = page.locator("tbody tr", { hasText: runId });
    await row.getByText("Running", { exact: true }).waitFor();
    await row
      .getByRole("link", { name: '<img src=x onerror="alert(1)"> \ufffdgnp.exe', exact: true })
      .waitFor();
    await assertSmall(page);
    await gates.open(gate);
    await row.getByText("Completed", { exact: true }).first().waitFor();
    await page.getByLabel("Status").selectOption("failed");
    await page.getByText("No run passes these filters.").waitFor();
    assert.equal(new URL(page.url()).searchParams.get("status"), "failed");
    await page.goBack();
    await row.waitFor();
    // As where the run that is sought is behind thousands of others.
    let [pages, empty] = [0, Number.POSITIVE_INFINITY];
    const found = await call(program, "GET", `/runs?job_id=${jobId}`);
    let isDeep = false;
    await page.route(/\/runs\?.*q=behind/, (route) => {
      isDeep ||= route.request().url().includes("page_token=");
      return route.fulfill({ json: ++pages > empty ? found : { items: [], next_page_token: "on" } });
    });
    await page.getByLabel("Name or id").fill("behind");
    await page.getByText("None of the newest runs passes these filters; older ones may.").waitFor();
    assert.ok(pages >= 10, `${pages} pages`);
    empty = pages + 5;
    await page.getByRole("button", { name: "Show more" }).click();
    await row.waitFor();
    // What else happens has the newest looked through again, and takes away nothing that was found.
    [pages, empty, isDeep] = [0, Number.POSITIVE_INFINITY, false];
    const other = await startRun(program, jobId);
    await until("the list is read again", () => pages > 0);
    const before = pages;
    await call(program, "PATCH", `/runs/${other}`, { desired_state: "cancelled" });
    await until("the list is read once more", () => pages > before);
    assert.deepEqual([isDeep, await row.count()], [false, 1]);
    assertQuiet(opened);
  });

  test("shows a failed run's reason, its graph, its log searched by the server, and its events", async () => {
    const lines =
      'i=1; while [ $i -le 450 ]; do echo "line $i of the log"; i=$((i+1)); done; printf "\\033[1;31mred <b>\\033[0m\\n"; echo "{\\"deep\\": {\\"er\\": 1}}"; echo "broken pipe" >&2; exit 3';
    const jobId = await namedJob(
      "Import",
      graph("import", [router("plan"), executor("parse", lines)], [["plan", "parse"]]),
    );
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    // It has loaded nothing before.
    const opened = await openPage(browser, consoleAt(`/runs/${runId}`));
    const { page } = opened;
    await heading(page, "Import");
    await page.getByRole("heading", { name: "What went wrong" }).waitFor();
    await page.getByText("executor.exit_nonzero").waitFor();
    await assertSmall(page);
    await page.getByRole("link", { name: "Graph" }).click();
    await page.locator('.box[data-state="failed"]', { hasText: "parse" }).waitFor();
    await page.getByRole("link", { name: "Logs" }).click();
    await page.locator(".log-line", { hasText: "broken pipe" }).first().waitFor();
    // More than the page holds: only the server finds the first line.
    assert.equal(await page.getByText("line 1 of the log").count(), 0);
    await page.getByLabel("Contains").fill("line 1 of");
    await page.getByText("line 1 of the log").waitFor();
    assert.equal(await page.locator(".log-line").count(), 1);
    await page.locator(".log-line time a").click();
    await page.getByText("line 2 of the log").waitFor();
    await page.goBack();
    await page.getByLabel("Contains").fill("red <b>");
    assert.equal(await page.locator(".ansi-red.ansi-bold").innerText(), "red <b>");
    await page.getByLabel("Contains").fill("deep");
    await page.getByText("As JSON").click();
    await page.locator(".log-line pre", { hasText: '"er": 1' }).waitFor();
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download these lines" }).click(),
    ]);
    const text = await readFile(await saved.path(), "utf8");
    assert.deepEqual(
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).message),
      ['{"deep": {"er": 1}}'],
    );
    await page.getByLabel("Contains").fill("line 1 of");
    await page.getByText("line 1 of the log").waitFor();
    await page.reload();
    await page.getByText("line 1 of the log").waitFor();
    await page.getByRole("link", { name: "Events" }).click();
    await page.locator(".event", { hasText: "job_failed" }).first().waitFor();
    await page.goBack();
    await page.getByText("line 1 of the log").waitFor();
    assertQuiet(opened);
    await page.context().close();
  });

  test("draws a thousand agents in a few boxes, walks along their edges by keys, and opens a box as a table", async () => {
    const loads = Array.from({ length: 990 }, (_, i) => router(`load-${i}`));
    const edges = loads.map(({ node_id }) => ["in", String(node_id)] as const);
    const jobId = await namedJob(
      "Thousand",
      graph(
        "thousand",
        [router("in"), ...loads, router(HOSTILE), executor("broken", "exit 3")],
        [...edges, ["in", HOSTILE], [HOSTILE, "load-1"], ["load-1", "broken"]],
      ),
    );
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    const opened = await openTab(browser, consoleAt(`/runs/${runId}/graph`));
    const { page } = opened;
    await page.locator('.box[data-state="failed"]', { hasText: "broken" }).waitFor();
    await assertSmall(page);
    await page.locator(".box.many", { hasText: "load-… × 989" }).waitFor();
    assert.ok((await page.locator(".box").count()) <= 120);
    await page.locator(".told", { hasText: "989" }).waitFor();
    // From the start to what it leads to, and on.
    await page.locator('.box[tabindex="0"]').focus();
    await page.keyboard.press("ArrowRight");
    const focused = () => page.evaluate("document.activeElement.querySelector('title').textContent");
    assert.match(String(await focused()), /load-/);
    await page.keyboard.press("ArrowLeft");
    assert.match(String(await focused()), /^in\n/);
    await page.getByLabel("Boxes tell").selectOption("messages");
    await page.locator(".box.many .state", { hasText: "989 messages" }).waitFor();
    await page.getByRole("button", { name: "Top to bottom" }).click();
    await page.waitForFunction(
      "(({ width, height }) => height.baseVal.value > 200 && width.baseVal.value > 0)(document.querySelector('.graph svg'))",
    );
    await page.getByLabel("Name contains").fill("broken");
    await page.locator('.box.many[data-found="false"]').first().waitFor();
    await page.keyboard.press("Enter");
    assert.match(String(await focused()), /^broken/);
    await page.getByLabel("Name contains").fill("");
    await page.waitForURL((url) => !url.searchParams.has("q"));
    await page.locator(".box.many", { hasText: "load-…" }).click();
    const table = page.getByRole("table");
    assert.equal(await table.getAttribute("aria-rowcount"), "990");
    assert.ok((await table.getByRole("row").count()) < 100);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByLabel("Name contains").fill("onerror");
    await table.getByRole("link", { name: /^<img src=x/ }).waitFor();
    // A sent link opens the same box, also before its places are known.
    await page.goto(consoleAt(`/runs/${runId}/graph?box=load-0`));
    await page.locator('table[aria-rowcount="990"]').waitFor();
    // On a phone with large text each row is reached, one screen after the other.
    await page.setViewportSize({ width: 360, height: 780 });
    await page.evaluate(textSize("200%"));
    const reached = await page.evaluate<number[]>(WALK_TABLE);
    assert.ok(reached.length > 25, `${reached.length} rows`);
    assert.deepEqual(
      reached,
      reached.map((_, index) => index + 2),
    );
    assertQuiet(opened);
  });

  test("shows what each agent waited and worked for, opens agents of one kind, and keeps a range for logs and events", async () => {
    const others = Array.from({ length: 40 }, (_, i) => router(`other-${i}`));
    const works = [1, 2].map((i) => executor(`work-${i}`, `echo "hello of ${i}"`));
    const edges = [...works, ...others].map(({ node_id }) => ["in", String(node_id)] as const);
    const jobId = await namedJob(
      "Times",
      graph(
        "times",
        [
          router("in"),
          ...works,
          ...others,
          executor(HOSTILE, "echo bye; sleep 0.2; exit 3", { max_attempts: 2, retry_backoff_ms: 1 }),
        ],
        [...edges, ["work-1", HOSTILE], ["work-2", HOSTILE]],
      ),
    );
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    // From the list on in one page: what it has loaded stays.
    const opened = await openTab(browser, consoleAt("/runs"));
    const { page } = opened;
    await page.getByRole("link", { name: "Times", exact: true }).click();
    await page.getByRole("link", { name: "Graph" }).click();
    await page.locator(".graph .box").first().waitFor();
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.getByText("The same as a table").click();
    const table = page.getByRole("table");
    await table.getByRole("row", { name: /^<img src=x.* [0-9.]+ m?s .* Yes$/ }).waitFor();
    await table.getByRole("button", { name: "2 attempts" }).click();
    await table.getByRole("row", { name: /^Attempt 2,/ }).waitFor();
    await table.getByRole("button", { name: "work-… × 2" }).click();
    await table.getByRole("link", { name: "work-2" }).waitFor();
    await page.reload();
    await page.getByText("The same as a table").click();
    await table.getByRole("link", { name: "work-2" }).waitFor();
    // From the last third on: what worked before is not of this range.
    const canvas = await page.locator(".timeline canvas").boundingBox();
    assert.ok(canvas !== null);
    await page.mouse.move(canvas.x + canvas.width - 60, canvas.y + 40);
    await page.mouse.down();
    await page.mouse.move(canvas.x + canvas.width - 1, canvas.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL((url) => url.searchParams.has("since") && url.searchParams.has("until"));
    await page.getByRole("link", { name: "Events" }).click();
    await page.locator(".event").first().waitFor();
    assert.equal(await page.locator(".event", { hasText: "job_pending" }).count(), 0);
    await page.getByRole("link", { name: "Logs" }).click();
    await page.locator(".log, .empty").first().waitFor();
    assert.equal(await page.getByText("hello of 1").count(), 0);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByText("hello of 1").waitFor();
    assertQuiet(opened);
  });

  test("lets two people answer one question: the first answer stands, and the second learns whose it is", async () => {
    const question = ask({ request_id: "ship", prompt: "Ship it?", allowed_decisions: ["ship", "hold"] });
    const jobId = await namedJob("Release", graph("release", [executor("ship", question)]));
    const runId = await startRun(program, jobId);
    const opened = await openTab(browser, consoleAt(`/runs/${runId}`));
    const { page } = opened;
    await page.getByText("Ship it?").waitFor();
    // Nothing is chosen before, and no other request hears of the first answer before the second is given.
    await page.route(/\/human\/ship\/response$/, async (route) => {
      await call(program, "POST", `/runs/${runId}/human/ship/response`, { decision: "hold" });
      await route.continue();
    });
    await page.getByRole("button", { name: "ship", exact: true }).click();
    await page
      .getByText("anonymous decided hold")
      .or(page.getByText("Completed", { exact: true }))
      .first()
      .waitFor();
    const { response } = await call(program, "GET", `/runs/${runId}/human/ship`);
    assert.equal((response as { decision: string }).decision, "hold");
    assertQuiet(opened);
  });

  test("answers a question of any run, with the comment and the data of its schema, and the list is empty again", async () => {
    const data_schema = {
      type: "object",
      required: ["version"],
      properties: { version: { type: "integer", title: HOSTILE }, note: { type: "string" } },
    };
    const question = ask({
      request_id: "go",
      prompt: "Go on?",
      allowed_decisions: ["go on", "stop"],
      data_schema,
    });
    const jobId = await namedJob("Asks", graph("asks", [executor("asks", question)]));
    const runId = await startRun(program, jobId);
    const opened = await openTab(browser, consoleAt("/questions"));
    const { page } = opened;
    const card = page.locator(".people", { hasText: runId });
    assert.equal(await card.locator("button.primary, :checked").count(), 0);
    await card.getByLabel("Comment").fill("Looks good");
    // What is refused stays as it was filled in, with the reason at its field.
    await card.getByRole("button", { name: "go on" }).click();
    await card
      .locator(".field", { hasText: "<img src=x" })
      .getByText("is required and has no value")
      .waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await card.getByLabel("<img src=x").fill("3");
    await card.getByRole("button", { name: "go on" }).click();
    await card.waitFor({ state: "detached" });
    const { response } = await call(program, "GET", `/runs/${runId}/human/go`);
    const { decision, comment, data } = response as { decision: string; comment: string; data: unknown };
    assert.deepEqual([decision, comment, data], ["go on", "Looks good", { version: 3 }]);
    assertQuiet(opened);
  });

  test("starts a run again with other inputs, and shows what differs", async () => {
    const jobId = await namedJob("Again", graph("again", [executor("once", "true")]));
    const runId = await startRun(program, jobId, { inputs: { topic: "bees" } });
    await ended(program, runId);
    const opened = await openTab(browser, consoleAt(`/runs/${runId}/rerun`));
    const { page } = opened;
    await page.getByText("Nothing: it is started as it was.").waitFor();
    await page.getByLabel("Inputs, as JSON").fill('{"topic": "wasps"}');
    await page.locator(".diff").getByText('"wasps"').waitFor();
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.waitForURL((url) => url.pathname.includes("/runs/") && !url.pathname.includes(runId));
    const started = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const { inputs, rerun_of } = await call(program, "GET", `/runs/${started}`);
    assert.deepEqual([inputs, rerun_of], [{ topic: "wasps" }, runId]);
    await page.goto(consoleAt(`/compare?a=${runId}&b=${started}`));
    await page.locator(".diff").getByText('"bees"').first().waitFor();
    await page.getByText("The same manifest, and the same configuration of the job.").waitFor();
    assertQuiet(opened);
  });

  test("is reached by keys: the palette, the help, and rows", async () => {
    const opened = await openTab(browser, consoleAt("/runs"));
    const { page } = opened;
    await page.locator("[data-row]").first().waitFor();
    await page.keyboard.press("j");
    const name = await page.evaluate("document.activeElement.textContent");
    assert.equal(name, await page.locator("[data-row]").first().innerText());
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("combobox", { name: "What to go to or do" });
    await palette.fill("import");
    await page
      .getByRole("option", { name: /^Import.* Run/ })
      .first()
      .waitFor();
    await page.getByRole("option", { name: /^Import.* Job/ }).waitFor();
    await page.keyboard.press("Enter");
    await heading(page, "Import");
    assert.equal(await page.evaluate("document.activeElement.tagName"), "H1");
    // To what its agent that failed did, to a view, and to another agent.
    await page.locator('[data-connection="ended"]').waitFor();
    await page.keyboard.press("]");
    const isAt = (view: string, agent: string | null) => (url: URL) =>
      url.pathname.endsWith(view) && url.searchParams.get("agent") === agent;
    await page.waitForURL(isAt("/events", "parse"));
    for (const [typed, option, view, agent] of [
      ["graph", "Graph Here", "/graph", null],
      ["plan", "plan Agent", "/events", "plan"],
    ] as const) {
      await page.keyboard.press("Control+k");
      await palette.fill(typed);
      await page.getByRole("option", { name: option, exact: true }).click();
      await page.waitForURL(isAt(view, agent));
    }
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await heading(page, "Runs");
    assertQuiet(opened);
  });

  test("shows when a schedule is due, here and in its zone, and pauses it", async () => {
    const jobId = await createJob(program, graph("due", [router("in")]));
    const cron = { expressions: ["30 7 * * 1-5"], timezone: "Asia/Tokyo" };
    await call(program, "POST", "/schedules", { job_id: jobId, name: HOSTILE, cron });
    const opened = await openTab(browser, consoleAt("/schedules?kind=cron"));
    const { page } = opened;
    await page.getByRole("link", { name: /^<img src=x/ }).click();
    await page.getByRole("heading", { name: "Next times" }).waitFor();
    await page.getByText("There (Asia/Tokyo)").waitFor();
    await page
      .getByText(/^\w+, \w+ \d+, 07:30$/)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    // Another one's change comes with the stream: nothing is read again and again.
    await page.locator('[data-lists="live"]').waitFor({ state: "attached" });
    await call(program, "POST", `/schedules/${new URL(page.url()).pathname.split("/").at(-1)}/resume`, {});
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.goto(consoleAt("/nodes"));
    await page
      .getByText(/^0 of \d+/)
      .first()
      .waitFor();
    assertQuiet(opened);
  });

  test("limits what commands may have, and keeps what somebody else has set meanwhile", async () => {
    const opened = await openTab(browser, consoleAt("/runs"));
    const { page } = opened;
    await page.getByRole("link", { name: "Limits", exact: true }).click();
    await page.getByLabel("Cores, in percent").fill("50");
    await page.getByLabel("GPUs, by their numbers").fill("[");
    await page.getByRole("button", { name: "Save the limits" }).click();
    await page.getByText("This is no JSON yet").waitFor();
    await page.getByLabel("GPUs, by their numbers").fill("");
    await call(program, "POST", "/resource", { limits: { memory_percent: 80, gpu_indices: [] } });
    await page.getByRole("button", { name: "Save the limits" }).click();
    await page.getByText("somebody else has changed limits meanwhile").waitFor();
    assert.equal(await page.getByLabel("Cores, in percent").inputValue(), "50");
    assert.equal(await page.getByLabel("Memory, in percent").inputValue(), "80");
    assert.equal(await page.getByLabel("GPUs, by their numbers").inputValue(), "[]");
    await page.getByRole("button", { name: "Save the limits" }).click();
    await page.getByText("Saved. Commands that run keep what they have.").waitFor();
    const { limits } = await call(program, "GET", "/resource");
    assert.deepEqual(limits, { cpu_percent: 50, memory_percent: 80, gpu_indices: [] });
    await call(program, "PUT", "/resource", { limits: {} });
    assertQuiet(opened);
  });

  test("tells what it finds of its machine, what it was started with, and what goes on behind requests", async () => {
    await ended(program, await startRun(program, await createJob(program, graph("ends", [router("in")]))));
    const opened = await openTab(browser, consoleAt(""));
    const { page } = opened;
    const { checks } = await call(program, "GET", "/runtime/doctor");
    await page.getByText("The same as a table").click();
    const completed = await page.locator('td[data-name="Completed"]').last().innerText();
    assert.ok(Number(completed) >= 1, completed);
    await page.getByRole("link", { name: "Doctor", exact: true }).click();
    for (const { name, text } of checks as readonly { readonly name: string; readonly text: string }[])
      if (!/disk/.test(name)) await page.locator("tr", { hasText: name }).getByText(text).first().waitFor();
    await page.getByRole("link", { name: "Settings", exact: true }).click();
    const row = page.locator("tr", { hasText: "SVC_HOME" }).first();
    await row.getByText(program.home).waitFor();
    await page.getByLabel("Name or text").fill("retention");
    await row.waitFor({ state: "detached" });
    await page.getByText("SVC_RETENTION_DAYS").first().waitFor();
    assert.equal(new URL(page.url()).searchParams.get("q"), "retention");
    await page.getByRole("link", { name: "Operations", exact: true }).click();
    await page.getByText("No blueprint was added or removed").waitFor();
    assertQuiet(opened);
  });

  test("is accessible on every page, in light, in dark, and on a phone", async () => {
    const jobId = await namedJob("Small", graph("small", [executor("fails", "echo why >&2; exit 3")]));
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    const paths = [
      "",
      `/runs?job=${jobId}`,
      "/questions",
      "/dead-letters",
      "/jobs",
      `/jobs/${jobId}`,
      "/blueprints",
      "/blueprints/document-digest",
      `/compare?a=${runId}&b=${runId}`,
      "/schedules",
      "/deployments",
      "/models",
      "/services",
      "/nodes",
      "/operations",
      "/limits",
      "/doctor",
      "/settings",
      ...[
        "",
        "/graph",
        "/graph?show=table&overlay=duration",
        "/timeline",
        "/logs",
        "/events",
        "/messages",
        "/files",
        "/dead-letters",
        "/rerun",
        "/raw",
      ].map((tab) => `/runs/${runId}${tab}`),
    ];
    const opened = await openTab(browser, consoleAt(""));
    for (const [at, [name, media, size]] of views.entries()) {
      await opened.page.emulateMedia(media);
      await opened.page.setViewportSize(size);
      await opened.page.evaluate(textSize(name === "large" ? "200%" : "100%"));
      // In short each page in one of the views.
      const some = paths.filter((_, index) => index % views.length === at);
      for (const path of sized(some, paths)) {
        // Without loading the console again, and from where there is nothing: what is awaited is of the page that is meant.
        await goTo(opened.page, "/nowhere");
        await heading(opened.page, "There is no such page");
        await goTo(opened.page, path);
        await opened.page.locator("main .card, main .empty").first().waitFor();
        await assertAccessibleHere(opened.page, `${path} in ${name}`);
        assert.deepEqual(await opened.page.evaluate(CUT_OFF), [], `${path} in ${name}`);
      }
    }
    assertQuiet(opened);
  });
});

describe("the console of a gateway with a token", { skip: noChromium }, () => {
  test("lets in who has the token, goes on where it was, and keeps the token nowhere", async () => {
    const token = "a-token-of-more-than-sixteen-characters";
    const closed = await startGatewayHere({ env: { SVC_API_TOKEN: token } });
    try {
      const opened = await openPage(browser, `${closed.url}/console/runs?status=failed`);
      const { page } = opened;
      const field = page.getByLabel("Token");
      await field.fill("wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("This is not a token of SVC_API_TOKEN.").waitFor();
      await field.fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("No run passes these filters.").waitFor();
      await page.reload();
      await page.getByText("No run passes these filters.").waitFor();
      const kept = JSON.stringify(
        await page.evaluate("[document.cookie, { ...localStorage }, { ...sessionStorage }, location.href]"),
      );
      assert.ok(!kept.includes(token), kept);
      await page.getByRole("button", { name: "Sign out" }).click();
      await field.waitFor();
      assert.deepEqual(opened.complaints, []);
      // A link signs in once, and leaves the address.
      const { path } = await call(
        closed,
        "POST",
        "/sessions",
        { kind: "link" },
        { authorization: `Bearer ${token}` },
      );
      await page.goto(`${closed.url}${path}`);
      await page.getByRole("button", { name: "Sign out" }).waitFor();
      assert.equal(new URL(page.url()).hash, "");
      await page.goto(closed.url);
      await heading(page, "Home");
      await page.context().close();
      // A share shows its run, and nothing that its reader may not do.
      const authorization = `Bearer ${token}`;
      const { run_id: runId } = await call(
        closed,
        "POST",
        "/blueprints/document-digest/runs",
        {},
        { authorization },
      );
      const sharer = await openPage(browser, "about:blank");
      // A refusal of the time before the sign-in comes after it.
      const late = Promise.withResolvers<void>();
      await sharer.page.route(
        `**/api/v1/runs/${runId}`,
        async (route) => {
          const response = await route.fetch();
          await late.promise;
          await route.fulfill({ response });
        },
        { times: 1 },
      );
      await sharer.page.goto(`${closed.url}/console/runs/${runId}`);
      await sharer.page.getByLabel("Token").fill(token);
      await sharer.page.keyboard.press("Enter");
      await sharer.page.getByLabel("Token").waitFor({ state: "detached" });
      late.resolve();
      await sharer.page.getByRole("button", { name: "Share" }).click();
      const dialog = sharer.page.getByRole("dialog", { name: "Share this run" });
      await dialog.getByRole("button", { name: "Make a link" }).click();
      const shared = await dialog.getByLabel("The link").inputValue();
      const guest = await openPage(browser, shared);
      await guest.page.getByRole("link", { name: "Logs" }).waitFor();
      for (const name of ["Runs", "Run again", "Compare", "API"])
        assert.equal(await guest.page.getByRole("link", { name, exact: true }).count(), 0, name);
      assert.equal(await guest.page.getByRole("button", { name: /Cancel|Pause/ }).count(), 0);
      assert.deepEqual(guest.complaints, []);
      // Who ends the link ends what was opened with it.
      await dialog.getByRole("button", { name: "End" }).click();
      await dialog.getByRole("heading", { name: "Links that are good" }).waitFor({ state: "detached" });
      await guest.page.reload();
      await guest.page.getByLabel("Token").waitFor();
      await sharer.page.context().close();
      await guest.page.context().close();
    } finally {
      await closed.stop();
    }
  });
});
