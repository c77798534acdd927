// The console's pages of jobs, blueprints and models in a real browser, of real runs of the real program.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import type { JsonObject } from "../../src/engine/json.ts";
import { jobIs } from "../support/blueprint-catalog.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-operations.ts";
import { assertAccessible, closeTabs, launchChromium, noChromium, openTab } from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { ggufFile, tinyLlama, tinyTensors } from "../support/model-files.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
let browser: Browser;
let gates: Gates;
let catalog: TestCatalog;

if (noChromium === false) {
  before(async () => {
    catalog = await testCatalog();
    const examples = fileURLToPath(new URL("../../examples", import.meta.url));
    const env = { SVC_BLUEPRINT_CATALOG: `${examples}:${catalog.folder}` };
    [program, browser, gates] = await Promise.all([startGatewayHere({ env }), launchChromium(), makeGates()]);
  });
  afterEach(() => closeTabs(browser));
  after(async () => {
    await browser?.close();
    await program?.stop();
    await gates?.remove();
    await catalog?.[Symbol.asyncDispose]();
  });
}

async function namedJob(name: string, manifest: Parameters<typeof createJob>[1]): Promise<string> {
  const jobId = await createJob(program, manifest);
  await call(program, "PATCH", `/jobs/${jobId}`, { name }, { "if-match": "*" });
  return jobId;
}

/** Opens the console and goes from a list to one of its rows. */
async function opened(list: "Jobs" | "Blueprints", name: string) {
  const watched = await openTab(browser, `${program.url}/console`);
  await watched.page.getByRole("link", { name: list, exact: true }).click();
  await watched.page.getByRole("link", { name, exact: true }).click();
  await watched.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  return watched;
}

