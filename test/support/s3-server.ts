// A real S3 server on this machine, and in front of it a proxy that loses, cuts off and falsifies what passes.

import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Objects } from "../../src/store/shared/s3-objects.ts";
import { S3Requests } from "../../src/store/shared/s3-requests.ts";

/** The package is no ES module and has no types. */
const require = createRequire(import.meta.url);
const S3rver = require("@20minutes/s3rver");

// Its tokens of pages are encrypted by DES, which OpenSSL 3 has as a part of triple DES only.
const crypto = require("node:crypto");
for (const name of ["createCipheriv", "createDecipheriv"]) {
  const make = crypto[name];
  crypto[name] = (algorithm: string, key: Buffer, ...rest: unknown[]) =>
    algorithm === "des"
      ? make("des-ede3-cbc", Buffer.concat([key, key, key]), ...rest)
      : make(algorithm, key, ...rest);
}

/** busy: 503 without reading; cut: the connection ends in the middle; false: one byte of the answer is another. */
export type FaultKind = "busy" | "cut upload" | "cut download" | "false bytes";

interface Fault {
  readonly kind: FaultKind;
  readonly matches: (request: IncomingMessage) => boolean;
  times: number;
}

export type S3Server = Awaited<ReturnType<typeof startS3>>;

/** The only account of the server. */
export const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER", sessionToken: null };
export const BUCKET = "troupe-test";

export async function startS3() {
  const directory = await mkdtemp(join(tmpdir(), "troupe-s3-"));
  const server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory,
    configureBuckets: [{ name: BUCKET }],
  });
  const { port } = (await server.run()) as AddressInfo;
  const faults: Fault[] = [];
  const requests: string[] = [];
  const proxy = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    const fault = faults.find((one) => one.times > 0 && one.matches(incoming));
    if (fault !== undefined) fault.times--;
    pass(incoming, outgoing, port, fault?.kind ?? null);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return {
    endpoint,
    /** Method and path of all there were. */
    requests,
    /** Of the requests that match, the next ones meet a fault. */
    fault(kind: FaultKind, matches: Fault["matches"], times = 1): void {
      faults.push({ kind, matches, times });
    },
    heal: () => void faults.splice(0),
    /** @param prefix with `/` at its end unless it is empty */
    objects(prefix: string, given: Partial<typeof credentials & { bucket: string }> = {}) {
      const place = { bucket: given.bucket ?? BUCKET, prefix, endpoint, region: "us-east-1" };
      // Waits between tries end at once: they are bounded by their number.
      const clock = { after: (ms: number, run: () => void) => (ms < 20_000 ? soon(run) : () => {}) };
      const requests = new S3Requests({
        place,
        credentials: { ...credentials, ...given },
        clock,
        fraction: () => 0,
      });
      return new S3Objects(requests, prefix);
    },
    async close() {
      proxy.closeAllConnections();
      proxy.close();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function soon(run: () => void): () => void {
  const timer = setImmediate(run);
  return () => clearImmediate(timer);
}

function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  port: number,
  fault: FaultKind | null,
): void {
  const { method, url: path, headers } = incoming;
  if (fault === "busy") {
    incoming.resume();
    const body = "<Error><Code>SlowDown</Code></Error>";
    outgoing.writeHead(503, { "content-type": "application/xml" }).end(method === "HEAD" ? "" : body);
    return;
  }
  if (fault === "cut upload") {
    incoming.once("data", () => incoming.socket.destroy());
    return;
  }
  // The signature covers the host that the client has named.
  const forwarded = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    const length = Number(answer.headers["content-length"] ?? 0);
    let passed = 0;
    answer.on("data", (chunk: Buffer) => {
      if (fault === "false bytes" && passed === 0) chunk[0] = (chunk[0] ?? 0) ^ 1;
      passed += chunk.length;
      if (fault === "cut download" && passed > length / 2) {
        const kept = chunk.subarray(0, Math.max(1, chunk.length - (passed - Math.ceil(length / 2))));
        outgoing.write(kept, () => outgoing.destroy());
        answer.destroy();
      } else if (!outgoing.write(chunk)) {
        answer.pause();
        outgoing.once("drain", () => answer.resume());
      }
    });
    answer.on("end", () => outgoing.end());
    answer.on("error", () => outgoing.destroy());
  });
  forwarded.on("error", () => outgoing.destroy());
  incoming.pipe(forwarded);
}
