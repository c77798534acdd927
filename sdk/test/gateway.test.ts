// The client and the real program, over real sockets.

import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startGatewayHere } from "../../test/support/in-process.ts";
import { type Program, startProgram, temporaryHome } from "../../test/support/program.ts";
import { operations } from "../src/generated.ts";
import { type RunEvent, TroupeClient, type TroupeProblem } from "../src/index.ts";
import { busyZip, helloZip, waitingZip } from "./bundle.ts";
import { flakyProxy } from "./flaky-proxy.ts";

let program: Program;
let client: TroupeClient;

before(async () => {
  program = await startGatewayHere({ command: "gateway" });
  client = new TroupeClient({ baseUrl: program.url });
});
after(async () => void (await program.stop()));

async function jobOf(zip: Uint8Array<ArrayBuffer>, to = client) {
  const bundle = await to.bundles.upload(zip);
  return to.jobs.create({ bundle_id: bundle.bundle_id });
}

describe("bundles", () => {
  test("are uploaded from bytes, blobs, files and streams, and are the same bundle", async () => {
    const zip = await helloZip();
    const folder = await mkdtemp(join(tmpdir(), "sdk "));
    await writeFile(join(folder, "hello.zip"), zip);
    const sources = [
      zip,
      zip.buffer,
      new Blob([zip]),
      new File([zip], "hello.zip"),
      await openAsBlob(join(folder, "hello.zip")),
      new Blob([zip]).stream(),
      inPieces(zip, 100),
    ];
    const ids = await Promise.all(
      sources.map(async (source) => (await client.bundles.upload(source)).bundle_id),
    );
    await rm(folder, { recursive: true });
    assert.equal(new Set(ids).size, 1);
    const { warnings, ...bundle } = await client.bundles.get(ids[0] ?? "");
    assert.deepEqual(warnings, []);
    assert.equal(bundle.graph_id, "hello");
    const listed = await Array.fromAsync(client.bundles.list());
    assert.deepEqual(
      listed.filter(({ bundle_id }) => bundle_id === bundle.bundle_id),
      [bundle],
    );
  });

  test("are deleted once no job uses them", async () => {
    const { bundle_id } = await client.bundles.upload(await waitingZip());
    const job = await client.jobs.create({ bundle_id });
    await assert.rejects(client.bundles.delete(bundle_id), { code: "bundle_in_use" });
    await client.jobs.delete(job);
    await client.bundles.delete(bundle_id);
    await assert.rejects(client.bundles.get(bundle_id), { code: "bundle_not_found", status: 404 });
  });

  test("that are no bundles are refused with each problem", async () => {
    await assert.rejects(client.bundles.upload(new Blob(["no zip"])), (error: TroupeProblem) => {
      assert.equal(error.code, "validation_failed");
      assert.equal(error.errors[0]?.path, "/bundle");
      assert.notEqual(error.requestId, "");
      return true;
    });
  });
});

test("limits of resources are changed one by one, or all at once", async () => {
  const { totals, limits } = await client.system.resource();
  assert.deepEqual(limits, {});
  const halved = await client.system.changeLimits({ cpu_percent: 50 });
  assert.equal(halved.effective.cpu_cores, totals.cpu_cores / 2);
  assert.deepEqual((await client.system.changeLimits({ disk_percent: 90 })).limits, {
    cpu_percent: 50,
    disk_percent: 90,
  });
  assert.deepEqual((await client.system.setLimits({})).limits, {});
});

describe("schedules", () => {
  test("are changed by those who know their version, and start runs by hand", async () => {
    const { job_id } = await jobOf(await helloZip());
    const cron = { expressions: ["30 7 * * *"], timezone: "Europe/Berlin" };
    const schedule = await client.schedules.create({ job_id, cron });
    const { schedule_id: id } = schedule;
    assert.deepEqual(await Array.fromAsync(client.schedules.list({ job_id })), [
      await client.schedules.get(id).then(({ etag: _, ...record }) => record),
    ]);
    const changed = await client.schedules.update(schedule, { overlap: "allow" });
    assert.equal(changed.overlap, "allow");
    await assert.rejects(client.schedules.delete(schedule), {
      code: "precondition_failed",
      etag: changed.etag,
    });
    assert.equal((await client.schedules.pause(id)).status, "paused");
    const run = await client.runs.wait((await client.schedules.dispatch(id)).run_id);
    assert.deepEqual(run.trigger, { kind: "schedule", id });
    assert.equal((await client.schedules.resume(id)).status, "active");
    await client.schedules.delete(await client.schedules.get(id));
    await assert.rejects(client.schedules.get(id), { code: "schedule_not_found" });
  });
});

