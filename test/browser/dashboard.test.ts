// The dashboard of a run in a real browser: of real runs of the real program, which tests hold and release.

import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { JsonObject } from "../../src/engine/json.ts";
import { zipOf } from "../support/bundle-files.ts";
import {
  accessibilityProblems,
  closeTabs,
  launchChromium,
  noChromium,
  openPage,
  openTab,
} from "../support/chromium.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  call,
  createJob,
  ended,
  happens,
  sendBundle,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { aggregator, executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { dashboardPorts, freePorts } from "../support/ports.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
let browser: Browser;
let gates: Gates;

if (noChromium === false) {
  before(async () => {
    [program, browser, gates] = await Promise.all([
      dashboardPorts().then((env) => startGatewayHere({ env })),
      launchChromium(),
      makeGates(),
    ]);
  });
  afterEach(() => closeTabs(browser));
  after(async () => {
    await browser?.close();
    await program?.stop();
    await gates?.remove();
  });
}

/** Starts a run with a dashboard. @returns its id, and where its dashboard is once that can be reached */
async function runWithDashboard(at: Program, manifest: JsonObject): Promise<{ runId: string; url: string }> {
  const config = { web_ui: { enabled: true, output: { title: "Digest of <i>bees</i>" } } };
  const jobId = await createJob(at, manifest, {}, { "config/default.json": config });
  const runId = await startRun(at, jobId);
  return { runId, url: await dashboardOf(at, runId) };
}

const dashboardOf = (at: Program, runId: string): Promise<string> =>
  until("the dashboard can be reached", async () => {
    const services = await walk(at, "/services");
    const found = services.find((service) => service.run_id === runId && service.status === "passing");
    return found === undefined ? null : String(found.public_url);
  });

const gatewayPage = (at: Program, runId: string) => `${at.api}/runs/${runId}/dashboard`;

/** Lists of outputs come a moment after the events that announce them. */
async function seeOutputs(page: Page, titles: readonly string[]): Promise<void> {
  await until(`the page lists ${titles.join(", ")}`, async () => {
    const shown = await page.locator(".output .lead").allInnerTexts();
    return shown.length === titles.length;
  });
  assert.deepEqual(await page.locator(".output .lead").allInnerTexts(), titles);
}

async function save(page: Page, title: string): Promise<Buffer> {
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: `Download ${title}` }).click();
  return readFile(await (await downloading).path());
}

async function seeStatus(page: Page, status: string): Promise<void> {
  await page.locator("#status", { hasText: new RegExp(`^${status}$`) }).waitFor();
}

async function isGone(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).text();
    return false;
  } catch {
    return true;
  }
}

const tell = (type: string, payload: JsonObject) =>
  `printf '%s\\n' '${JSON.stringify({ type, payload })}' > "$SVC_EVENT_STREAM"`;

