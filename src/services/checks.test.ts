// Each kind of check against real servers, real programs, and what answers none of it.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import * as http2 from "node:http2";
import { createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fc } from "../../test/support/fast-check.ts";
import { closedPort, serve, serveHttp, serviceJob, specOf } from "../../test/support/services.ts";
import { systemClock } from "../app/clock.ts";
import type { JsonObject } from "../engine/json.ts";
import { ProcessTrees } from "../execution/process/process-trees.ts";
import { SideCommands } from "../execution/process/side-command.ts";
import { type CheckParts, makeCheck } from "./check.ts";
import { readStatus, requestFrame } from "./checks/grpc.ts";
import type { CheckResult } from "./instance.ts";
import { ServiceInstance } from "./instance.ts";

let home: string;
let commands: SideCommands;
let parts: CheckParts;
before(async () => {
  home = await mkdtemp(join(tmpdir(), "troupe checks "));
  await writeFile(join(home, "answer.txt"), "here");
  const trees = new ProcessTrees(home, systemClock);
  commands = new SideCommands({ trees, clock: systemClock, runtimeEnv: process.env });
  parts = {
    clock: systemClock,
    run: commands.run,
    payloadOf: async () => home,
    redact: (text) => text.replaceAll("hunter2", "[redacted]"),
  };
});
after(async () => {
  await commands.close();
  await rm(home, { recursive: true });
});

/** Makes the only check of a service once. */
function checked(check: JsonObject, port: number | null, signal?: AbortSignal): Promise<CheckResult> {
  // The machine may stand still for longer than checks usually have.
  const patient = { timeout_ms: 60_000, ...check };
  const spec = specOf({ ...(port === null ? { port_label: "later" } : { port }), checks: [patient] });
  const job = serviceJob("job", []);
  const origin = { serviceId: "svc", spec, job, agentId: null, registeredAtMs: 0, order: 1 };
  const instance = new ServiceInstance(origin);
  return makeCheck(parts, instance, spec.checks[0]!, signal ?? instance.over);
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const never = { timeout_ms: 100 };

test("http: 200 to 299 is well, or exactly the expected status, and a redirect is not followed", async () => {
  await using server = await serveHttp((request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { location: "/200" }).end();
  });
  const ask = (status: number, more: JsonObject = {}) =>
    checked({ type: "http", path: `/${status}`, ...more }, server.port);
  assert.deepEqual(await ask(204), { passed: true, output: "HTTP 204" });
  assert.deepEqual(await ask(302), { passed: false, output: "HTTP 302, expected 200 to 299" });
  assert.deepEqual(await ask(500), { passed: false, output: "HTTP 500, expected 200 to 299" });
  assert.equal((await ask(418, { expected_status: 418 })).passed, true);
  assert.equal((await ask(200, { expected_status: 418 })).passed, false);
});

test("http: the method and the path are the check's own", async () => {
  const seen: string[] = [];
  await using server = await serveHttp((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end();
  });
  for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
    assert.equal((await checked({ type: "http", method, path: "/a?b=c" }, server.port)).passed, true);
  }
  assert.deepEqual(seen, ["GET /a?b=c", "HEAD /a?b=c", "POST /a?b=c", "OPTIONS /a?b=c"]);
});

test("http: the text is looked for in the first 64 KiB, and nothing of the body is shown", async () => {
  await using server = await serveHttp((request, response) => {
    const bytesBefore = Number(request.url?.slice(1));
    response.end(`${"x".repeat(bytesBefore)}größer than a password`);
  });
  const ask = (bytesBefore: number, contains = "größer") =>
    checked({ type: "http", path: `/${bytesBefore}`, contains }, server.port);
  assert.deepEqual(await ask(0), { passed: true, output: "HTTP 200, the text is there" });
  assert.deepEqual(await ask(60_000), { passed: true, output: "HTTP 200, the text is there" });
  const missing = { passed: false, output: "HTTP 200, the text is not in the body" };
  assert.deepEqual(await ask(0, "other"), missing);
  assert.deepEqual(await ask(70_000), missing);
});

