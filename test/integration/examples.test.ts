// The shipped examples, and the bundle that docs/workers.md begins with, run for real: by the real program, with
// real Python, shell and Node workers. One program serves all of them.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { JsonObject } from "../../src/engine/json.ts";
import { parseManifest } from "../../src/engine/manifest.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { type Program, startProgram } from "../support/program.ts";
import {
  artifactsOf,
  bytesOf,
  call,
  follow,
  historyOf,
  type JobDetail,
  jobDetail,
  type SeenEvent,
  submitFolder,
} from "../support/runtime-api.ts";
import { until as comesTrue } from "../support/until.ts";

const examples = fileURLToPath(new URL("../../examples", import.meta.url));
const docs = fileURLToPath(new URL("../../docs", import.meta.url));
const SLOTS = 4;
/** Ends a test that would hang; none asserts on time. */
const limit = { timeout: 200_000 };

let program: Program;
before(async () => {
  program = await startRuntimeHere({ env: { SVC_EXECUTOR_POOL_CAPACITIES: `default=${SLOTS}` } });
});
after(() => program.stop());

describe("document-digest", () => {
  let run: { readonly job: JobDetail["job"]; readonly events: readonly SeenEvent[] };
  before(async () => {
    const jobId = await submitFolder(program, join(examples, "document-digest"));
    const events = await historyOf(program, jobId);
    run = { job: (await jobDetail(program, jobId)).job, events };
  }, limit);

  it(
    "digests every document and leaves a report with each title as a page and as Markdown",
    limit,
    async () => {
      const titles = await documentTitles();
      const { job, events } = run;
      assertWholeHistory(events, "job_completed");
      assert.equal(job.status, "completed");
      assert.equal(job.result?.documents, titles.length);
      assert.deepEqual(job.result?.report, ["report.html", "report.md"]);

      const files = await checkedFiles(job.run_id);
      assert.deepEqual([...files.keys()].sort(), ["report.html", "report.md"]);
      const html = files.get("report.html") ?? "";
      const markdown = files.get("report.md") ?? "";
      for (const title of titles) {
        assert.ok(markdown.includes(`## ${title}\n`), `report.md has no "${title}"`);
        assert.ok(html.includes(`<h2>${escapeHtml(title)}</h2>`), `report.html has no "${title}"`);
      }
      assert.ok(!/(?:src|href)="(?!#)/.test(html), "the page loads nothing from elsewhere");
    },
  );

  it("shows the readers' progress and counts while they run", limit, () => {
    const { job, events } = run;
    const counted = events
      .filter((event) => event.type === "metric")
      .map((event) => Number(event.payload.value));
    assert.equal(counted.length, job.result?.documents);
    assert.equal(sum(counted), job.result?.words);
    for (const reader of ["reader-1", "reader-2", "reader-3", "reader-4"]) {
      const steps = events.filter((event) => event.type === "progress" && event.agent_id === reader);
      assert.ok(steps.length > 0, `${reader} has reported nothing`);
      assert.equal(steps.at(-1)?.payload.percent, 100);
    }
  });

  it(
    "reads only the documents that the input names, and the same ones give the same report",
    limit,
    async () => {
      const inputs = { documents: ["06-time-limits.md", "04-safe-to-repeat.md"] };
      const reports: string[] = [];
      for (let round = 0; round < 2; round++) {
        const jobId = await submitFolder(program, join(examples, "document-digest"), { inputs });
        await historyOf(program, jobId);
        const { job } = await jobDetail(program, jobId);
        assert.equal(job.result?.documents, 2);
        reports.push((await checkedFiles(job.run_id)).get("report.html") ?? "");
      }
      assert.ok(reports[0]?.includes("Time limits") && !reports[0].includes("Fan out"));
      assert.equal(reports[0], reports[1]);
    },
  );

  it("says which documents there are when the input names one that is not there", limit, async () => {
    const jobId = await submitFolder(program, join(examples, "document-digest"), {
      inputs: { documents: ["nothing.md"] },
    });
    const events = await historyOf(program, jobId);
    assertWholeHistory(events, "job_failed");
    const failure = events.at(-1)?.error as unknown as { details: { stderr_tail: string } };
    assert.match(failure.details.stderr_tail, /nothing\.md.*01-what-durable-means\.md/);
  });
});

describe("prime-sweep", () => {
  it("finds the known number of primes with 40 shell and Node workers, four at a time", limit, async () => {
    const jobId = await submitFolder(program, join(examples, "prime-sweep"));
    const events = await historyOf(program, jobId);
    assertWholeHistory(events, "job_completed");
    const { result } = (await jobDetail(program, jobId)).job;
    assert.equal(result?.primes, 78_498);
    assert.equal(result?.largest_prime, 999_983);
    assert.equal(result?.shards, 40);
    assert.deepEqual(Object.keys(result?.primes_by_worker as JsonObject).sort(), ["node", "shell"]);
    assert.equal(sum(Object.values(result?.primes_by_worker as Record<string, number>)), 78_498);

    let leases = 0;
    let leasesPeak = 0;
    for (const { type } of events) {
      if (type === "executor_lease_acquired") leasesPeak = Math.max(leasesPeak, ++leases);
      else if (type === "executor_lease_released") leases--;
    }
    assert.equal(events.filter(({ type }) => type === "executor_lease_acquired").length, 40);
    assert.equal(leases, 0);
    assert.equal(leasesPeak, SLOTS);
  });

  it("takes another limit as its input", limit, async () => {
    const jobId = await submitFolder(program, join(examples, "prime-sweep"), { inputs: { limit: 1_000 } });
    await historyOf(program, jobId);
    const { result } = (await jobDetail(program, jobId)).job;
    assert.equal(result?.primes, 168);
    assert.equal(result?.largest_prime, 997);
  });

  it("has a manifest that is what its script writes", limit, async () => {
    await using folder = await temporaryFolder();
    const shipped = join(examples, "prime-sweep");
    await cp(join(shipped, "make-manifest.mjs"), join(folder.path, "make-manifest.mjs"));
    await promisify(execFile)(process.execPath, [join(folder.path, "make-manifest.mjs")]);
    const [written, kept] = await Promise.all(
      [folder.path, shipped].map((path) => readFile(join(path, "manifest.json"), "utf8")),
    );
    assert.equal(written, kept);
  });
});

describe("ticker", () => {
  const fast = { config: { ticker: { interval_ms: 20 } } };

  it("ticks, hears the bell that is rung from outside, and is gone when it is cancelled", limit, async () => {
    const jobId = await submitFolder(program, join(examples, "ticker"), fast);
    const events = follow(program, jobId);
    for (let ticks = 0; ticks < 3; ) if (isReceived(await next(events), "latest", "tick")) ticks++;

    await call(program, "POST", `/jobs/${jobId}/messages`, { agent_id: "bell", body: { interval_ms: 25 } });
    assert.equal((await until(events, (event) => event.type === "sensor_observed")).agent_id, "bell");
    // The bell reaches the clock on its stdin, and the clock's answer the aggregator.
    await until(events, (event) => isReceived(event, "latest", "pace"));
    if (canSeeProcesses) assert.equal((await processesOf(jobId)).length, 1);

    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await until(events, (event) => event.type === "job_cancelled");
    assert.equal((await events.next()).done, true);
    assert.equal((await jobDetail(program, jobId)).job.status, "cancelled");
    if (canSeeProcesses) await comesTrue("it is gone", async () => (await processesOf(jobId)).length === 0);
  });

  it("hears the first message, which was sent before it was started", limit, async () => {
    const inputs = { interval_ms: 30 };
    const jobId = await submitFolder(program, join(examples, "ticker"), { inputs });
    const events = follow(program, jobId);
    await until(events, (event) => isReceived(event, "latest", "pace"));
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await until(events, (event) => event.type === "job_cancelled");
  });

  it("counts on from its last tick after the runtime was killed and started again", limit, async () => {
    await using home = await temporaryFolder();
    await using first = await startProgram({ home: home.path });
    const jobId = await submitFolder(first, join(examples, "ticker"), fast);
    const ticking = follow(first, jobId);
    for (let ticks = 0; ticks < 10; ) if (isReceived(await next(ticking), "latest", "tick")) ticks++;
    const before = await ticksOf(first, jobId);
    await first.kill();

    await using second = await startRuntimeHere({ home: home.path });
    await until(follow(second, jobId), (event) => event.type === "job_recovered");
    // What the killed runtime has still written down between our look and its end is in this; what is more is new.
    const kept = await ticksOf(second, jobId);
    assert.ok(kept >= before, `${kept} ticks after ${before}`);
    await comesTrue("it ticks on", async () => (await ticksOf(second, jobId)) > kept);
    const { agents } = await jobDetail(second, jobId);
    const received = agents.find((agent) => agent.agent_id === "latest")?.current_state.received;
    assert.ok(Number(received) <= ticksIn(agents), `${received} ticks were received: it has begun again`);
    if (canSeeProcesses) assert.equal((await processesOf(jobId)).length, 1);
    await second.stop();
    if (canSeeProcesses) assert.equal((await processesOf(jobId)).length, 0);
  });
});

describe("release-form", () => {
  it("asks with a form, and takes an answer that fits", limit, async () => {
    const jobId = await submitFolder(program, join(examples, "release-form"));
    const events = follow(program, jobId);
    const { run_id: runId } = (await jobDetail(program, jobId)).job;
    await until(events, (event) => event.type === "human_input_requested");
    const answer = (data: JsonObject) =>
      call(program, "POST", `/runs/${runId}/human/release/response`, { decision: "to testers", data });
    await assert.rejects(answer({ version: 0 }), /version/);
    await answer({ version: 3, announce: true });
    await until(events, (event) => event.type === "job_completed");
    const { outputs } = (await jobDetail(program, jobId)).job.result ?? {};
    const { release } = outputs as { readonly release: JsonObject };
    assert.deepEqual(release.result, { released: "to testers", version: 3, announce: true });
  });
});

describe("the documentation", () => {
  it("begins with a bundle that runs as it stands there", limit, async () => {
    await using folder = await temporaryFolder();
    const text = await readFile(join(docs, "workers.md"), "utf8");
    const files = ["manifest.json", "payloads/count.py", "payloads/count.sh", "payloads/count.mjs"];
    for (const file of files) {
      const path = join(folder.path, file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, blockAfter(text, `\`${file}\`\n`));
    }
    const jobId = await submitFolder(program, folder.path);
    assertWholeHistory(await historyOf(program, jobId), "job_completed");
    const { result } = (await jobDetail(program, jobId)).job;
    const answers = result?.messages as unknown as readonly { agent_id: string; result: JsonObject }[];
    assert.deepEqual(answers.map((answer) => answer.agent_id).sort(), ["node", "python", "shell"]);
    for (const answer of answers) assert.deepEqual(answer.result, { words: 4 });
  });

  it("shows no manifest that would be refused", limit, async () => {
    let manifests = 0;
    for (const page of ["../README.md", "manifest.md", "workers.md"]) {
      const text = await readFile(join(docs, page), "utf8");
      for (const [, block = ""] of text.matchAll(/```json\n(.*?)```/gs)) {
        const value = JSON.parse(block) as JsonObject;
        const manifest = Object.hasOwn(value, "node_id") ? manifestOf(value) : value;
        if (!Object.hasOwn(manifest, "nodes")) continue;
        manifests++;
        assert.deepEqual(problemsOf(manifest), [], block);
      }
    }
    assert.ok(manifests >= 8);
  });
});

function problemsOf(manifest: JsonObject): readonly unknown[] {
  const parsed = parseManifest(manifest);
  return parsed.kind === "valid" ? [] : parsed.problems;
}

function manifestOf(node: JsonObject): JsonObject {
  return { manifest_version: "1.0", graph_id: "docs", entrypoints: [node.node_id ?? null], nodes: [node] };
}

/** The code block that follows a text. */
function blockAfter(text: string, mark: string): string {
  const block = /```\w*\n(.*?)```/s.exec(text.slice(text.indexOf(mark) + mark.length));
  assert.ok(text.includes(mark) && block?.[1] !== undefined, `no block after ${mark}`);
  return block[1];
}

async function documentTitles(): Promise<string[]> {
  const folder = join(examples, "document-digest/payloads/documents");
  const names = (await readdir(folder)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts.map((text) => text.slice("# ".length, text.indexOf("\n")));
}

/** The run's files by name, each compared with the size and hash that the API tells. */
async function checkedFiles(runId: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const artifact of await artifactsOf(program, runId)) {
    if (artifact.kind !== "output") continue;
    const bytes = await bytesOf(program, artifact.url);
    assert.equal(bytes.length, artifact.size);
    assert.equal(createHash("sha256").update(bytes).digest("hex"), artifact.sha256);
    files.set(artifact.name, bytes.toString("utf8"));
  }
  return files;
}

/** No number is missing or repeated, and the terminal event is the last one. */
function assertWholeHistory(events: readonly SeenEvent[], terminalType: string): void {
  assert.deepEqual(
    events.map((event) => event.id),
    events.map((_, index) => index + 1),
  );
  assert.equal(events.at(-1)?.type, terminalType, JSON.stringify(events.at(-1)));
}

async function next(events: AsyncGenerator<SeenEvent>): Promise<SeenEvent> {
  const step = await events.next();
  assert.ok(step.done !== true, "the stream has ended");
  return step.value;
}

/** Reads on to the first event that fits; the stream can be read further. */
async function until(
  events: AsyncGenerator<SeenEvent>,
  fits: (event: SeenEvent) => boolean,
): Promise<SeenEvent> {
  for (;;) {
    const event = await next(events);
    if (fits(event)) return event;
  }
}

function isReceived(event: SeenEvent, agentId: string, messageType: string): boolean {
  const { type, agent_id, payload } = event;
  return type === "agent_message_received" && agent_id === agentId && payload.type === messageType;
}

async function ticksOf(from: Program, jobId: string): Promise<number> {
  return ticksIn((await jobDetail(from, jobId)).agents);
}

function ticksIn(agents: JobDetail["agents"]): number {
  return Number(agents.find((agent) => agent.agent_id === "clock")?.current_state.ticks);
}

const canSeeProcesses = process.platform === "linux";

/** The processes that carry a job's id in their environment. */
async function processesOf(jobId: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    // A process may end while we look; what has ended (a zombie included) has no environment.
    const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
    if (environment.split("\0").includes(`SVC_JOB_ID=${jobId}`)) found.push(pid);
  }
  return found;
}

async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "troupe-examples-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

/** As Python's html.escape does it. */
function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
