// What a run came to, its files, and what its job shows of it, over a real socket.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { problemIn } from "../../../test/support/api.ts";
import { failed, startGateway, succeeded, type TestGateway } from "../../../test/support/gateway.ts";
import { aggregator, executor, graph, router } from "../../../test/support/graphs.ts";

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_page_token: string | null;
}

interface ArtifactEntry {
  readonly artifact_id: string;
  readonly name: string;
  readonly url: string;
  readonly size: number;
  readonly sha256: string;
}

interface Progress {
  readonly run_id: string | null;
  readonly status: string | null;
  readonly progress: {
    readonly percent: number;
    readonly done: number;
    readonly total: number;
    readonly label: string;
  };
  readonly steps: readonly {
    readonly step_id: string;
    readonly state: string;
    readonly failure: object | null;
  }[];
  readonly agents: readonly {
    readonly agent_id: string;
    readonly state: string;
    readonly attempt: number | null;
  }[];
  readonly failure: { readonly code: string } | null;
}

const NODES = [router("in"), executor("work", ["true"]), aggregator("out")];
const EDGES = [
  ["in", "work"],
  ["work", "out"],
] as const;
const manifest = graph("g", NODES, EDGES);
const tolerant = graph("g", NODES, EDGES, {
  initial_inputs: { in: [{ n: 1 }, { n: 2 }, { n: 3 }] },
  policies: { failure_policy: "continue" },
});

async function launchedRun(gateway: TestGateway, of = manifest) {
  const run = await gateway.createRun(await gateway.createJob(of));
  await gateway.launch(run);
  return run;
}

/** A run of three messages of which two fail. */
async function partialRun(gateway: TestGateway) {
  const run = await launchedRun(gateway, tolerant);
  for (const [i, outcome] of [failed, succeeded(), failed].entries()) {
    gateway.engine.taskEnded((await gateway.started("work", i + 1)).ref, outcome);
  }
  return await gateway.ended(run.runId);
}

async function walk<Item>(gateway: TestGateway, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let token: string | null = ""; token !== null; ) {
    const next: string = token === "" ? path : `${path}&page_token=${encodeURIComponent(token)}`;
    const page: Page<Item> = await gateway.json<Page<Item>>(next);
    items.push(...page.items);
    token = page.next_page_token;
  }
  return items;
}

describe("GET /runs/{run_id}/result", () => {
  test("of a completed run has its result; of one that goes on, its status and nothing yet", async () => {
    await using gateway = await startGateway();
    const { runId } = await launchedRun(gateway);
    const open = { run_id: runId, status: "running", result: null, failure: null, finished_at: null };
    assert.deepEqual(await gateway.json(`/runs/${runId}/result`), open);
    gateway.engine.taskEnded((await gateway.started("work")).ref, succeeded());
    const { finishedAtMs } = await gateway.ended(runId);
    const { result, ...rest } = await gateway.json<{ result: { count: number } }>(`/runs/${runId}/result`);
    assert.equal(result.count, 1);
    const finished = new Date(finishedAtMs ?? 0).toISOString();
    assert.deepEqual(rest, { run_id: runId, status: "completed", failure: null, finished_at: finished });
  });

  test("tells of a failure, of a run that ended before its launch, and of one that is complete only in part", async () => {
    await using gateway = await startGateway();
    const { runId } = await launchedRun(gateway);
    gateway.engine.taskEnded((await gateway.started("work")).ref, failed);
    await gateway.ended(runId);
    const ofFailed = await gateway.json<{ status: string; failure: { code: string } }>(
      `/runs/${runId}/result`,
    );
    assert.deepEqual([ofFailed.status, ofFailed.failure.code], ["failed", "executor.exit_nonzero"]);

    const waiting = await gateway.createRun(await gateway.createJob(manifest));
    await gateway.ends.cancelled(waiting.runId);
    const ofCancelled = await gateway.json<{ status: string }>(`/runs/${waiting.runId}/result`);
    assert.equal(ofCancelled.status, "cancelled");
    await problemIn(await gateway.get("/runs/run_none/result"), 404, "run_not_found");
  });

  test("says partial of a run that completed although messages failed", async () => {
    await using gateway = await startGateway();
    const { runId } = await partialRun(gateway);
    const { status, partial } = await gateway.json<{ status: string; partial: boolean }>(
      `/runs/${runId}/result`,
    );
    assert.deepEqual([status, partial], ["completed", true]);
  });
});