test("http: a body without an end is left after 64 KiB", async () => {
  await using server = await serveHttp((_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(10_000)));
      response.once("drain", more);
    };
    more();
  });
  const result = await checked({ type: "http", contains: "never" }, server.port);
  assert.equal(result.output, "HTTP 200, the text is not in the body");
});

test("a server that does not answer is left in time, and one that is not there is named", async () => {
  await using silent = await serve(createTcpServer());
  const port = await closedPort();
  for (const type of ["http", "grpc"]) {
    assert.deepEqual(await checked({ type, ...never }, silent.port), {
      passed: false,
      output: `127.0.0.1:${silent.port}: no answer within 100 ms`,
    });
  }
  for (const type of ["http", "tcp", "grpc"]) {
    assert.deepEqual(await checked({ type }, port), {
      passed: false,
      output: `127.0.0.1:${port}: ECONNREFUSED`,
    });
  }
});

test("a check that its owner no longer wants ends at once", async () => {
  await using silent = await serve(createTcpServer());
  const over = new AbortController();
  const running = ["http", "grpc"].map((type) => checked({ type }, silent.port, over.signal));
  running.push(checked({ type: "script", command: ["sleep", "60"] }, null, over.signal));
  over.abort();
  for (const result of await Promise.all(running)) assert.equal(result.passed, false);
});

test("http: a server that switches protocols in place of an answer ends the check, and holds no other one up", async () => {
  const sockets: Socket[] = [];
  await using server = await serve(
    createTcpServer((socket) => {
      sockets.push(socket);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    }),
  );
  const output = `127.0.0.1:${server.port}: the connection was closed without an answer`;
  assert.deepEqual(await checked({ type: "http" }, server.port), { passed: false, output });
  assert.equal(sockets.length, 1);
});

test("nothing of a check stays with the service for which it was made, however often it is made", async () => {
  await using server = await serve(createTcpServer((socket) => void socket.resume()));
  const over = new AbortController();
  const heapBytes = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapBytes();
  for (let i = 0; i < 2_000; i++) await checked({ type: "tcp" }, server.port, over.signal);
  assert.equal(getEventListeners(over.signal, "abort").length, 0);
  // A connection that is kept costs nearly 4 KiB.
  const grownBytes = (await heapBytes()) - before;
  assert.ok(grownBytes < 4_000_000, `the heap has grown by ${grownBytes} bytes`);
});

test("a service whose port has a label and no number fails with the remedy", async () => {
  const output = '"later" has no number: give it one in resources.ports';
  assert.deepEqual(await checked({ type: "tcp" }, null), { passed: false, output });
});

test("tcp: a port that accepts connections passes", async () => {
  await using server = await serve(createTcpServer());
  const output = `127.0.0.1:${server.port} takes connections`;
  assert.deepEqual(await checked({ type: "tcp" }, server.port), { passed: true, output });
});

test("the check's own address and port win over those of the service", async () => {
  await using server = await serve(createTcpServer());
  const own = { type: "tcp", address: "localhost", port: server.port };
  const result = await checked(own, await closedPort());
  assert.deepEqual(result, { passed: true, output: `localhost:${server.port} takes connections` });
});

/** A gRPC server whose health check answers by the service's name. */
function serveHealth(answer: (service: string, stream: http2.ServerHttp2Stream) => void) {
  const server = http2.createServer();
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", async (given, headers) => {
    const stream = given as http2.ServerHttp2Stream;
    stream.on("error", () => {});
    assert.equal(headers[":path"], "/grpc.health.v1.Health/Check");
    assert.equal(headers["content-type"], "application/grpc");
    const frame = Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>));
    const length = frame.readUInt32BE(1);
    assert.equal(length, frame.length - 5);
    answer(frame.subarray(7).toString(), stream);
  });
  return serve(server);
}

