// Connections that nobody means well with: floods, halves, garbage, and clients that never get to the point. Each
// gets a 4xx or a closed connection, never a 5xx, and everybody else is served meanwhile.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { after, afterEach, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { ended, path, submit } from "../support/job-watch.ts";
import { type Program, startProgram, within } from "../support/program.ts";
import { dial, everything, exchange, type RawAnswer, read, request } from "../support/raw-http.ts";
import { call } from "../support/runtime-api.ts";

let program: Program;
before(async () => {
  program = await startProgram();
});
after(() => program.stop());
afterEach(async () => {
  assert.equal((await call(program, "GET", "/health")).status, "ok");
  assert.ok(!program.output().includes('"level":50'), program.output());
});

const SOMAXCONN = "/proc/sys/net/core/somaxconn";
/** How many connections the kernel lets wait for a program; not a number where there is no /proc. */
const somaxconn = existsSync(SOMAXCONN) ? Number(readFileSync(SOMAXCONN, "utf8")) : Number.NaN;

const CLOSE = "Connection: close";
const manifest = JSON.stringify(graph("raw", [router("r")]));

/** Exactly one answer: this status, and an {error}. */
function isDomainError(answers: readonly RawAnswer[], status: number, what: string): void {
  const [given] = answers;
  assert.equal(given?.status, status, what);
  assert.deepEqual(Object.keys(JSON.parse(given.body) as JsonObject), ["error"], what);
}

test("2,000 connections find a place while the program's thread is busy", {
  skip: !(somaxconn >= 2_000) && "the kernel lets fewer wait",
}, async () => {
  process.kill(program.pid, "SIGSTOP");
  const { port } = new URL(program.url);
  const sockets = Array.from({ length: 2_000 }, () => connect(Number(port), "127.0.0.1"));
  try {
    await within(20_000, Promise.all(sockets.map((socket) => once(socket, "connect"))), () => {
      const waiting = sockets.filter((socket) => socket.connecting).length;
      return `${waiting} of 2,000 found none`;
    });
  } finally {
    for (const socket of sockets) socket.on("error", () => {}).destroy();
    process.kill(program.pid, "SIGCONT");
  }
});

test("bytes that are no HTTP are answered with 400 {error}", async () => {
  const garbage = [
    "hello\r\n\r\n",
    "\0\x01\x02\r\n\r\n",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    "FOO /api/v1/jobs HTTP/1.1\r\n\r\n",
  ];
  for (const bytes of garbage)
    isDomainError(await exchange(program, Buffer.from(bytes, "latin1")), 400, JSON.stringify(bytes));
});

test("percent-encoding that means nothing is answered with 400 {error}", async () => {
  for (const bad of ["%", "%z", "%zz", "%E0%A4%A", "%ff", "%c0%af", "a%"]) {
    for (const rest of ["", "/events", "/events/stream"]) {
      isDomainError(
        await exchange(program, request("GET", `/api/v1/jobs/${bad}${rest}`, [CLOSE])),
        400,
        bad + rest,
      );
    }
  }
});

test("a path that climbs finds nothing, encoded or not", async () => {
  const climbs = [
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "..\\..\\etc",
    "....//",
    ".%00./x",
    "%2e%2e/%2e%2e/x",
    "jobs/../../health",
  ];
  for (const climb of climbs) {
    for (const prefix of ["/", "/api/v1/jobs/", "/api/v1/runs/", "/api/v1/runs/x/artifacts/"]) {
      isDomainError(await exchange(program, request("GET", prefix + climb, [CLOSE])), 404, prefix + climb);
    }
  }
});

test("floods of headers are answered with 431 {error}", async () => {
  const floods = [
    Array.from({ length: 5_000 }, (_, i) => `X-${i}: ${i}`),
    [`X: ${"x".repeat(100_000)}`],
    [`${"X".repeat(100_000)}: x`],
    [`Cookie: ${"a=b; ".repeat(20_000)}`],
  ];
  for (const headers of floods)
    isDomainError(
      await exchange(program, request("GET", "/api/v1/health", [CLOSE, ...headers])),
      431,
      headers[0]?.slice(0, 20) ?? "",
    );
  isDomainError(
    await exchange(program, request("GET", `/api/v1/jobs/${"x".repeat(100_000)}`, [CLOSE])),
    431,
    "a long URL",
  );
});

test("lengths and encodings that contradict each other are answered with 400", async () => {
  const lies: readonly string[][] = [
    ["Content-Length: -1"],
    ["Content-Length: 1e3"],
    ["Content-Length: 5", "Content-Length: 6"],
    ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked, identity"],
    ["Transfer-Encoding: gibberish"],
  ];
  for (const headers of lies) {
    isDomainError(
      await exchange(program, request("POST", "/api/v1/jobs", [CLOSE, ...headers], manifest)),
      400,
      headers.join(),
    );
  }
  isDomainError(
    await exchange(
      program,
      request("POST", "/api/v1/jobs", [CLOSE, "Transfer-Encoding: chunked"], "zz\r\n{}\r\n"),
    ),
    400,
    "a bad chunk",
  );
});

