// What a person does in the console after something broke: messages sent again, changed or not, and many runs at a time.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { after, afterEach, before, describe, test } from "node:test";
import type { Browser, Route } from "playwright-core";
import type { JsonObject } from "../../src/engine/json.ts";
import { assertAccessible, closeTabs, launchChromium, noChromium, openTab } from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, happens, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph, module, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

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

async function namedJob(name: string, manifest: JsonObject, files?: Parameters<typeof createJob>[3]) {
  const jobId = await createJob(program, manifest, {}, files);
  await call(program, "PATCH", `/jobs/${jobId}`, { name }, { "if-match": "*" });
  return jobId;
}

/** Opens the list of a job's runs, and clicks through to a view of the run. */
async function openRun(jobId: string, name: string, view?: string) {
  const opened = await openTab(browser, `${program.url}/console/runs?job=${jobId}`);
  await opened.page.getByRole("link", { name, exact: true }).first().click();
  const views = opened.page.getByRole("navigation", { name: "Views of the run" });
  if (view !== undefined) await views.getByRole("link", { name: view, exact: true }).click();
  return opened;
}

/** A run whose worker gives up what does not say `ok`, and which a sensor holds open. @returns its job and run */
async function particular(name: string, count: number) {
  const nodes = [router("in"), sensor("hold"), module("worker", { module: "check.mjs" })];
  const more = { entrypoints: ["in", "hold"], policies: { failure_policy: "continue" } };
  const jobId = await namedJob(name, graph("particular", nodes, [["in", "worker"]], more), {
    "payloads/check.mjs":
      "export async function handle({ body }) {\n  if (body.ok !== true) throw new Error('not ok');\n}\n",
  });
  const bodies = Array.from({ length: count }, (_, n) => ({ n }));
  const runId = await startRun(program, jobId, { inputs: { $entrypoints: { in: bodies, hold: [{}] } } });
  let seen = 0;
  await happens(program, runId, ({ type }) => type === "message_dead_lettered" && ++seen === count);
  return { jobId, runId };
}