describe("asking", () => {
  test("answers with quotes from what a job has published, or says why not", async () => {
    const bundle = await client.bundles.upload(await helloZip());
    const { job_id } = await client.jobs.create({
      bundle_id: bundle.bundle_id,
      resolved_configuration: { extensions: ["svc.response"] },
    });
    const { run_id } = await client.runs.startAndWait(job_id);
    const told = await client.jobs.ask(job_id, { question: "What is the greeting?", run_id });
    const quote = "greeting: hello";
    assert.deepEqual(told, {
      answer: quote,
      answered: true,
      citations: [{ id: `${run_id}:result`, quote }],
      truncated: false,
    });
    await assert.rejects(client.jobs.ask(job_id, { question: "Who?", run_id: "run_none" }), /was not found/);
  });
});

describe("events", () => {
  test("start runs of the schedules that react to them, and are listed", async () => {
    const { job_id } = await jobOf(await helloZip());
    const { schedule_id: id } = await client.schedules.create({ job_id, event: { type: "sdk.test" } });
    const event = await client.events.emit({ type: "sdk.test", payload: [1], event_id: "sdk-1" });
    assert.deepEqual(await client.events.emit({ type: "sdk.test", event_id: "sdk-1" }), event);
    const [match] = event.matched;
    const run = await client.runs.wait(match?.run_id ?? "");
    assert.deepEqual(run.trigger, { kind: "event", id });
    assert.deepEqual(await Array.fromAsync(client.events.list({ type: "sdk.test" })), [event]);
    assert.deepEqual(await client.events.get("sdk-1"), event);
  });
});