function respond(stream: http2.ServerHttp2Stream, message: readonly number[], grpcStatus = "0"): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": grpcStatus }));
  stream.end(Buffer.from([0, 0, 0, 0, message.length, ...message]));
}

test("grpc: the health of the server, or of one of its services, counts", async () => {
  await using server = await serveHealth((service, stream) => {
    if (service === "") respond(stream, [8, 1]);
    else if (service === "asleep") respond(stream, [8, 2]);
    else if (service === "unsure") respond(stream, []);
    else if (service === "x".repeat(300)) respond(stream, [0x12, 2, 65, 66, 8, 1]);
    else stream.respond({ ":status": 200, "grpc-status": "5" }, { endStream: true });
  });
  const ask = (service: string) => checked({ type: "grpc", service }, server.port);
  assert.deepEqual(await ask(""), { passed: true, output: "SERVING" });
  assert.deepEqual(await ask("asleep"), { passed: false, output: "NOT_SERVING" });
  assert.deepEqual(await ask("unsure"), { passed: false, output: "UNKNOWN" });
  assert.deepEqual(await ask("nobody"), { passed: false, output: "gRPC status 5" });
});

test("grpc: a server that is none is not taken for one", async () => {
  await using plain = await serveHttp((_request, response) => void response.end("hello"));
  assert.equal((await checked({ type: "grpc", ...never }, plain.port)).passed, false);
  await using web = await serveHealth((_service, stream) => {
    stream.respond({ ":status": 404 });
    stream.end("no");
  });
  const result = await checked({ type: "grpc" }, web.port);
  assert.match(result.output, /HTTP 404 in place of a gRPC answer$/);
  await using endless = await serveHealth((_service, stream) => {
    stream.respond({ ":status": 200 });
    stream.end(Buffer.alloc(100_000));
  });
  assert.match((await checked({ type: "grpc" }, endless.port)).output, /too long for a health check$/);
});

test("grpc: whatever bytes a server answers with, they are read as a status or refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const frame = Buffer.from([0, 0, 0, 0, bytes.length, ...bytes]);
      for (const given of [frame, Buffer.from(bytes)]) {
        try {
          assert.equal(typeof readStatus(given), "number");
        } catch (error) {
          assert.equal((error as Error).message, "the answer is no health check response");
        }
      }
    }),
  );
  const long = requestFrame("x".repeat(300));
  assert.deepEqual([...long.subarray(0, 8)], [0, 0, 0, 1, 47, 0x0a, 0xac, 2]);
});

test("script: the exit code counts; it starts in the payload, with the service in its environment", async () => {
  const ask = (script: string, more: JsonObject = {}) =>
    checked({ type: "script", command: ["sh", "-c", script], ...more }, 4711);
  const look = 'cat answer.txt && echo " $SVC_SERVICE_NAME $SVC_SERVICE_ADDRESS:$SVC_SERVICE_PORT"';
  assert.deepEqual(await ask(look), { passed: true, output: "exit code 0: here s 127.0.0.1:4711" });
  assert.deepEqual(await ask("echo one; echo two >&2; exit 3"), {
    passed: false,
    output: "exit code 3: two",
  });
  assert.deepEqual(await ask("echo the password is hunter2; exit 1"), {
    passed: false,
    output: "exit code 1: the password is [redacted]",
  });
  assert.deepEqual(await ask("exec sleep 60", never), { passed: false, output: "no end within 100 ms" });
  assert.equal((await ask("printf 'x%.0s' $(seq 1000)")).output.length, 200);
});

test("script: a program that is not there is no reason to fail otherwise, and {node} is the runtime's own", async () => {
  const missing = await checked({ type: "script", command: ["no-such-program"] }, null);
  assert.deepEqual(missing, { passed: false, output: "it could not be started (ENOENT)" });
  const node = await checked({ type: "script", command: ["{node}", "-e", "process.exit(0)"] }, null);
  assert.deepEqual(node, { passed: true, output: "exit code 0" });
});