describe("dead letters in the console", { skip: noChromium }, () => {
  test("are sent again with another body, which others are compared with, and all at once", async () => {
    const { jobId, runId } = await particular("Particular", 3);
    const { page, complaints } = await openRun(jobId, "Particular", "Dead letters");
    const cards = page.getByRole("region", { name: /^Message dl_/ });
    await cards.nth(2).waitFor();
    await cards.first().getByRole("button", { name: "Change and send" }).click();
    const dialog = page.getByRole("dialog");
    const send = dialog.getByRole("button", { name: "Send the changed message" });
    const field = dialog.getByLabel("Body, as JSON");
    assert.deepEqual(JSON.parse(await field.inputValue()), { n: 2 });
    assert.equal(await send.isDisabled(), true, "nothing has changed");
    await field.fill('{"n": 2, "ok"');
    await dialog.getByText("This is no JSON yet").waitFor();
    assert.equal(await send.isDisabled(), true, "it is no JSON");
    await field.fill('{"n": 2, "ok": true}');
    await dialog.getByRole("row", { name: "/ok nothing true" }).waitFor();
    await assertAccessible(page);
    await send.click();
    await dialog.waitFor({ state: "detached" });
    await cards.first().getByText("Changed by").waitFor();

    await cards.nth(1).getByText("Its body").click();
    await cards.nth(1).getByText("Compared with the last one that was taken").waitFor();
    await cards.nth(1).getByRole("row", { name: "/ok true nothing" }).waitFor();
    await cards.first().getByText("Its body").click();
    await cards.first().getByRole("row", { name: "/ok nothing true" }).waitFor();
    await assertAccessible(page);

    await page.getByRole("button", { name: "Send all again" }).click();
    await dialog.getByText("2 open messages").waitFor();
    await dialog.getByRole("button", { name: "Send 2 messages again" }).click();
    await dialog.getByText("2 of 2 were sent again.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    // Both come back, so the one that others are compared with is still the one that was taken.
    await cards.nth(4).waitFor();
    await cards.first().getByText("Its body").click();
    await cards.first().getByRole("row", { name: "/ok true nothing" }).waitFor();
    const letters = await walk(program, `/runs/${runId}/dead-letters?status=retried`);
    assert.deepEqual(
      letters.map(({ change }) => change),
      [{ principal: "anonymous", body: { n: 2, ok: true } }, null, null],
    );
    assert.deepEqual(complaints, []);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });

  test("are a few at a time sent again, and no more once the dialog is closed", async () => {
    const { jobId, runId } = await particular("Many", 8);
    const { page, complaints } = await openRun(jobId, "Many", "Dead letters");
    const asked = new EventEmitter();
    const sent: Route[] = [];
    await page.route(/\/dead-letters\/dl_[^/]+\/retry$/, (route) => {
      if (sent.push(route) === 6) asked.emit("six");
    });
    const six = once(asked, "six");
    await page.getByRole("button", { name: "Send all again" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Send 8 messages again" }).click();
    await six;
    await dialog.getByText("0 of 8. Closing leaves the rest as it is.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    for (const route of [...sent]) {
      const answered = page.waitForResponse(route.request().url());
      await route.continue();
      await answered;
    }
    await page.getByText("Sent again", { exact: true }).nth(5).waitFor();
    assert.equal(sent.length, 6);
    assert.equal((await walk(program, `/runs/${runId}/dead-letters?status=retried`)).length, 6);
    assert.deepEqual(complaints, []);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });

  test("say which of many could not be sent again, and why", async () => {
    const { runId } = await particular("Over", 2);
    const { page, complaints } = await openTab(browser, `${program.url}/console`);
    await page.getByRole("link", { name: "Dead letters", exact: true }).first().click();
    await page.getByLabel("Reason").selectOption("processing_failed");
    await page
      .getByRole("region", { name: /^Message dl_/ })
      .nth(1)
      .waitFor();
    await page.goto(`${program.url}/console/dead-letters?reason=processing_failed&run=${runId}`);
    await page.getByRole("button", { name: "Send all again" }).click();
    const dialog = page.getByRole("dialog");
    const press = dialog.getByRole("button", { name: "Send 2 messages again" });
    await press.waitFor();
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    await ended(program, runId);
    await press.click();
    await dialog.getByText("0 of 2 were sent again.").waitFor();
    await dialog.getByRole("listitem").filter({ hasText: "cancelled, which is final" }).nth(1).waitFor();
    await assertAccessible(page);
    assert.deepEqual(complaints, []);
  });
});

describe("the failure card of a run", { skip: noChromium }, () => {
  const broken = ["echo 'token: <b> ```' >&2", "printf '\\033[31mred words\\033[0m\\n' >&2", "exit 3"].join(
    "; ",
  );

  test("has the message, the last words, the attempts and the history, leads to the log, is copied and run again", async () => {
    const work = executor("work", broken, { max_attempts: 2, retry_backoff_ms: 1 });
    const jobId = await namedJob("Orders", graph("orders", [router("in"), work], [["in", "work"]]));
    for (const order of [7, 8]) await ended(program, await startRun(program, jobId, { inputs: { order } }));
    const { page, complaints } = await openRun(jobId, "Orders");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const card = page.getByRole("region", { name: "What went wrong" });
    await card.getByText("Failed 2 of its last 2 runs with this code").waitFor();
    const message = card.getByRole("group", { name: "The message that it failed at" });
    assert.deepEqual(JSON.parse(await message.innerText()), { order: 8 });
    const attempts = card.getByRole("table").getByRole("row");
    assert.equal(await attempts.count(), 3);
    await card.locator(".ansi-red", { hasText: "red words" }).waitFor();
    await assertAccessible(page);

    await card.getByRole("button", { name: "Copy as issue" }).click();
    await card.getByRole("button", { name: "Copied" }).waitFor();
    const issue = String(await page.evaluate("navigator.clipboard.readText()"));
    const { source } = (await call(program, "GET", `/jobs/${jobId}`)) as { source: JsonObject };
    const { fingerprint } = await call(program, "GET", `/bundles/${source.bundle_id}`);
    const runId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    for (const part of [
      `\`${runId}\``,
      `\`${fingerprint}\``,
      "`executor.exit_nonzero`",
      "````\ntoken: <b> ```\n",
    ])
      assert.ok(issue.includes(part), `${part} is missing:\n${issue}`);

    await card.getByRole("group", { name: "The end of stderr" }).getByRole("link").first().click();
    await page.locator('.log-line[aria-current="true"]', { hasText: "token: <b>" }).waitFor();
    await page.goBack();
    await card.getByRole("button", { name: "Re-run" }).click();
    await page.waitForURL((url) => url.pathname.includes("/runs/run_") && !url.pathname.includes(runId));
    const next = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const { inputs, rerun_of } = await call(program, "GET", `/runs/${next}`);
    assert.deepEqual([inputs, rerun_of], [{ order: 8 }, runId]);
    await ended(program, next);
    assert.deepEqual(complaints, []);
  });

  test("is there for an agent that a run goes on without, and sends its message again", async () => {
    const { jobId, runId } = await particular("Partly", 1);
    const { page, complaints } = await openRun(jobId, "Partly");
    const card = page.getByRole("region", { name: "An agent has failed, and the run goes on" });
    await card.getByRole("button", { name: "Change and send" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Body, as JSON").fill('{"ok": true}');
    await dialog.getByRole("button", { name: "Send the changed message" }).click();
    await card.waitFor({ state: "detached" });
    assert.deepEqual(complaints, []);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });
});

describe("the list of runs", { skip: noChromium }, () => {
  test("pauses, resumes and cancels runs that are ticked by keys, says how many before, and which could not be after", async () => {
    const gate = gates.pipe("bulk");
    const jobId = await namedJob("Bulk", graph("bulk", [executor("held", `cat ${gate}`)]));
    const ids = [await startRun(program, jobId), await startRun(program, jobId)];
    const { page, complaints } = await openTab(browser, `${program.url}/console/runs?job=${jobId}`);
    const dialog = page.getByRole("dialog");
    const stated = (state: string) => page.locator("tbody").getByText(state, { exact: true });
    await stated("Running").nth(1).waitFor();
    for (const _ of ids) {
      await page.keyboard.press("j");
      await page.keyboard.press("x");
    }
    await page.getByText("2 ticked").waitFor();
    await assertAccessible(page);
    await page.getByRole("button", { name: "Pause 2" }).click();
    await page.getByRole("dialog", { name: "Pause 2 runs" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await dialog.getByText("2 of 2 were paused.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await stated("Paused").nth(1).waitFor();
    assert.equal(await page.getByText(/ ticked$/).count(), 0);

    await page.getByLabel("Tick all that are shown").check();
    await page.getByRole("button", { name: "Resume 2" }).click();
    // One of them ends before it is resumed.
    await call(program, "PATCH", `/runs/${ids[0]}`, { desired_state: "cancelled" });
    await ended(program, String(ids[0]));
    await dialog.getByRole("button", { name: "Resume 2" }).click();
    await dialog.getByText("1 of 2 were resumed.").waitFor();
    await dialog
      .getByRole("listitem")
      .filter({ hasText: String(ids[0]) })
      .waitFor();
    await assertAccessible(page);
    await dialog.getByRole("button", { name: "Close" }).click();
    await stated("Running").waitFor();

    await page.getByLabel(`Tick ${ids[1]}`).check();
    await page.getByRole("button", { name: "Cancel 1" }).click();
    await dialog.getByText("It cannot be undone").waitFor();
    await dialog.getByRole("button", { name: "Cancel 1" }).click();
    assert.equal((await ended(program, String(ids[1]))).run.status, "cancelled");
    assert.deepEqual(complaints, []);
  });

  test("keeps filters under a name, as a link, and forgets them", async () => {
    const { page, complaints } = await openTab(browser, `${program.url}/console`);
    await page.getByRole("link", { name: "Runs", exact: true }).first().click();
    const saved = page.getByRole("navigation", { name: "Saved filters" });
    await page.getByLabel("Status").selectOption("failed");
    await page.getByLabel("Since").selectOption("24h");
    await saved.getByRole("button", { name: "Save these filters" }).click();
    const dialog = page.getByRole("dialog", { name: "Save these filters" });
    await dialog.getByLabel("Name").fill("Broken <b>today");
    await page.keyboard.press("Enter");
    const link = saved.getByRole("link", { name: "Broken <b>today" });
    await link.waitFor();
    assert.equal(await link.getAttribute("aria-current"), "page");
    assert.equal(await saved.getByRole("button", { name: "Save these filters" }).count(), 0);
    await page.getByLabel("Status").selectOption("");
    await saved.getByRole("button", { name: "Save these filters" }).waitFor();
    await page.reload();
    await link.waitFor();
    await assertAccessible(page);
    await link.click();
    await page.waitForURL((url) => url.searchParams.get("status") === "failed");
    assert.equal(await page.getByLabel("Since").inputValue(), "24h");
    await saved.getByRole("button", { name: "Forget Broken <b>today" }).click();
    await link.waitFor({ state: "detached" });
    await page.reload();
    await saved.getByRole("button", { name: "Save these filters" }).waitFor();
    assert.equal(await saved.getByRole("link").count(), 0);
    assert.deepEqual(complaints, []);
  });
});