describe("the console's pages of jobs, blueprints and models", { skip: noChromium }, () => {
  test("a job's grid tells what agents were in its runs, live, leads to them, and walks by keys", async () => {
    const gate = gates.pipe("grid");
    const jobId = await namedJob(
      "Nightly",
      graph("nightly", [router("in"), executor("Build", `cat ${gate}; exit 3`)], [["in", "Build"]]),
    );
    const first = await startRun(program, jobId);
    const { page, complaints } = await opened("Jobs", "Nightly");
    const row = page.getByRole("row", { name: /^Build/ });
    await row.getByRole("cell", { name: "Running" }).waitFor();
    await gates.open(gate);
    await row.getByRole("cell", { name: "Failed" }).waitFor();
    const second = await startRun(program, jobId);
    await gates.open(gate);
    await ended(program, second);
    // Said to who cannot see it, on every page.
    await page
      .locator("#announcer", { hasText: "A run has failed: Nightly." })
      .waitFor({ state: "attached" });
    // The newest run first.
    await page
      .getByRole("columnheader", { name: /^Failed/ })
      .nth(1)
      .waitFor();
    assert.deepEqual(await row.getByRole("cell").allInnerTexts(), ["Failed", "Failed"]);
    await row.getByRole("link").nth(1).focus();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await page.evaluate("document.activeElement.title"), "in: Done");
    await assertAccessible(page);
    await page.getByLabel("Agents", { exact: true }).selectOption("failed");
    await page.getByRole("row", { name: /^in/ }).waitFor({ state: "detached" });
    await page.getByLabel("Agents", { exact: true }).selectOption("");
    await page.getByRole("row", { name: /^in/ }).waitFor();
    await page.getByLabel("Agent contains").fill("uil");
    await page.getByRole("row", { name: /^in/ }).waitFor({ state: "detached" });
    await row.getByRole("link").nth(1).click();
    await page.waitForURL(
      (url) => url.pathname.endsWith(`/runs/${first}/events`) && url.search === "?agent=Build",
    );
    await page.goBack();
    await page
      .getByRole("columnheader", { name: /^Failed/ })
      .nth(1)
      .getByRole("link")
      .click();
    await page.waitForURL((url) => url.pathname.endsWith(`/runs/${first}`));
    assert.deepEqual(complaints, []);
  });

  test("a thousand agents by many runs have few rows in the page, which come as one scrolls", async () => {
    const loads = Array.from({ length: 999 }, (_, i) => router(`load-${i}`));
    const edges = loads.map(({ node_id }) => ["in", String(node_id)] as const);
    const jobId = await namedJob("Wide", graph("wide", [router("in"), ...loads], edges));
    for (let i = 0; i < sized(2, 25); i++) await ended(program, await startRun(program, jobId));
    const { page, complaints } = await opened("Jobs", "Wide");
    await page.getByRole("row", { name: /^load-0 / }).waitFor();
    const table = page.locator(".grid");
    await until("the last agent is in sight", async () => {
      await table.evaluate((list) => list.scrollTo(0, list.scrollHeight));
      return (await page.getByRole("row", { name: /^load-998 / }).count()) > 0;
    });
    assert.equal(await table.getByRole("table").getAttribute("aria-rowcount"), "1001");
    assert.ok((await table.getByRole("row").count()) < 100);
    assert.deepEqual(complaints, []);
  });

  test("a job's configuration is changed on the revision that was read; what another one changed is shown, and nothing typed is lost", async () => {
    const { job_id: jobId } = await call(program, "POST", "/jobs", {
      blueprint_id: "document-digest",
      name: "Letters",
    });
    await jobIs(program, String(jobId), "ready");
    const { revision } = await call(program, "GET", `/jobs/${jobId}`);
    const { page, complaints } = await opened("Jobs", "Letters");
    await page.getByRole("button", { name: "Edit" }).click();
    const json = page.getByRole("textbox", { name: "Configuration, as JSON" });
    await json.fill('{"digest": {"title": 7}}');
    await page.locator("fieldset").getByText("/digest/title must be string").waitFor();
    await json.fill("{");
    await page.getByText(/^This is no JSON yet/).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    assert.equal(
      await json.evaluate((area) => (area as never as { validity: { valid: boolean } }).validity.valid),
      false,
    );
    assert.equal((await call(program, "GET", `/jobs/${jobId}`)).revision, revision);
    // Who cannot be asked accepts nothing.
    await page.route("**/validate", (route) => route.abort());
    const [failed] = await Promise.all([
      page.waitForEvent("requestfailed"),
      json.fill('{"digest": {"title": "Unasked"}}'),
    ]);
    assert.match(failed.url(), /\/validate$/);
    assert.equal(await page.locator("form.edit").getByText("The server would accept this.").count(), 0);
    await page.unroute("**/validate");
    await json.fill('{"digest": {"title": "Mine"}}');
    await page.getByText("The server would accept this.").first().waitFor();
    await assertAccessible(page);
    await call(
      program,
      "PATCH",
      `/jobs/${jobId}`,
      { name: "Theirs", resolved_configuration: { digest: { title: "Theirs", key_terms: 3 } } },
      { "if-match": "*" },
    );
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "The job was changed meanwhile" }).waitFor();
    await page.getByRole("row", { name: /^\/name "Letters" "Theirs"/ }).waitFor();
    const merged = { digest: { title: "Mine", key_terms: 3 } };
    assert.deepEqual(JSON.parse(await json.inputValue()), merged);
    assert.equal(await page.getByRole("textbox", { name: "Name" }).inputValue(), "Theirs");
    await assertAccessible(page);
    await page.getByRole("button", { name: "Save over it" }).click();
    await page.getByRole("heading", { level: 1, name: "Theirs" }).waitFor();
    const job = await call(program, "GET", `/jobs/${jobId}`);
    assert.deepEqual([job.resolved_configuration, job.name, job.revision], [merged, "Theirs", 4]);
    assert.deepEqual(complaints, []);
  });
  test("an addition of a blueprint is followed step by step, fails with its reason, and a removal shows first what goes", async () => {
    const gate = gates.pipe("prepare");
    const resources = [
      {
        name: "index",
        title: "Search index",
        prepare: ["sh", "-c", `cat ${gate}; [ -e ${gates.folder}/whole ] && echo 1 > index`],
      },
    ];
    await catalog.write("searchable", { resources });
    const { page, complaints } = await opened("Blueprints", "The searchable");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    const latest = page.getByRole("region", { name: "The latest addition" });
    await latest.getByRole("listitem").filter({ hasText: "Under way" }).waitFor();
    await latest.getByText("Search index").first().waitFor();
    await assertAccessible(page);
    await gates.open(gate);
    await latest
      .getByRole("alert")
      .getByText(/^The resource "index" could not be made/)
      .waitFor();
    await latest.getByRole("listitem").filter({ hasText: "Failed" }).waitFor();
    await writeFile(`${gates.folder}/whole`, "");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await gates.open(gate);
    await page.getByRole("button", { name: "Add again" }).waitFor();
    // Another one's look at what would go is no removal, also while it goes on.
    const { operation_id: look } = await call(program, "POST", "/blueprints/searchable/removals", {
      dry_run: true,
    });
    await until("it has been told", async () => {
      const { status, dry_run: isLook } = await call(program, "GET", `/operations/${look}`);
      return status === "completed" && isLook === true;
    });
    assert.equal(await page.getByRole("region", { name: "The latest removal" }).count(), 0);
    await page.getByRole("button", { name: "Remove" }).click();
    const dialog = page.getByRole("dialog", { name: "Remove the blueprint" });
    await dialog.getByRole("row", { name: /^index resource .* goes$/ }).waitFor();
    await dialog.getByLabel("Keep its resources").check();
    await dialog.getByRole("row", { name: /^index resource .* stays/ }).waitFor();
    await assertAccessible(page);
    await dialog.getByRole("button", { name: "Remove it" }).click();
    await page.getByRole("region", { name: "The latest removal" }).getByText("Completed").waitFor();
    const { state, owns } = await call(program, "GET", "/blueprints/searchable");
    assert.deepEqual([state, (owns as readonly JsonObject[]).map(({ id }) => id)], ["available", ["index"]]);
    assert.deepEqual(complaints, []);
  });

  test("a model is registered, installed, looked at, and removed once it is told what goes", async () => {
    const file = `${gates.folder}/tiny.gguf`;
    await writeFile(file, ggufFile(tinyLlama, tinyTensors));
    const { page, complaints } = await openTab(browser, `${program.url}/console/models`);
    await page.getByRole("button", { name: "Register a model" }).click();
    const form = page.getByRole("dialog", { name: "Register a model" });
    await form.getByLabel("Where it comes from").selectOption("An OpenAI-compatible endpoint");
    await form.getByLabel("API key (optional)").fill("sk-never-shown");
    await form.getByLabel("Where it comes from").selectOption("A file");
    await form.getByLabel("Path").fill("tiny.gguf");
    await form.getByRole("button", { name: "Register", exact: true }).click();
    await form.getByText("must be an absolute path on the machine of the gateway", { exact: true }).waitFor();
    await assertAccessible(page);
    await form.getByLabel("Path").fill(file);
    await form.getByLabel("Name (optional)").fill("Tiny <b>Llama</b>");
    await form.getByRole("button", { name: "Register", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Tiny <b>Llama</b>", exact: true }).waitFor();
    await page.getByRole("button", { name: "Install" }).click();
    await page.getByRole("region", { name: "The latest installation" }).getByText("Completed").waitFor();
    await page.getByRole("button", { name: "Look at it" }).click();
    await page.getByText(/It runs here/).waitFor();
    await page.getByRole("button", { name: "Serve" }).click();
    const serving = page.getByRole("region", { name: "The latest serving" });
    await serving
      .getByRole("alert")
      .getByText(/llama-server/)
      .waitFor();
    await assertAccessible(page);
    await page.getByRole("button", { name: "Remove" }).click();
    const dialog = page.getByRole("dialog", { name: "Remove the model" });
    await dialog.getByRole("row", { name: /^tiny model .* goes$/ }).waitFor();
    await dialog.getByRole("button", { name: "Remove it" }).click();
    await page.getByRole("region", { name: "The latest removal" }).getByText("Completed").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No model yet.").waitFor();
    assert.deepEqual(complaints, []);
  });
});
