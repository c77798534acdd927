// Uploads under fire: large ones, torn ones, one that the disk has no room for, one that the program's end cuts off.
// Memory stays flat, and nothing that was not accepted is left behind.

import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Random } from "../simulation/random.ts";
import { bigForm, openUpload, sendAll } from "../support/big-upload.ts";
import { zipOf } from "../support/bundle-files.ts";
import {
  ask,
  call,
  completed,
  createJob,
  happens,
  runtimeApiOf,
  startGateway,
  startRun,
  uploadBundle,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { asSeenBy, onOwnDisk, whyNoMounts } from "../support/mounts.ts";
import { memoryOf, processesWith, seesProcesses } from "../support/processes.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";
import { readStream } from "../support/wire-stream.ts";

const MiB = 1024 * 1024;
/** More than it may take of memory. */
const LARGE_MB = sized(200, 500);
const TORN = sized(10, 50);
const manifest = graph("large", [router("in")]);

/** Names of what lies in the folder for uploads that are not yet taken. */
const incoming = (program: Program) =>
  readdir(asSeenBy(program.pid, join(program.home, "bundles", "incoming")));

/** Names of the snapshots. */
async function kept(program: Program): Promise<readonly string[]> {
  const names = await readdir(asSeenBy(program.pid, join(program.home, "bundles")));
  return names.filter((name) => name !== "incoming");
}

function assertGrowth(program: Program, beforeBytes: number, boundMib: number): void {
  const grown = (memoryOf(program.pid).peakBytes - beforeBytes) / MiB;
  assert.ok(grown <= boundMib, `it took ${grown.toFixed(0)} MiB more, of ${boundMib} allowed`);
}

test(`an upload of ${LARGE_MB} MB takes no more than 150 MB of memory, and leaves nothing but the bundle`, async () => {
  await using program = await startGateway();
  await uploadBundle(program, graph("small", [router("in")]));
  const before = memoryOf(program.pid).nowBytes;
  const { request, answer } = openUpload(program);
  await sendAll(request, bigForm(manifest, LARGE_MB * 1_000_000));
  const { status, text } = await answer;
  assert.equal(status, 201, text);
  assert.ok(Number((JSON.parse(text) as { size: number }).size) >= LARGE_MB * 1_000_000);
  if (seesProcesses) assertGrowth(program, before, 150);
  assert.deepEqual(await incoming(program), []);
  const { run } = await completed(program, await jobOf(program, text));
  assert.equal(run.status, "completed");
});

test("an upload over the limit is answered with 413 and leaves nothing", async () => {
  await using program = await startGatewayHere({ env: { SVC_BUNDLE_MAX_BYTES: String(5 * MiB) } });
  const { request, answer } = openUpload(program);
  await sendAll(request, bigForm(manifest, 20 * MiB));
  const { status, text } = await answer;
  assert.equal(status, 413, text);
  assert.equal((JSON.parse(text) as { code: string }).code, "payload_too_large");
  assert.deepEqual(await incoming(program), []);
  assert.deepEqual(await kept(program), []);
});

test("over the quota of all bundles: 507 in both APIs; a deleted or refused bundle gives its bytes back at once", async () => {
  await using program = await startGatewayHere({ env: { SVC_BUNDLES_MAX_BYTES: String(3 * MiB) } });
  const send = async (sizeBytes: number) => {
    const { request, answer } = openUpload(program);
    await sendAll(request, bigForm(manifest, sizeBytes));
    return answer;
  };
  const first = await send(2 * MiB);
  assert.equal(first.status, 201, first.text);
  const full = await send(MiB);
  assert.equal(full.status, 507, full.text);
  const { code, detail } = JSON.parse(full.text) as { code: string; detail: string };
  assert.equal(code, "insufficient_storage");
  assert.match(detail, /SVC_BUNDLES_MAX_BYTES.*Delete bundles that no job uses, or raise the limit/);
  const form = new FormData();
  form.set("bundle", new Blob([await zipOf({ "manifest.json": manifest, "payloads/a": "x".repeat(MiB) })]));
  const runtime = await fetch(`${(await runtimeApiOf(program)).api}/bundles`, { method: "POST", body: form });
  assert.equal(runtime.status, 507, await runtime.text());
  assert.equal((await kept(program)).length, 1);
  const { bundle_id } = JSON.parse(first.text) as { bundle_id: string };
  const jobId = await jobOf(program, first.text);
  assert.equal((await ask(program, "DELETE", `/bundles/${bundle_id}`)).status, 409);
  assert.equal((await kept(program)).length, 1, "a job has it");
  assert.equal(
    (await ask(program, "DELETE", `/jobs/${jobId}`, { headers: { "if-match": "*" } })).status,
    204,
  );
  assert.equal((await ask(program, "DELETE", `/bundles/${bundle_id}`)).status, 204);
  assert.deepEqual(await kept(program), []);
  form.set("more", "what the form does not take");
  const refused = await fetch(`${program.api}/bundles`, { method: "POST", body: form });
  assert.equal(refused.status, 422, await refused.text());
  assert.deepEqual(await kept(program), [], "what was refused after it was unpacked is gone");
  assert.equal((await send(2 * MiB)).status, 201);
});

test(`${TORN} uploads that break off in the middle leave no file, no memory and no error behind`, async () => {
  await using program = await startGateway();
  await uploadBundle(program, graph("small", [router("in")]));
  const seed = Number(process.env.FIRE_SEED ?? 20_261_121);
  const random = new Random(seed);
  const before = memoryOf(program.pid).nowBytes;
  for (let i = 0; i < TORN; i++) {
    const { request, answer } = openUpload(program);
    await sendPart(request, random.below(8 * MiB));
    request.destroy();
    await answer;
  }
  await until(`what was torn is removed (seed ${seed})`, async () => (await incoming(program)).length === 0);
  if (seesProcesses) assertGrowth(program, before, 150);
  assert.doesNotMatch(program.output(), /"level":[56]0/, "a client that leaves is no failure of the server");
  assert.equal((await kept(program)).length, 1);
  await uploadBundle(program, manifest);
});

test("a disk that fills up during an upload: 503, nothing is left, and a smaller upload fits", async (t) => {
  const why = whyNoMounts();
  if (why !== null) return t.skip(why);
  const home = await temporaryHome();
  const through = onOwnDisk(home, { sizeBytes: 24 * MiB });
  try {
    await using program = await startGateway({ home, through });
    for (const sizeBytes of [
      // No room for the zip; and room for the zip, but not for what is in it too.
      40 * MiB,
      14 * MiB,
    ]) {
      const { request, answer } = openUpload(program);
      await sendAll(request, bigForm(manifest, sizeBytes));
      const { status, headers, text } = await answer;
      assert.equal(status, 503, text);
      assert.equal(headers["content-type"], "application/problem+json");
      assert.ok(Number(headers["retry-after"]) >= 1);
      assert.match(text, /disk is full/);
      assert.deepEqual(await incoming(program), []);
      assert.deepEqual(await kept(program), []);
    }
    const bundleId = await uploadBundle(program, manifest);
    const { job_id } = await call(program, "POST", "/jobs", { bundle_id: bundleId });
    await completed(program, String(job_id));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("SIGTERM with open streams and an upload under way: it ends well, and the next start finds nothing torn", async () => {
  const home = await temporaryHome();
  try {
    await using first = await startGateway({ home });
    const sleeper = graph("sleeper", [
      executor("in", 'if [ "$SVC_ATTEMPT" = 1 ]; then exec sleep 300; fi', { max_attempts: 1 }),
    ]);
    const runId = await startRun(first, await createJob(first, sleeper));
    await happens(first, runId, "sandbox_job_started");
    const streams = Array.from({ length: 100 }, (_, i) => {
      const path = `/runs/${runId}/${i % 2 === 0 ? "events/stream" : "stream"}`;
      const opened = Promise.withResolvers<void>();
      const ended = readStream(first, path, { onOpen: opened.resolve }, () => {});
      return { opened: opened.promise, ended };
    });
    await Promise.all(streams.map(({ opened }) => opened));
    const { request, answer } = openUpload(first);
    await sendPart(request, 5 * MiB);
    await until("the upload has begun", async () => (await incoming(first)).length === 1);

    process.kill(first.pid, "SIGTERM");
    assert.deepEqual(await first.exited, { code: 0, signal: null }, first.output());
    for (const { ended } of streams) assert.match(await ended, /^(?:ended|cut)$/);
    const { status } = await answer;
    assert.ok(status === 0 || status === 503, `the upload was answered with ${status}`);
    assert.doesNotMatch(first.output(), /"level":[56]0/);
    // One that was killed a moment ago may still be on its way out; one that stays, stays for minutes.
    if (seesProcesses) await until("no process is left", () => processesWith(home).length === 0);

    await using second = await startGatewayHere({ home });
    assert.deepEqual(await incoming(second), []);
    assert.equal((await kept(second)).length, 1);
    await happens(second, runId, "job_completed");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

/** Sends the beginning of a form. */
async function sendPart(request: Parameters<typeof sendAll>[0], bytes: number): Promise<void> {
  let left = bytes;
  for (const block of bigForm(manifest, 16 * MiB)) {
    if (left <= 0) return;
    await new Promise((resolve) => request.write(block.subarray(0, left), resolve));
    left -= block.length;
  }
}

async function jobOf(program: Program, uploaded: string): Promise<string> {
  const { bundle_id } = JSON.parse(uploaded) as { bundle_id: string };
  return String((await call(program, "POST", "/jobs", { bundle_id })).job_id);
}
