// Uploads: what is sent, and what it costs.

import assert from "node:assert/strict";
import { createReadStream, openAsBlob } from "node:fs";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Answer, json, problem, serving } from "../test/server.ts";

const MIB = 1024 * 1024;

/** Without it, what is held could not be told from what is only not collected yet. */
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A file of zeros that takes no room on the disk. */
async function hugeFile(context: TestContext, sizeBytes: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sdk-upload-"));
  context.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "huge.zip");
  await writeFile(path, "");
  await truncate(path, sizeBytes);
  return path;
}

test("a file is sent as it is read, however large, as a Blob and as a stream", async (t) => {
  const path = await hugeFile(t, 48 * MIB);
  let peakBytes = 0;
  let receivedBytes = 0;
  const taking: Answer = (request, response) => {
    let looks = 0;
    request.on("data", (chunk: Buffer) => {
      receivedBytes += chunk.length;
      if (receivedBytes < (looks + 1) * 5 * MIB) return;
      looks++;
      // The second one collects what the first one has only finalized.
      for (let i = 0; i < 2; i++) collectGarbage();
      peakBytes = Math.max(peakBytes, process.memoryUsage().arrayBuffers);
    });
    request.on("end", () => json(201, {})(request, response));
  };
  const { client } = await serving(t, taking);
  for (const source of [await openAsBlob(path), createReadStream(path)]) {
    receivedBytes = 0;
    await client.bundles.upload(source);
    assert.ok(receivedBytes > 48 * MIB);
  }
  assert.ok(peakBytes < 16 * MIB, `${Math.round(peakBytes / MIB)} MiB were held at once`);
});

test("a Blob is sent again, with the same key, when the answer was lost", async (t) => {
  const bodies: string[] = [];
  const cutting: Answer = (request) => {
    request.on("data", (chunk) => bodies.push(String(chunk)));
    request.on("end", () => request.socket.destroy());
  };
  const { client, requests } = await serving(t, cutting, cutting, json(201, { bundle_id: "b" }));
  assert.equal((await client.bundles.upload(new Blob(["zip"]))).bundle_id, "b");
  assert.equal(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
  assert.equal(bodies.length, 2);
  for (const body of bodies) assert.match(body, /name="bundle"; filename="bundle.zip".*\r\n\r\nzip\r\n/s);
});

test("a stream whose upload is refused early is cancelled", async (t) => {
  const { client } = await serving(t, (request, response) => {
    request.once("data", () => problem(413, "payload_too_large")(request, response));
  });
  const isLetGo = Promise.withResolvers<void>();
  const endless = (async function* () {
    try {
      for (;;) yield new Uint8Array(64 * 1024);
    } finally {
      isLetGo.resolve();
    }
  })();
  await assert.rejects(client.bundles.upload(endless), (error: Error) => {
    // What was refused while it was being sent may also look like a connection that broke.
    return error.name === "TroupeProblem" || error.name === "TroupeUnreachable";
  });
  await isLetGo.promise;
});
