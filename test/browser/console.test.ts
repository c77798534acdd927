// The console in a real browser: of real runs of the real program, which tests hold and release.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { accessibilityProblems, launchChromium, noChromium, openPage } from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

const HOSTILE = '<img src=x onerror="alert(1)"> \u202egnp.exe';
const views = {
  light: {},
  dark: { colorScheme: "dark" },
  narrow: { viewport: { width: 360, height: 780 } },
} as const;

let program: Program;
let browser: Browser;
let gates: Gates;

if (noChromium === false) {
  before(async () => {
    [program, browser, gates] = await Promise.all([startGatewayHere(), launchChromium(), makeGates()]);
  });
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
    const opened = await openPage(browser, consoleAt(`/runs?job=${jobId}`));
    const { page } = opened;
    await heading(page, "Runs");
    const runId = await startRun(program, jobId);
    const row = page.locator("tbody tr", { hasText: runId });
    await row.getByText("Running", { exact: true }).waitFor();
    await row
      .getByRole("link", { name: '<img src=x onerror="alert(1)"> \ufffdgnp.exe', exact: true })
      .waitFor();
    await gates.open(gate);
    await row.getByText("Completed", { exact: true }).first().waitFor();
    await page.getByLabel("Status").selectOption("failed");
    await page.getByText("No run passes these filters.").waitFor();
    assert.equal(new URL(page.url()).searchParams.get("status"), "failed");
    await page.goBack();
    await row.waitFor();
    assertQuiet(opened);
    await page.context().close();
  });

  test("pauses, resumes and cancels the runs that are ticked, and asks before it cancels", async () => {
    const gate = gates.pipe("bulk");
    const jobId = await namedJob("Bulk", graph("bulk", [executor("held", `cat ${gate}`)]));
    const ids = [await startRun(program, jobId), await startRun(program, jobId)];
    const opened = await openPage(browser, consoleAt(`/runs?job=${jobId}`));
    const { page } = opened;
    for (const id of ids) await page.getByLabel(`Tick ${id}`).check();
    await page.getByRole("button", { name: "Pause 2" }).click();
    await page.locator("tbody").getByText("Paused", { exact: true }).nth(1).waitFor();
    for (const id of ids) await page.getByLabel(`Tick ${id}`).check();
    await page.getByRole("button", { name: "Cancel 2" }).click();
    await page.getByRole("dialog").getByText("It cannot be undone").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel 2" }).click();
    for (const id of ids) assert.equal((await ended(program, id)).run.status, "cancelled");
    assertQuiet(opened);
    await page.context().close();
  });

  test("shows a failed run's reason, its graph, its log searched by the server, and its events", async () => {
    const lines =
      'i=1; while [ $i -le 450 ]; do echo "line $i of the log"; i=$((i+1)); done; echo "broken pipe" >&2; exit 3';
    const jobId = await namedJob(
      "Import",
      graph("import", [router("plan"), executor("parse", lines)], [["plan", "parse"]]),
    );
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    const opened = await openPage(browser, consoleAt(`/runs/${runId}`));
    const { page } = opened;
    await heading(page, "Import");
    await page.getByRole("heading", { name: "What went wrong" }).waitFor();
    await page.getByText("executor.exit_nonzero").waitFor();
    await page.getByRole("link", { name: "Graph" }).click();
    await page.locator('.box[data-state="failed"]', { hasText: "parse" }).waitFor();
    await page.getByRole("link", { name: "Logs" }).click();
    await page.locator(".log-line", { hasText: "broken pipe" }).first().waitFor();
    // More than the page holds: only the server finds the first line.
    assert.equal(await page.getByText("line 1 of the log").count(), 0);
    await page.getByLabel("Contains").fill("line 1 of");
    await page.getByText("line 1 of the log").waitFor();
    assert.equal(await page.locator(".log-line").count(), 1);
    await page.reload();
    await page.getByText("line 1 of the log").waitFor();
    await page.getByRole("link", { name: "Events" }).click();
    await page.locator(".event", { hasText: "job_failed" }).first().waitFor();
    await page.goBack();
    await page.getByText("line 1 of the log").waitFor();
    assertQuiet(opened);
    await page.context().close();
  });

  test("lets two people answer one question: the first answer stands, and the second learns whose it is", async () => {
    const question = ask({ request_id: "ship", prompt: "Ship it?", allowed_decisions: ["ship", "hold"] });
    const jobId = await namedJob("Release", graph("release", [executor("ship", question)]));
    const runId = await startRun(program, jobId);
    const opened = await openPage(browser, consoleAt(`/runs/${runId}`));
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
    await page.context().close();
  });

  test("is reached by keys: the palette, the help, and rows", async () => {
    const opened = await openPage(browser, consoleAt("/runs"));
    const { page } = opened;
    await page.locator("[data-row]").first().waitFor();
    await page.keyboard.press("j");
    const name = await page.evaluate("document.activeElement.textContent");
    assert.equal(name, await page.locator("[data-row]").first().innerText());
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Page or run" }).fill("import");
    await page
      .getByRole("option", { name: /Import/ })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await heading(page, "Import");
    assert.equal(await page.evaluate("document.activeElement.tagName"), "H1");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await heading(page, "Runs");
    assertQuiet(opened);
    await page.context().close();
  });

  test("is accessible on every page, in light, in dark, and on a phone", async () => {
    const jobId = await namedJob("Small", graph("small", [executor("fails", "echo why >&2; exit 3")]));
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    const paths = [
      `/runs?job=${jobId}`,
      ...["", "/graph", "/logs", "/events", "/files", "/raw"].map((tab) => `/runs/${runId}${tab}`),
    ];
    for (const [name, options] of Object.entries(views)) {
      const opened = await openPage(browser, consoleAt(paths[0] ?? ""), options);
      for (const path of paths) {
        await opened.page.goto(consoleAt(path));
        await opened.page
          .locator("main .card")
          .nth(1)
          .or(opened.page.locator("main table"))
          .first()
          .waitFor();
        assert.deepEqual(await accessibilityProblems(opened.page), [], `${path} in ${name}`);
        const overflow = await opened.page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert.ok(Number(overflow) <= 0, `${path} in ${name} is ${overflow} px too wide`);
      }
      assertQuiet(opened);
      await opened.page.context().close();
    }
  });
});
