// A process that stores a large file in a bucket and reads it again, and tells by how much it has grown.

import { createHash } from "node:crypto";
import { systemClock } from "../../src/app/clock.ts";
import { S3Objects } from "../../src/store/shared/s3-objects.ts";
import { S3Requests } from "../../src/store/shared/s3-requests.ts";

const { S3_ENDPOINT: endpoint = "", S3_BUCKET: bucket = "", S3_KEY: key = "", S3_BYTES: bytes } = process.env;
const SIZE = Number(bytes);
const prefix = "large/";
const requests = new S3Requests({
  place: { bucket, prefix, endpoint, region: "us-east-1" },
  credentials: { accessKeyId: key, secretAccessKey: key, sessionToken: null },
  clock: systemClock,
  fraction: () => 0,
});
const objects = new S3Objects(requests, prefix);

/** Byte i of the file. */
const chunk = Buffer.from(Array.from({ length: 65_536 }, (_, i) => (i * 7919) & 255));
const digest = createHash("sha256");
for (let at = 0; at < SIZE; at += chunk.length)
  digest.update(chunk.subarray(0, Math.min(chunk.length, SIZE - at)));
const sha256 = digest.digest("hex");

await objects.check();
const before = process.resourceUsage().maxRSS;
await objects.put("file", {
  size: SIZE,
  sha256,
  async read(into, at) {
    let filled = 0;
    while (filled < into.length && at + filled < SIZE) {
      const from = (at + filled) % chunk.length;
      filled += chunk.copy(into, filled, from, Math.min(chunk.length, from + SIZE - at - filled));
    }
    return filled;
  },
});
const read = createHash("sha256");
for await (const part of (await objects.read("file", SIZE, 0, SIZE - 1)) ?? []) read.update(part as Buffer);
const grownMiB = (process.resourceUsage().maxRSS - before) / 1024;
process.stdout.write(JSON.stringify({ isSame: read.digest("hex") === sha256, grownMiB }));
