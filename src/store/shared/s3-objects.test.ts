// What a bucket does when its server is busy, cuts off, falsifies and refuses; the rest is in blobs-everywhere.test.ts.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash, randomFillSync } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { after, afterEach, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { sized } from "../../../test/support/long.ts";
import { BUCKET, credentials, type S3Server, startS3 } from "../../../test/support/s3-server.ts";
import { systemClock } from "../../app/clock.ts";
import { type Content, ObjectDamaged, SharedStoreUnavailable } from "./object-store.ts";
import { Removals } from "./removals.ts";
import type { S3Objects } from "./s3-objects.ts";
import { SharedBlobs } from "./shared-blobs.ts";

const MiB = 1024 * 1024;
const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

function contentOf(bytes: Buffer, hash = sha256(bytes)): Content {
  const read = async (into: Buffer, at: number) => bytes.copy(into, 0, at);
  return { size: bytes.length, sha256: hash, read };
}

const bytesOf = (size: number) => randomFillSync(Buffer.alloc(size));
const any = () => true;
const is = (method: string) => (request: IncomingMessage) => request.method === method;

describe("a bucket", () => {
  let s3: S3Server;
  before(async () => {
    s3 = await startS3();
  });
  after(() => s3.close());
  afterEach(() => s3.heal());

  let prefixes = 0;
  const opened = (given = {}) => s3.objects(`hostile-${++prefixes}/`, given);
  const whole = async (objects: S3Objects, key: string, size: number) => {
    const read = await objects.read(key, size, 0, size - 1);
    return read === null ? null : buffer(read);
  };

  it("is asked again while its server is busy", async () => {
    const objects = opened();
    const bytes = bytesOf(10 * MiB);
    s3.fault("busy", is("PUT"), 5);
    s3.fault("busy", is("POST"), 3);
    await objects.put("a", contentOf(bytes));
    s3.fault("busy", is("GET"), 3);
    assert.ok((await whole(objects, "a", bytes.length))?.equals(bytes));
  });

  it("is given up on after some tries, with what is wrong and what to do", async () => {
    const objects = opened();
    s3.fault("busy", any, 1_000);
    const refused = { name: "SharedStoreUnavailable", message: /SVC_BLOB_URL.*HTTP 503 SlowDown/ };
    await assert.rejects(objects.put("a", contentOf(bytesOf(10))), refused);
    await assert.rejects(objects.read("a", 10, 0, 9), refused);
    await assert.rejects(Array.fromAsync(objects.pages("x/")), refused);
  });

  it("takes a file whose upload was cut off once, and nothing of one that is cut off each time", async () => {
    const objects = opened();
    const bytes = bytesOf(3 * MiB);
    s3.fault("cut upload", is("PUT"), 2);
    await objects.put("a", contentOf(bytes));
    assert.ok((await whole(objects, "a", bytes.length))?.equals(bytes));
    s3.fault("cut upload", is("PUT"), 1_000);
    await assert.rejects(objects.put("b", contentOf(bytes)), SharedStoreUnavailable);
    await assert.rejects(objects.put("c", contentOf(bytesOf(9 * MiB))), SharedStoreUnavailable);
    s3.heal();
    assert.equal(await objects.find("b"), null);
    assert.equal(await objects.find("c"), null);
    assert.deepEqual(
      (await Array.fromAsync(objects.pages(""))).flat().map(({ key }) => key),
      ["a"],
    );
  });

  it("gives the parts of an upload back that fails", async () => {
    const objects = opened();
    const requests = s3.requests.length;
    s3.fault("busy", (request) => request.url?.includes("partNumber=2") === true, 1_000);
    await assert.rejects(objects.put("a", contentOf(bytesOf(20 * MiB))), SharedStoreUnavailable);
    assert.match(s3.requests.slice(requests).at(-1) ?? "", /^DELETE .*uploadId=/);
  });

  it("continues a download that is cut off where it was, with the bytes that are left", async () => {
    const objects = opened();
    const bytes = bytesOf(2 * MiB);
    await objects.put("a", contentOf(bytes));
    const requests = s3.requests.length;
    s3.fault("cut download", is("GET"), 3);
    assert.ok((await whole(objects, "a", bytes.length))?.equals(bytes));
    assert.equal(s3.requests.length - requests, 4);
    s3.fault("cut download", is("GET"), 1);
    const part = await objects.read("a", bytes.length, 1_000, 1_500_000);
    assert.ok(part !== null && (await buffer(part)).equals(bytes.subarray(1_000, 1_500_001)));
  });

  it("ends a download with an error when it does not come to its end", async () => {
    const objects = opened();
    const bytes = bytesOf(MiB);
    await objects.put("a", contentOf(bytes));
    const read = await objects.read("a", bytes.length, 0, bytes.length - 1);
    s3.fault("busy", any, 1_000);
    // What was asked for before arrives whole.
    assert.ok(read !== null && (await buffer(read)).equals(bytes));
    s3.heal();
    s3.fault("cut download", is("GET"), 1);
    s3.fault("busy", is("GET"), 1_000);
    const cut = await objects.read("a", bytes.length, 0, bytes.length - 1);
    assert.ok(cut !== null);
    await assert.rejects(buffer(cut), SharedStoreUnavailable);
  });

  it("keeps back the end of a blob whose bytes are not those of its hash", async () => {
    const objects = opened();
    const blobs = new SharedBlobs(objects, new Removals(objects, "tester", systemClock));
    const bytes = bytesOf(MiB);
    const blob = { sha256: sha256(bytes), size: bytes.length };
    await objects.put(`blobs/${blob.sha256.slice(0, 2)}/${blob.sha256}`, contentOf(bytes));
    s3.fault("false bytes", is("GET"));
    const read = await blobs.read(blob, 0, blob.size - 1);
    let arrived = 0;
    const reading = async () => {
      for await (const chunk of read ?? []) arrived += (chunk as Buffer).length;
    };
    await assert.rejects(reading(), ObjectDamaged);
    assert.ok(arrived < bytes.length);
  });

  it("takes nothing of a file that changes while it is stored", async () => {
    const objects = opened();
    for (const size of [100, 20 * MiB]) {
      const changed = { name: "FileChanged" };
      await assert.rejects(objects.put("a", contentOf(bytesOf(size), "0".repeat(64))), changed);
      assert.equal(await objects.find("a"), null);
    }
  });

  it("is told apart from one that does not exist or that refuses us, and no error shows a credential", async () => {
    const secret = { secretAccessKey: "quite-secret-indeed", sessionToken: "secret-session" as never };
    for (const [given, why] of [
      [{ bucket: "no-such-bucket" }, /NoSuchBucket/],
      [secret, /SignatureDoesNotMatch/],
    ] as const) {
      const objects = opened(given);
      const requests = s3.requests.length;
      for (const asked of [() => objects.put("a", contentOf(bytesOf(5))), () => objects.read("a", 5, 0, 4)]) {
        await assert.rejects(asked(), (error: Error) => {
          assert.match(error.message, why);
          assert.ok(
            !/quite-secret|secret-session/.test(`${error.stack}${JSON.stringify(error)}${error.cause}`),
          );
          return true;
        });
      }
      assert.equal(s3.requests.length - requests, 2, "it is no use to try again");
    }
  });

  it("streams 64 MB, in the long run 300, in and out with bounded memory", async () => {
    const bytes = String(sized(64_000_000, 300_000_000));
    const script = new URL("../../../test/support/s3-large.ts", import.meta.url).pathname;
    const { stdout } = await promisify(execFile)(process.execPath, [script], {
      env: {
        ...process.env,
        S3_ENDPOINT: s3.endpoint,
        S3_BUCKET: BUCKET,
        S3_KEY: credentials.accessKeyId,
        S3_BYTES: bytes,
      },
    });
    const { isSame, grownMiB } = JSON.parse(stdout) as { isSame: boolean; grownMiB: number };
    assert.ok(isSame);
    assert.ok(grownMiB < 130, `it took ${grownMiB} MiB`);
  });
});