describe("the dashboard", { skip: noChromium }, () => {
  test("shows several browsers a run as it goes, and what it came to, after its server is gone, too", async () => {
    const [gate, end] = [gates.pipe("held"), gates.pipe("end")];
    const write =
      'mkdir -p "$SVC_OUTPUT_DIR"; echo "<h1>Bees</h1><script>parent.hacked=1</script>" > "$SVC_OUTPUT_DIR/digest.html"; head -c 200000 /dev/urandom > "$SVC_OUTPUT_DIR/all.bin"';
    const { runId, url } = await runWithDashboard(
      program,
      graph(
        "digest",
        [
          router("plan"),
          executor("reader", `${tell("progress", { percent: 40, label: "4 of 10 pages" })}; cat ${gate}`),
          executor("report", write),
          // A page's own server ends with the run: a slow browser is to have loaded the preview before.
          executor("last", `cat ${end}`),
        ],
        [
          ["plan", "reader"],
          ["reader", "report"],
          ["report", "last"],
        ],
        {
          outputs: [
            { path: "digest.html", title: "The digest", primary: true },
            { path: "all.bin", title: "Everything" },
          ],
        },
      ),
    );
    const pages = await Promise.all([
      openPage(browser, url, { reducedMotion: "no-preference" }),
      ...sized([], [openPage(browser, url, { colorScheme: "dark" })]),
      openTab(browser, gatewayPage(program, runId)),
    ]);
    for (const { page } of pages) {
      await seeStatus(page, "Running");
      await page.locator("#connection", { hasText: /^Live$/ }).waitFor();
      await page.locator('.box[data-state="running"]', { hasText: "4 of 10 pages" }).waitFor();
      assert.equal(await page.locator(".box").count(), 4);
      assert.equal(await page.locator('.box[data-state="pending"]').count(), 2);
      const link = page.getByRole("link", { name: "Open it in the console" });
      const href = (await link.getAttribute("href")) ?? "";
      assert.equal(new URL(href, page.url()).href, `${program.url}/console/runs/${runId}`);
    }
    assert.equal(await pages[0].page.locator("h1").innerText(), "Digest of <i>bees</i>");
    await gates.open(gate);
    await happens(
      program,
      runId,
      ({ type, agent_id }) => type === "sandbox_job_started" && agent_id === "last",
    );
    const [output] = (await walk(program, `/runs/${runId}/outputs`)).filter(
      ({ title }) => title === "Everything",
    );
    const bytes = Buffer.from(await (await fetch(program.url + String(output?.url))).arrayBuffer());
    for (const { page } of pages) {
      await seeOutputs(page, ["The digest", "Everything"]);
      const frame = page.frameLocator(".preview iframe");
      assert.equal(await frame.locator("h1").innerText(), "Bees");
      assert.equal(await page.evaluate("window.hacked"), undefined);
      assert.ok(bytes.equals(await save(page, "Everything")));
    }
    await gates.open(end);
    await happens(program, runId, "job_completed");
    await until("its server is gone", () => isGone(url));
    for (const { page, complaints, requested } of pages) {
      await seeStatus(page, "Completed");
      await page.locator("#connection", { hasText: "Ended" }).waitFor();
      await page.locator("#progress[aria-valuenow='100']").waitFor();
      await seeOutputs(page, ["The digest", "Everything"]);
      // From the gateway by now, for all of them.
      assert.ok(bytes.equals(await save(page, "Everything")));
      await page.locator("#feed li", { hasText: "The run completed" }).waitFor();
      // The frame's script is what was refused.
      assert.deepEqual(
        complaints.filter((text) => !/Blocked script execution in .*preview/.test(text)),
        [],
      );
      for (const one of requested) assert.ok(one.startsWith("http://127.0.0.1:") || one === "data:,", one);
    }
    await Promise.all(pages.map(({ page }) => page.close()));
  });

  test("tells why a run failed, and shows hostile names and messages as the text that they are", async () => {
    const hostile = '<img src=x onerror="window.hacked=1">';
    const script = `echo '<script>window.hacked=1</script>'; printf '\\342\\200\\256gnp.exe \\033[31mred\\n'; head -c 100000 /dev/zero | tr '\\0' '<'; echo; mkdir -p "$SVC_OUTPUT_DIR"; echo '<script>1</script>' > "$SVC_OUTPUT_DIR/$0.txt"; echo "it's broken" >&2; exit 3`;
    const jobId = await createJob(
      program,
      graph("hostile", [executor(hostile, ["sh", "-c", script, "<b>&amp;"])], [], {
        outputs: [{ path: "<b>&amp;.txt", title: hostile, primary: true }],
      }),
    );
    const { run } = await ended(program, await startRun(program, jobId));
    const { page, complaints } = await openTab(browser, gatewayPage(program, String(run.run_id)));
    await seeStatus(page, "Failed");
    const failure = page.getByRole("region", { name: "What went wrong" });
    for (const part of ["executor.exit_nonzero", hostile, "Exit code\n3", "What to do:", "it's broken"]) {
      await until(`the failure has ${part}`, async () => (await failure.innerText()).includes(part));
    }
    await page.locator("#feed li", { hasText: /<{100}/ }).waitFor();
    await page.locator("#feed li", { hasText: "<script>window.hacked=1</script>" }).waitFor();
    await page.locator("#feed li", { hasText: "\ufffdgnp.exe red" }).waitFor();
    const longest = await page
      .locator("#feed li .message")
      .evaluateAll((rows) => Math.max(...rows.map((row) => String(row.textContent).length)));
    assert.ok(longest <= 600);
    assert.equal(
      await page.locator(".box .name").first().textContent(),
      `${hostile.slice(0, 10)}…${hostile.slice(-10)}`,
    );
    assert.equal(await page.evaluate("window.hacked"), undefined);
    assert.equal(await page.locator("main img, main b").count(), 0);
    assert.deepEqual(complaints, []);
  });

  test("of thousands of events keeps 500 in the document, stands still for who scrolls back, and filters", async () => {
    const gate = gates.pipe("lines");
    const { runId, url } = await runWithDashboard(
      program,
      graph("lines", [
        executor(
          "talker",
          `seq -f 'early %g' 300; seq -f 'line %g' 6000; cat ${gate}; ${tell("mine", { message: "odd" })}; echo last`,
        ),
      ]),
    );
    const { page } = await openTab(browser, url);
    await page.locator("#feed li", { hasText: /line 6000$/ }).waitFor();
    const rows = page.locator("#feed > li");
    assert.equal(await rows.count(), 500);
    assert.match(await page.locator("#events-count").innerText(), /no longer kept here/);
    await page.locator("#feed").hover();
    await page.mouse.wheel(0, -2_000);
    await page.locator("#follow[aria-pressed='false']").waitFor();
    await page.getByRole("button", { name: "Show older events" }).click();
    assert.equal(await rows.count(), 500);
    await page.locator("#feed li", { hasText: /line 5400$/ }).waitFor();
    const before = await rows.last().innerText();
    await gates.open(gate);
    await seeStatus(page, "Completed");
    await page.locator("#events-count", { hasText: "new below" }).waitFor();
    assert.equal(await rows.last().innerText(), before);
    await page.getByRole("button", { name: "Follow", exact: true }).click();
    await page.locator("#feed li", { hasText: "The run completed" }).waitFor();
    assert.equal(await rows.count(), 500);
    await page.getByRole("combobox", { name: "Type" }).selectOption("mine");
    assert.equal(await rows.count(), 1);
    await page.getByRole("combobox", { name: "Type" }).selectOption("");
    await page.getByRole("searchbox", { name: "Contains" }).fill("LINE 4321");
    await page.locator("#feed > li:only-child", { hasText: "line 4321" }).waitFor();
    // What a page no longer keeps, the history has.
    const { page: other } = await openTab(browser, gatewayPage(program, runId));
    await other.locator("#feed li", { hasText: "The run completed" }).waitFor();
    await other.getByRole("searchbox", { name: "Contains" }).fill("EARLY 12");
    await other.locator("#feed-empty", { hasText: "No event passes" }).waitFor();
    await other.getByRole("button", { name: "Search all older events" }).click();
    await other.locator("#search-text", { hasText: "11 matches; all events are searched" }).waitFor();
    assert.equal(await other.locator("#feed > li").count(), 11);
  });

  test("is walked by keyboard, says how a person answers, and has no violation that axe finds, light and dark, wide and narrow", async () => {
    const question = { request_id: "ship", prompt: "Ship it?", allowed_decisions: ["yes", "no"] };
    const gate = gates.pipe("asked");
    const { runId, url } = await runWithDashboard(
      program,
      graph(
        "ask",
        [
          router("plan"),
          executor(
            "asker",
            `${tell("human_input_requested", question)}; echo careful >&2; cat ${gate}; exit 1`,
          ),
          executor("twice", "exit 1", { max_attempts: 2, retry_backoff_ms: 3_600_000 }),
          aggregator("all"),
        ],
        [
          ["plan", "asker"],
          ["plan", "twice"],
          ["asker", "all"],
        ],
      ),
    );
    const [wide, narrow] = [
      { width: 1280, height: 900 },
      { width: 360, height: 740 },
    ];
    const looks: readonly BrowserContextOptions[] = [
      { colorScheme: "light", viewport: wide },
      { colorScheme: "dark", viewport: narrow },
      ...sized([], [{ colorScheme: "dark", viewport: wide } as const]),
      ...sized([], [{ colorScheme: "light", viewport: narrow } as const]),
    ];
    const pages = await Promise.all(looks.map((look) => openPage(browser, url, look)));
    for (const { page } of pages) {
      const people = page.getByRole("region", { name: "Waiting for a person" });
      await people.getByText("Answers: yes, no.").waitFor();
      // What is copied does not answer by itself.
      assert.equal(await people.locator("code").textContent(), `troupe answer ${runId} ship `);
      await people.getByRole("link", { name: "Answer on the run's page at the gateway" }).waitFor();
      await page.locator('[data-state="retrying"]').first().waitFor({ state: "attached" });
      assert.deepEqual(await accessibilityProblems(page), []);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      assert.ok(Number(overflow) <= 0);
    }
    const page = pages[0]!.page;
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.className"), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "main");
    await page.getByRole("button", { name: "List" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "asker" }).focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "feed");
    assert.equal(await page.getByRole("combobox", { name: "Agent" }).inputValue(), "asker");
    // The last that it says for now: rows stay where they are from here on.
    await page.locator("#feed li", { hasText: "careful" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator("#feed li pre", { hasText: '"agent_id": "asker"' }).waitFor();
    await page.keyboard.press("ArrowUp");
    assert.equal(
      await page.evaluate("document.activeElement.nextElementSibling.querySelector('pre') !== null"),
      true,
    );
    await page.keyboard.press("Tab");
    assert.equal(
      await page.evaluate(
        "document.activeElement === document.body || !document.activeElement.closest('#feed')",
      ),
      true,
    );
    await gates.open(gate);
    for (const one of pages) {
      await seeStatus(one.page, "Failed");
      await one.page.locator("#announcer", { hasText: "Failed" }).waitFor({ state: "attached" });
      assert.deepEqual(await accessibilityProblems(one.page), []);
      assert.deepEqual(one.complaints, []);
      await one.page.context().close();
    }
  });

  test("keeps agents that work in sight, is made larger, smaller and fitted, and colours the shares of a group by their states", async () => {
    const gate = gates.pipe("far");
    const steps = Array.from({ length: 30 }, (_, i) => router(`step-${i}`));
    const crowd = Array.from({ length: 50 }, (_, i) => executor(`crowd-${i}`, `cat ${gate}; exit 1`));
    const ways = [
      ...steps.slice(1).map(({ node_id }, i) => [`step-${i}`, String(node_id)] as const),
      ...crowd.map(({ node_id }) => ["step-29", String(node_id)] as const),
    ];
    const jobId = await createJob(program, graph("far", [...steps, ...crowd], ways));
    const runId = await startRun(program, jobId);
    const { page, complaints } = await openTab(browser, gatewayPage(program, runId));
    const sizes = async () =>
      (await page.evaluate(`(() => {
        const frame = document.querySelector("#graph").getBoundingClientRect();
        const active = document.querySelector('.box[data-state="running"]')?.getBoundingClientRect();
        const width = document.querySelector("#graph svg")?.getBoundingClientRect().width ?? 0;
        return { frame: frame.width, width, inSight: active?.left >= frame.left && active.right <= frame.right };
      })()`)) as { frame: number; width: number; inSight: boolean };
    await until("the agents that work are in sight", async () => (await sizes()).inSight);
    const before = await sizes();
    assert.ok(before.width > before.frame, "the graph is wider than its frame");
    await page.getByRole("button", { name: "Larger" }).click();
    assert.ok((await sizes()).width > before.width);
    await page.getByRole("button", { name: "Fit" }).click();
    assert.ok((await sizes()).width <= before.frame);
    await gates.open(gate);
    await seeStatus(page, "Failed");
    const fills = (await page.evaluate(
      `Object.fromEntries([...document.querySelectorAll('.box[data-state="failed"] .share rect')].map((rect) => [
        rect.dataset.state,
        getComputedStyle(rect).fill,
      ]))`,
    )) as Readonly<Record<string, string>>;
    assert.ok(fills.cancelled !== undefined && fills.failed !== undefined);
    assert.notEqual(fills.cancelled, fills.failed);
    assert.deepEqual(complaints, []);
  });

  test("draws a graph of 500 agents in a few boxes, and lists those of most interest", async () => {
    const workers = Array.from({ length: 500 }, (_, i) => router(`w${i}`));
    const edges = workers.map(({ node_id }) => ["in", String(node_id)] as const);
    const jobId = await createJob(program, graph("many", [router("in"), ...workers], edges));
    const { run } = await ended(program, await startRun(program, jobId));
    const { page } = await openTab(browser, gatewayPage(program, String(run.run_id)));
    await seeStatus(page, "Completed");
    await page.locator(".box.many", { hasText: "w… × 500" }).waitFor();
    assert.equal(await page.locator(".box").count(), 2);
    await page.getByRole("button", { name: "List" }).click();
    assert.equal(await page.locator("#list tbody tr").count(), 200);
  });
});

test("a person answers on the gateway's page: with a decision of those allowed, or in words of their own", {
  skip: noChromium,
}, async () => {
  const asks = (request: JsonObject) =>
    `printf '%s\\n' '${JSON.stringify({ type: "human_input_requested", payload: request })}' > "$SVC_EVENT_STREAM"; until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.05; done; cat "$SVC_HUMAN_RESPONSES" > "$SVC_OUTPUT_DIR/answer.json"`;
  const jobId = await createJob(
    program,
    graph(
      "answers",
      [
        executor(
          "chooser",
          asks({ request_id: "ship", prompt: "Ship it?", allowed_decisions: ["yes", "no"] }),
        ),
        executor("teller", asks({ request_id: "name", prompt: "Which name?" })),
      ],
      [],
      { entrypoints: ["chooser", "teller"] },
    ),
  );
  const runId = await startRun(program, jobId);
  const { page, complaints } = await openTab(browser, gatewayPage(program, runId));
  const question = (prompt: string) => page.locator("#people-list > li", { hasText: prompt });
  await question("Ship it?").getByRole("button", { name: "no" }).waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);
  await question("Ship it?").getByLabel("Comment").fill("not on a Friday");
  await question("Ship it?").getByRole("button", { name: "no" }).click();
  await question("Which name?").getByLabel("Answer").fill("Bee");
  await question("Which name?").getByRole("button", { name: "Answer" }).click();
  await seeStatus(page, "Completed");
  await page.locator("#people").waitFor({ state: "hidden" });
  const requests = await walk(program, `/runs/${runId}/human`);
  const answers = requests.map(({ request_id, response }) => {
    const { decision, comment } = response as JsonObject;
    return [request_id, decision, comment];
  });
  assert.deepEqual(answers.toSorted(), [
    ["name", "Bee", null],
    ["ship", "no", "not on a Friday"],
  ]);
  assert.deepEqual(complaints, []);
});