test("pipelined requests are answered in their order; garbage behind them ends only that connection", async () => {
  const socket = await dial(program);
  socket.write(
    request("GET", "/api/v1/health") + request("GET", "/api/v1/jobs/x") + request("GET", "/api/v1/nothing"),
  );
  const answers = await read(socket, 3);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 404, 404],
  );
  assert.match(answers[1]?.body ?? "", /Job x was not found/);
  const rest = everything(socket);
  socket.write("\0\0garbage\r\n\r\n");
  assert.match(await rest, /^HTTP\/1\.1 400 /);
});

test("a client that has sent its request and closes its half is still answered", async () => {
  const socket = await dial(program);
  const text = everything(socket);
  socket.end(request("POST", "/api/v1/jobs", [], manifest));
  assert.match(await text, /^HTTP\/1\.1 201 /);
});

test("a client that leaves in the middle of its body creates nothing", async () => {
  const before = ((await call(program, "GET", "/jobs")).data as readonly unknown[]).length;
  for (let i = 0; i < 50; i++) {
    const socket = await dial(program);
    socket.end(
      request("POST", "/api/v1/jobs", [`Content-Length: ${manifest.length}`], manifest.slice(0, -1)),
    );
    await everything(socket);
  }
  assert.equal(((await call(program, "GET", "/jobs")).data as readonly unknown[]).length, before);
});

test("clients that leave without reading their answer or stream cost nothing", async () => {
  const jobId = await submit(program, graph("left", [sensor("s")]));
  for (let i = 0; i < 200; i++) {
    const socket = await dial(program);
    socket.write(request("GET", `/api/v1${i % 2 === 0 ? "/jobs" : path(jobId, "/events/stream")}`));
    socket.resetAndDestroy();
  }
  await call(program, "POST", path(jobId, "/messages"), { agent_id: "s", body: 1 });
  assert.equal((await ended(program, jobId)).status, "completed");
});

test("500 clients that send one byte and wait keep nobody from being served", async () => {
  const slow: Socket[] = await Promise.all(Array.from({ length: 500 }, () => dial(program)));
  try {
    slow.forEach((socket, i) => {
      const whole = request("POST", "/api/v1/jobs", [`Content-Length: ${manifest.length}`], manifest);
      // Some have not finished a word, some their headers, some their body.
      socket.write(whole.slice(0, [1, 40, whole.length - 1][i % 3]));
    });
    const others = await Promise.all(
      Array.from({ length: 50 }, () => submit(program, graph("served", [router("r")]))),
    );
    assert.equal(new Set(others).size, 50);
  } finally {
    for (const socket of slow) socket.destroy();
  }
});

test("2,000 requests at once are all answered, and each submission is there once", async () => {
  // By hand: fetch gives a connection up that a busy machine has not taken within 10 s.
  const ask = async (bytes: string) => (await exchange(program, bytes)).at(0);
  const crowd = JSON.stringify(graph("crowd", [router("r")]));
  const jobs: Promise<RawAnswer | undefined>[] = [];
  const reads: Promise<RawAnswer | undefined>[] = [];
  for (let i = 0; i < 1_000; i++) {
    const read = ["/health", "/jobs?limit=5", "/system/summary", "/jobs/x"][i % 4];
    jobs.push(ask(request("POST", "/api/v1/jobs", [CLOSE], crowd)));
    reads.push(ask(request("GET", `/api/v1${read}`, [CLOSE])));
  }
  const ids = new Set<string>();
  for (const answer of await Promise.all(jobs)) {
    assert.equal(answer?.status, 201, answer?.body ?? "no answer");
    ids.add(String((JSON.parse(answer.body) as JsonObject).id));
  }
  assert.equal(ids.size, 1_000);
  for (const [i, answer] of (await Promise.all(reads)).entries()) {
    assert.equal(answer?.status, i % 4 === 3 ? 404 : 200, answer?.body ?? "no answer");
  }
  const listed = (await call(program, "GET", "/jobs")).data as readonly JsonObject[];
  assert.equal(listed.filter((job) => ids.has(String(job.job_id))).length, 1_000);
});

test("methods and upgrades that the API does not have are refused without a 5xx", async () => {
  for (const method of ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]) {
    isDomainError(await exchange(program, request(method, "/api/v1/jobs", [CLOSE])), 404, method);
  }
  const [connect] = await exchange(program, request("CONNECT", "127.0.0.1:80", [CLOSE]));
  assert.ok(connect === undefined || (connect.status >= 400 && connect.status < 500));
  const [expects] = await exchange(
    program,
    request("POST", "/api/v1/jobs", [CLOSE, "Expect: miracles"], manifest),
  );
  assert.equal(expects?.status, 417);
  const [nameless] = await exchange(program, `GET /api/v1/health HTTP/1.1\r\n${CLOSE}\r\n\r\n`);
  assert.equal(nameless?.status, 400);
});