describe("artifacts and outputs", () => {
  const bytes = randomBytes(5_000);

  async function runWithFiles(gateway: TestGateway) {
    const { runId } = await launchedRun(gateway);
    const { ref } = await gateway.started("work");
    gateway.engine.taskEnded(
      ref,
      succeeded([
        await gateway.artifact("notes/ä.txt", bytes),
        await gateway.artifact("first.md", Buffer.from("# 1"), { kind: "output", title: "First" }),
        await gateway.artifact("main.html", Buffer.from("<p>"), { kind: "output", primary: true }),
      ]),
    );
    await gateway.ended(runId);
    return runId;
  }

  test("artifacts are all files in pages, outputs only what the run was for, primary first", async () => {
    await using gateway = await startGateway();
    const runId = await runWithFiles(gateway);
    const names = async (list: string) =>
      (await walk<ArtifactEntry>(gateway, `/runs/${runId}/${list}page_size=1`)).map((entry) => entry.name);
    assert.deepEqual(await names("artifacts?evidence=false&"), ["notes/ä.txt", "first.md", "main.html"]);
    assert.deepEqual(await names("outputs?"), ["main.html", "first.md"]);
    const [entry] = (await gateway.json<Page<object>>(`/runs/${runId}/outputs`)).items;
    assert.deepEqual(Object.keys(entry ?? {}), [
      "artifact_id",
      "name",
      "kind",
      "size",
      "sha256",
      "content_type",
      "url",
      "created_at",
      "producer",
      "title",
      "primary",
    ]);
  });

  test("an artifact's url serves its bytes under its own name, whole and in part, to GET and HEAD", async () => {
    await using gateway = await startGateway();
    const runId = await runWithFiles(gateway);
    const [entry] = (await gateway.json<Page<ArtifactEntry>>(`/runs/${runId}/artifacts?evidence=false`))
      .items;
    assert.ok(entry);
    assert.ok(entry.url.startsWith("/api/v1/"));
    const url = new URL(entry.url, gateway.url);
    const whole = await fetch(url);
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), bytes);
    assert.equal(whole.headers.get("etag"), `"${entry.sha256}"`);
    assert.equal(
      whole.headers.get("content-disposition"),
      "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%A4.txt",
    );
    const part = await fetch(url, { headers: { range: "bytes=10-19" } });
    assert.equal(part.status, 206);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(10, 20));
    const head = await fetch(url, { method: "HEAD" });
    assert.equal(head.headers.get("content-length"), String(entry.size));
    const known = await fetch(url, { headers: { "if-none-match": `"${entry.sha256}"` } });
    assert.equal(known.status, 304);
  });

  test("an artifact of another run, or none, is not found, and its id reaches no path", async () => {
    await using gateway = await startGateway();
    const runId = await runWithFiles(gateway);
    const other = await launchedRun(gateway);
    const [entry] = (await gateway.json<Page<ArtifactEntry>>(`/runs/${runId}/artifacts?evidence=false`))
      .items;
    const paths = [
      `/runs/${other.runId}/artifacts/${entry?.artifact_id}`,
      `/runs/${runId}/artifacts/art_none`,
      `/runs/${runId}/artifacts/..%2F..%2Fdb.sqlite`,
      `/runs/${runId}/artifacts/${entry?.sha256}`,
    ];
    for (const path of paths) await problemIn(await gateway.get(path), 404, "artifact_not_found");
    await problemIn(await gateway.get("/runs/run_none/artifacts/a"), 404, "run_not_found");
  });
});