describe("jobs", () => {
  test("are changed by those who know their version", async () => {
    const job = await jobOf(await helloZip());
    assert.match(job.etag, /^"1-/);
    const renamed = await client.jobs.update(job, { name: "renamed" });
    assert.equal(renamed.name, "renamed");
    assert.match(renamed.etag, /^"2-/);
    await assert.rejects(client.jobs.update(job, { name: "late" }), {
      code: "precondition_failed",
      etag: renamed.etag,
    });
    await assert.rejects(client.jobs.ask(job.job_id, { question: "Who?" }), { code: "not_found" });
    const read = await client.jobs.get(job.job_id, { view: "full" });
    assert.equal(read.graph?.nodes[0]?.node_id, "worker");
    await client.jobs.update(read, { resolved_configuration: { language: "en" } });
    await assert.rejects(client.jobs.delete(read), { code: "precondition_failed" });
    await client.jobs.delete({ job_id: job.job_id, etag: "*" });
    await assert.rejects(client.jobs.get(job.job_id), { code: "job_not_found" });
  });

  test("are paused, resumed and cancelled with all their runs", async () => {
    const { job_id } = await jobOf(await waitingZip());
    const { run_id } = await client.runs.start(job_id);
    assert.deepEqual((await client.jobs.pause(job_id)).runs, [{ run_id, status: "paused" }]);
    assert.equal((await client.jobs.resume(job_id)).runs[0]?.run_id, run_id);
    await assert.rejects(client.jobs.delete({ job_id, etag: "*" }), { code: "active_runs" });
    assert.deepEqual((await client.jobs.cancel(job_id)).runs, [{ run_id, status: "cancelled" }]);
    await assert.rejects(client.jobs.cancel(job_id), { code: "invalid_transition" });
    await client.jobs.delete({ job_id, etag: "*" }, { force: true });
  });

  test("are walked page by page, each once", async () => {
    const made = new Set<string>();
    const { bundle_id } = await client.bundles.upload(await helloZip());
    for (let i = 0; i < 7; i++) made.add((await client.jobs.create({ bundle_id, name: `job ${i}` })).job_id);
    const seen: string[] = [];
    for await (const { job_id } of client.jobs.list({ page_size: 2 }))
      if (made.has(job_id)) seen.push(job_id);
    assert.deepEqual(seen.toSorted(), [...made].toSorted());
    assert.equal((await Array.fromAsync(client.jobs.list({ limit: 3, page_size: 2 }))).length, 3);
  });
});

describe("runs", () => {
  test("are started and waited for, and everything about them can be read", async () => {
    const { job_id } = await jobOf(await helloZip());
    const run = await client.runs.startAndWait(job_id, { inputs: { topic: "bees" } });
    assert.deepEqual(
      [run.status, run.result, run.inputs],
      ["completed", { greeting: "hello" }, { topic: "bees" }],
    );
    const { run_id } = run;

    const followed = await Array.fromAsync(client.runs.follow(run_id));
    assert.deepEqual(followed, await Array.fromAsync(client.runs.events(run_id, { page_size: 3 })));
    assert.deepEqual(
      followed.map(({ id }) => id),
      followed.map((_, i) => i + 1),
    );
    assert.deepEqual(await Array.fromAsync(client.jobs.events(job_id)), followed);
    const last = followed.length;
    assert.deepEqual(
      await Array.fromAsync(client.runs.follow(run_id, { after: last - 1 })),
      followed.slice(-1),
    );
    assert.deepEqual(await Array.fromAsync(client.runs.follow(run_id, { after: last })), []);

    assert.equal((await client.runs.result(run_id)).status, "completed");
    const logs = await Array.fromAsync(client.runs.logs(run_id, { stream: "stdout" }));
    assert.match(logs.map(({ message }) => message).join("\n"), /working on/);
    const { buckets } = await client.runs.logHistogram(run_id, { stream: "stdout", buckets: 10 });
    assert.equal(
      buckets.map(({ counts }) => counts.info).reduce((a, b) => a + b, 0),
      logs.length,
    );
    assert.ok((await Array.fromAsync(client.runs.timeline(run_id))).length > 0);
    assert.equal((await client.jobs.workflowProgress(job_id)).progress.percent, 100);
    const grid = await client.jobs.grid(job_id, { runs: 1 });
    assert.deepEqual([grid.runs[0]?.run_id, grid.items[0]?.states], [run_id, ["done"]]);
    assert.deepEqual(await Array.fromAsync(client.jobs.deadLetters(job_id)), []);
    assert.deepEqual(
      (await Array.fromAsync(client.jobs.runs(job_id))).map((one) => one.run_id),
      [run_id],
    );
    assert.deepEqual(
      (await Array.fromAsync(client.runs.list({ job_id }))).map((one) => one.run_id),
      [run_id],
    );
    assert.equal((await client.runs.get(run_id)).status, "completed");
  });

  test("are answered with their end when asked to wait, and as accepted when that takes longer", async () => {
    const { job_id } = await jobOf(await helloZip());
    const key = { idempotencyKey: `wait-${job_id}` };
    const run = await client.runs.startAndWait(job_id, {}, key);
    assert.deepEqual([run.status, run.result], ["completed", { greeting: "hello" }]);
    assert.deepEqual(
      await client.runs.start(job_id, {}, { ...key, wait: 60 }),
      run,
      "it waits for the same run",
    );
    assert.equal((await client.runs.start(job_id, {}, key)).status, "pending", "as it was accepted");
  });

  test("are started together, each accepted or rejected on its own", async () => {
    const { job_id } = await jobOf(await helloZip());
    const asked = [{ inputs: { n: 1 } }, { config_overrides: { a: 1 } }, { inputs: { n: 2 } }];
    const items = await client.runs.startBatch(job_id, asked);
    assert.deepEqual(
      items.map(({ status, error }) => [status, error?.code]),
      [
        [202, undefined],
        [422, "validation_failed"],
        [202, undefined],
      ],
    );
    const runs = await Promise.all(
      items.flatMap(({ id }) => (id === undefined ? [] : [client.runs.wait(id)])),
    );
    assert.deepEqual(
      runs.map(({ status, inputs }) => [status, inputs]),
      [
        ["completed", { n: 1 }],
        ["completed", { n: 2 }],
      ],
    );
  });

  test("leave outputs that can be downloaded", async () => {
    const { run_id } = await client.runs.startAndWait((await jobOf(await helloZip())).job_id);
    const [output] = await Array.fromAsync(client.runs.outputs(run_id));
    assert.equal(output?.name, "report.txt");
    assert.equal((await Array.fromAsync(client.runs.artifacts(run_id, { evidence: false }))).length, 1);
    assert.equal(await (await client.runs.download(output)).text(), "hello");
    const gone = { url: output.url.replace(output.artifact_id, "art_none") };
    await assert.rejects(client.runs.download(gone), { code: "artifact_not_found" });
  });

  test("are seen in several channels together", async () => {
    const { run_id } = await client.runs.startAndWait((await jobOf(await helloZip())).job_id);
    const merged = await Array.fromAsync(client.runs.stream(run_id, { channels: ["logs", "timeline"] }));
    assert.ok(merged.some(({ channels }) => channels.logs?.message.includes("working on")));
    assert.ok(merged.some(({ channels }) => channels.timeline !== undefined));
    assert.ok(merged.every(({ channels }) => channels.events === undefined));
  });

  test("are paused, resumed and cancelled; a run that is over is not", async () => {
    const { job_id } = await jobOf(await waitingZip());
    const { run_id } = await client.runs.start(job_id);
    assert.equal((await client.runs.pause(run_id)).status, "paused");
    assert.notEqual((await client.runs.resume(run_id)).status, "paused");
    const waiting = client.runs.wait(run_id);
    assert.equal((await client.runs.cancel(run_id)).status, "cancelled");
    assert.equal((await waiting).status, "cancelled");
    await assert.rejects(client.runs.resume(run_id), { code: "invalid_transition", status: 409 });
  });

  test("a signal ends the waiting and not the run", async () => {
    const { job_id } = await jobOf(await waitingZip());
    const { run_id } = await client.runs.start(job_id);
    const controller = new AbortController();
    const waiting = client.runs.wait(run_id, { signal: controller.signal });
    controller.abort();
    await assert.rejects(waiting, { name: "AbortError" });
    assert.equal((await client.runs.get(run_id)).finished_at, null);
    await client.runs.cancel(run_id);
  });

  test("one key starts one run", async () => {
    const { job_id } = await jobOf(await helloZip());
    const start = () => client.runs.start(job_id, { inputs: { a: 1 } }, { idempotencyKey: "mine" });
    const started = await Promise.all([start(), start(), start()]);
    assert.equal(new Set(started.map(({ run_id }) => run_id)).size, 1);
    await assert.rejects(client.runs.start(job_id, { inputs: { a: 2 } }, { idempotencyKey: "mine" }), {
      code: "idempotency_key_reused",
    });
  });
});

describe("a connection that breaks", () => {
  test("a start whose answer is lost starts one run", async () => {
    const { job_id } = await jobOf(await helloZip());
    await using proxy = await flakyProxy(program.url);
    let cuts = 0;
    // Into the answer's head, and then into its body.
    proxy.cutAfterBytes = () => [1, 600][cuts++] ?? null;
    const broken = new TroupeClient({ baseUrl: proxy.url });
    const { run_id } = await broken.runs.start(job_id);
    assert.equal(proxy.connections, 3);
    const runs = await Array.fromAsync(client.jobs.runs(job_id));
    assert.deepEqual(
      runs.map((run) => run.run_id),
      [run_id],
    );
  });

  test("following a run over many cuts gives exactly its history", async () => {
    const { job_id } = await jobOf(await busyZip(300));
    const { run_id } = await client.runs.start(job_id);
    await using proxy = await flakyProxy(program.url);
    let cuts = 0;
    proxy.cutAfterBytes = () => (cuts++ < 12 ? 1_000 + cuts * 1_777 : null);
    const seen = await Array.fromAsync(new TroupeClient({ baseUrl: proxy.url }).runs.follow(run_id));
    assert.deepEqual(seen, await Array.fromAsync(client.runs.events(run_id, { page_size: 200 })));
    assert.ok(seen.length > 300, `${seen.length} events`);
    assert.ok(proxy.connections > 5, `${proxy.connections} connections`);
  });

  test("following continues when the gateway was killed and has come back", async (t) => {
    const home = await temporaryHome();
    let second: Program | null = null;
    t.after(async () => {
      await second?.stop();
      await rm(home, { recursive: true, force: true, maxRetries: 20 });
    });
    await using first = await startProgram({ args: ["gateway"], home });
    await using proxy = await flakyProxy(first.url);
    const own = new TroupeClient({ baseUrl: proxy.url });
    const { job_id } = await jobOf(await waitingZip(), own);
    const { run_id } = await own.runs.start(job_id);
    const seen: RunEvent[] = [];
    for await (const event of own.runs.follow(run_id)) {
      seen.push(event);
      if (event.type === "job_running" && second === null) {
        await first.kill();
        second = await startGatewayHere({ command: "gateway", home });
        proxy.leadTo(second.url);
        await own.runs.cancel(run_id);
      }
    }
    assert.equal(seen.at(-1)?.type, "job_cancelled");
    assert.deepEqual(seen, await Array.fromAsync(own.runs.events(run_id)));
  });
});

describe("the gateway itself", () => {
  test("reports its health", async () => {
    const health = await client.system.health();
    assert.deepEqual([health.status, health.api_contract], ["ok", "svc.rest.v1"]);
    assert.equal((await client.system.runtimeHealth()).status, "ok");
    assert.ok((await client.system.runtimeStatus()).uptime_seconds >= 0);
    assert.ok((await client.system.doctor()).checks.length > 0);
    assert.ok((await client.system.settings()).some(({ variable }) => variable === "SVC_HOME"));
    assert.ok((await client.system.summary()).nodes.length > 0);
    assert.equal((await Array.fromAsync(client.system.nodes())).length, 1);
    assert.ok((await client.system.metrics()).process);
  });

  test("with a token accepts only requests with it, and reports its health without it", async () => {
    await using guarded = await startGatewayHere({
      command: "gateway",
      env: { SVC_API_TOKEN: "open-sesame" },
    });
    const stranger = new TroupeClient({ baseUrl: guarded.url });
    await assert.rejects(stranger.runs.list().page(), { code: "unauthorized", status: 401 });
    assert.equal((await stranger.system.health()).status, "ok");
    const friend = new TroupeClient({ baseUrl: guarded.url, token: "open-sesame" });
    const { run_id } = await friend.runs.startAndWait((await jobOf(await helloZip(), friend)).job_id);
    const [output] = await Array.fromAsync(friend.runs.outputs(run_id));
    assert.equal(await (await friend.runs.download(output!)).text(), "hello");
  });

  test("has no operation that no method of the client sends", async () => {
    const { readFileSync, globSync } = await import("node:fs");
    const folder = fileURLToPath(new URL("../src/", import.meta.url));
    const text = globSync("*.ts", { cwd: folder })
      .filter((name) => name !== "generated.ts" && !name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(folder, name), "utf8"))
      .join("\n");
    // Artifacts are downloaded by the links that lists of them hold; a run's dashboard is a page for people, and
    // a webhook is for programs that are no clients. Signing in is for browsers, and the OpenAI protocol for its clients.
    const others = [
      "llmChatCompletions",
      "llmCompletions",
      "llmEmbeddings",
      "llmListModels",
      "getRunArtifact",
      "getRunDashboard",
      "receiveWebhook",
      "getSignIn",
      "signIn",
      "signOut",
      "createTicket",
    ];
    const isSent = (id: string) => text.includes(`"${id}"`) || text.includes(`operations.${id},`);
    const missing = Object.keys(operations).filter((id) => !isSent(id) && !others.includes(id));
    assert.deepEqual(missing, []);
  });
});

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