test("with a token, the holder of a run's key keeps its page and its files when the run has ended, and reads nothing else", {
  skip: noChromium,
}, async () => {
  const token = "a-token-of-thirty-two-characters";
  const gate = gates.pipe("keyed");
  const env = { ...(await dashboardPorts()), SVC_API_TOKEN: token };
  await using keyed = await startGatewayHere({ env });
  const headers = { authorization: `Bearer ${token}` };
  const zip = await zipOf({
    "manifest.json": graph(
      "keyed",
      [executor("writer", `echo kept > "$SVC_OUTPUT_DIR/file.txt"; cat ${gate}`)],
      [],
      {
        outputs: [{ path: "file.txt", title: "The file", primary: true }],
      },
    ),
    "config/default.json": { web_ui: { enabled: true } },
  });
  const post = async (path: string, body: JsonObject) =>
    (await ask(keyed, "POST", path, { body, headers })).body;
  const { bundle_id } = (await sendBundle(keyed, zip, { headers })).body;
  const { job_id } = await post("/jobs", { bundle_id: String(bundle_id) });
  const runId = String((await post(`/jobs/${job_id}/runs`, {})).run_id);
  const url = await until("the dashboard can be reached", async () => {
    const query = `/services?run_id=${runId}&status=passing`;
    const [service] = (await ask(keyed, "GET", query, { headers })).body.items as readonly JsonObject[];
    return service === undefined ? null : String(service.public_url);
  });
  assert.match(url, /\?key=trt_/);
  const untouched = await openPage(browser, url);
  const touched = await openPage(browser, url);
  for (const { page } of [untouched, touched]) await seeStatus(page, "Running");
  await touched.page.getByRole("button", { name: "List" }).click();
  await gates.open(gate);
  await untouched.page.waitForURL(gatewayPage(keyed, runId));
  const more = touched.page.getByRole("link", { name: "Open the run's page at the gateway" });
  await more.click();
  await touched.page.waitForURL(gatewayPage(keyed, runId));
  for (const { page } of [untouched, touched]) {
    await page.reload();
    await seeStatus(page, "Completed");
    await seeOutputs(page, ["The file"]);
    assert.equal((await save(page, "The file")).toString(), "kept\n");
    const others = await page.evaluate(async () =>
      Promise.all(["/api/v1/runs", "/api/v1/jobs"].map(async (path) => (await fetch(path)).status)),
    );
    assert.deepEqual(others, [401, 401]);
    await page.context().close();
  }
});