describe("what a job shows of its runs", () => {
  test("events and dead letters are the latest run's, or another's that is asked for", async () => {
    await using gateway = await startGateway();
    const first = await partialRun(gateway);
    const { jobId } = first;
    const second = await gateway.createRun(jobId);
    assert.deepEqual(await gateway.json(`/jobs/${jobId}/events`), { items: [], next_page_token: null });
    assert.deepEqual(await gateway.json(`/jobs/${jobId}/dead-letters`), { items: [], next_page_token: null });
    const events = await walk<{ id: number }>(
      gateway,
      `/jobs/${jobId}/events?run_id=${first.runId}&page_size=20`,
    );
    assert.equal(events.length, first.progress.eventCount);
    await gateway.launch(second);
    const [event] = (await gateway.json<Page<{ run_id: string }>>(`/jobs/${jobId}/events`)).items;
    assert.equal(event?.run_id, second.runId);
    const foreign = await launchedRun(gateway);
    for (const path of ["events", "dead-letters", "workflow-progress"]) {
      const answer = await gateway.get(`/jobs/${jobId}/${path}?run_id=${foreign.runId}`);
      await problemIn(answer, 404, "run_not_found");
      await problemIn(await gateway.get(`/jobs/job_none/${path}`), 404, "job_not_found");
    }
  });

  test("pages that were begun stay with their run, though a newer one has started", async () => {
    await using gateway = await startGateway();
    const { jobId, runId, progress } = await partialRun(gateway);
    const seen: { id: number; run_id: string }[] = [];
    let token: string | null = "";
    while (token !== null) {
      const given: string = token === "" ? "" : `&page_token=${encodeURIComponent(token)}`;
      const page: Page<(typeof seen)[0]> = await gateway.json(`/jobs/${jobId}/events?page_size=10${given}`);
      seen.push(...page.items);
      token = page.next_page_token;
      if (seen.length === 10) await gateway.launch(await gateway.createRun(jobId));
    }
    assert.equal(seen.length, progress.eventCount);
    assert.ok(seen.every((event, i) => event.run_id === runId && event.id === i + 1));
  });

  test("a dead letter shows the whole message under public ids, newest first", async () => {
    await using gateway = await startGateway();
    const { jobId, runId } = await partialRun(gateway);
    const letters = await walk<{
      message: { type: string; from: string; to: string; job_id: string; body: { n: number } };
    }>(gateway, `/jobs/${jobId}/dead-letters?page_size=1`);
    assert.deepEqual(
      letters.map(({ message }) => message.body.n),
      [3, 1],
    );
    const { message, ...letter } = letters[0] ?? assert.fail();
    assert.deepEqual([message.type, message.from, message.to, message.job_id], ["init", "in", "work", jobId]);
    const { dead_letter_id: id, created_at: at, ...rest } = letter as typeof letter & Record<string, unknown>;
    assert.match(String(id), /^dl_/);
    assert.ok(Date.parse(String(at)) > 0);
    const expected = {
      run_id: runId,
      agent_id: "work",
      reason: "processing_failed",
      attempts: 1,
      status: "open",
      retried_at: null,
      change: null,
    };
    assert.deepEqual(rest, expected);
    assert.doesNotMatch(JSON.stringify(letters), /secret-/);
  });

  test("workflow-progress follows a run from before it exists to its end", async () => {
    await using gateway = await startGateway();
    const jobId = await gateway.createJob(manifest);
    const path = `/jobs/${jobId}/workflow-progress`;
    const look = async () => {
      const { run_id: runId, status, progress, steps } = await gateway.json<Progress>(path);
      return { runId, status, percent: progress.percent, states: steps.map((step) => step.state) };
    };
    const pending = ["pending", "pending", "pending"];
    assert.deepEqual(await look(), { runId: null, status: null, percent: 0, states: pending });
    const run = await gateway.createRun(jobId);
    const { runId } = run;
    assert.deepEqual(await look(), { runId, status: "pending", percent: 0, states: pending });
    await gateway.launch(run);
    const { ref } = await gateway.started("work");
    const running = await gateway.json<Progress>(path);
    assert.equal(running.status, "running");
    assert.deepEqual(
      running.agents.map((agent) => [agent.agent_id, agent.state, agent.attempt]),
      [
        ["in", "ready", null],
        ["work", "running", 1],
        ["out", "pending", null],
      ],
    );
    gateway.engine.taskEnded(ref, succeeded());
    await gateway.ended(runId);
    assert.deepEqual(await look(), {
      runId,
      status: "completed",
      percent: 100,
      states: ["done", "done", "done"],
    });
  });

  test("workflow-progress shows a failure at the top, and at the node that failed", async () => {
    await using gateway = await startGateway();
    const { jobId, runId } = await launchedRun(gateway);
    gateway.engine.taskEnded((await gateway.started("work")).ref, failed);
    await gateway.ended(runId);
    const { failure, steps } = await gateway.json<Progress>(`/jobs/${jobId}/workflow-progress`);
    assert.equal(failure?.code, "executor.exit_nonzero");
    assert.deepEqual(
      steps.map((step) => [step.step_id, step.state, step.failure !== null]),
      [
        ["in", "done", false],
        ["work", "failed", true],
        ["out", "skipped", false],
      ],
    );
  });
});