test("pages go on by themselves after the program was killed and started again: no event is missing, none is there twice", {
  skip: noChromium,
}, async () => {
  const home = await temporaryHome();
  const gate = gates.pipe("killed");
  // It comes back at the same address, which nobody else may be given meanwhile.
  const env = { ...(await dashboardPorts()), SVC_API_PORT: String(await freePorts(1)) };
  await using first = await startGateway({ env, home });
  const { runId, url } = await runWithDashboard(
    first,
    graph("killed", [executor("early", "echo one"), executor("held", `cat ${gate}`)], [["early", "held"]]),
  );
  await happens(first, runId, ({ type, agent_id }) => type === "sandbox_job_started" && agent_id === "held");
  const pages = await Promise.all([url, gatewayPage(first, runId)].map((one) => openTab(browser, one)));
  for (const { page } of pages) await page.locator("#connection", { hasText: /^Live$/ }).waitFor();
  await first.kill();
  for (const { page } of pages) await page.locator("#connection", { hasText: "Reconnecting" }).waitFor();
  const second = await startGatewayHere({ env, home });
  try {
    for (const { page } of pages) await page.locator("#connection", { hasText: /^Live$/ }).waitFor();
    // Not into the hands of the first attempt, which may be on its way out.
    let attempts = 0;
    await happens(
      second,
      runId,
      ({ type, agent_id }) => type === "sandbox_job_started" && agent_id === "held" && ++attempts === 2,
    );
    await gates.open(gate);
    for (const { page } of pages) await seeStatus(page, "Completed");
    // Nobody has touched the page of the run's own server: it goes on to the gateway's, which can be loaded again.
    for (const { page } of pages) await page.waitForURL(gatewayPage(second, runId));
    const { events } = await ended(second, runId);
    for (const { page } of pages) {
      await page.getByRole("combobox", { name: "Level" }).selectOption("0");
      await page.locator("#feed li", { hasText: "The run completed" }).waitFor();
      const types = await page
        .locator("#feed > li")
        .evaluateAll((rows) => rows.map((row) => row.querySelector(".type")?.textContent ?? "log"));
      assert.deepEqual(
        types,
        events.map(({ type }) => type),
      );
    }
    assert.equal((await call(second, "GET", `/runs/${runId}`)).status, "completed");
  } finally {
    await second.stop();
    await rm(home, { recursive: true, force: true });
  }
});
