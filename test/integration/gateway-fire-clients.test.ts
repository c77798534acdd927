// Clients that mean no good: more connections than there may be, heads and bodies that never come to an end, answers
// that nobody reads. Everybody else is served meanwhile, and memory stays bounded.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { describe, test } from "node:test";
import {
  ask,
  call,
  completed,
  createJob,
  ended,
  happens,
  startGateway,
  startRun,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { handlesOf } from "../support/inspected.ts";
import { memoryOf, seesProcesses } from "../support/processes.ts";
import type { Program } from "../support/program.ts";
import { dial, everything, read, request } from "../support/raw-http.ts";
import { until } from "../support/until.ts";

const MiB = 1024 * 1024;
const HEALTH = request("GET", "/api/v1/health");

async function works(program: Program): Promise<void> {
  const { run } = await completed(program, await createJob(program, graph("works", [router("in")])));
  assert.equal(run.status, "completed");
}

/** Asks on an open connection; it may be closed instead of answered. */
function asked(socket: Socket): Promise<"served" | "closed"> {
  const { promise, resolve } = Promise.withResolvers<"served" | "closed">();
  socket.once("data", () => resolve("served"));
  for (const end of ["end", "close"]) socket.once(end, () => resolve("closed"));
  // What was closed before now does not say so again.
  if (socket.destroyed || socket.readableEnded) resolve("closed");
  else socket.write(HEALTH);
  return promise;
}

/** How many files and connections a process of this user may have open; Node raises its own limit to it. */
function handlesAllowed(): number {
  const limits = seesProcesses ? readFileSync("/proc/self/limits", "utf8") : "";
  return Number(/^Max open files +\S+ +(\d+)/m.exec(limits)?.[1] ?? 0);
}

// Two at once: one of them waits for half a minute until the program has lost its patience.
describe("hostile clients", { concurrency: 2 }, () => {
  test("10,000 connections are held; more are closed; those that are held are served, and so is everybody afterwards", async (t) => {
    const [most, more] = [10_000, 300];
    const allowed = handlesAllowed();
    if (allowed < most + 1_000)
      return t.skip(`needs ${most + 1_000} open files, and this machine allows ${allowed}`);
    await using program = await startGateway();
    await works(program);
    const idle = handlesOf(program);
    const before = memoryOf(program.pid).nowBytes;
    const sockets: Socket[] = [];
    const outcomes: Promise<"served" | "closed">[] = [];
    let leftMeanwhile = 0;
    try {
      for (let i = 0; i < most + more; i += 100) {
        const some = await Promise.all(Array.from({ length: 100 }, () => dial(program)));
        sockets.push(...some);
        // Who never asks for anything is closed after a while; who has been answered may stay.
        outcomes.push(
          ...some.map(async (socket) => {
            const outcome = await asked(socket);
            // On a slow machine the first ones have been idle for so long that their places are given to others.
            if (outcome === "served") socket.once("end", () => leftMeanwhile++);
            return outcome;
          }),
        );
      }
      const seen = await Promise.all(outcomes);
      const closed = seen.filter((outcome) => outcome === "closed").length;
      // The test has connections of its own besides.
      assert.ok(
        closed >= more - leftMeanwhile && closed <= more + 10,
        `${closed} were closed, and ${leftMeanwhile} that had been served`,
      );
      const held = sockets[seen.lastIndexOf("served")];
      assert.ok(held !== undefined);
      assert.equal(await asked(held), "served");
      const grown = (memoryOf(program.pid).peakBytes - before) / MiB;
      // Some 20 KiB for each.
      assert.ok(grown <= 400, `it took ${grown.toFixed(0)} MiB more`);
    } finally {
      for (const socket of sockets) socket.resetAndDestroy();
    }
    await until("the connections are gone", () => handlesOf(program) <= idle + 20);
    await works(program);
  });

  test("heads and bodies that come byte by byte hold up nobody; heads are given up on with 408", async () => {
    await using program = await startGatewayHere();
    const beginnings = [
      "G",
      "GET /api/v1/",
      request("GET", "/api/v1/health").slice(0, -2),
      request("POST", "/api/v1/jobs", ["Content-Length: 1000000"], "{"),
    ];
    const slow = await Promise.all(Array.from({ length: 300 }, () => dial(program)));
    const kindOf = (i: number) => i % beginnings.length;
    for (const [i, socket] of slow.entries()) socket.write(beginnings[kindOf(i)] ?? "");
    // The last ones have sent their head; a body may take minutes.
    const heads = slow.filter((_, i) => kindOf(i) < beginnings.length - 1);
    const answers = Promise.all(heads.map((socket) => everything(socket)));
    const trickle = setInterval(() => {
      for (const [i, socket] of slow.entries()) {
        // In a path, a header's name and a body another letter makes sense, and never ends it.
        if (socket.writable && kindOf(i) > 0) socket.write("x");
      }
    }, 500);
    try {
      for (let i = 0; i < 5; i++) await works(program);
      for (const text of await answers) {
        assert.match(text, /^HTTP\/1\.1 408 /);
        assert.match(text, /Content-Type: application\/problem\+json/i);
      }
      await works(program);
    } finally {
      clearInterval(trickle);
      for (const socket of slow) socket.destroy();
    }
  });

  test("clients that ask for large pages again and again and read none cost a bounded amount of memory", async () => {
    await using program = await startGateway();
    const line =
      "x=$(head -c 8000 /dev/zero | tr '\\0' x); i=0; while [ $i -lt 250 ]; do echo $x; i=$((i+1)); done";
    const { run } = await completed(program, await createJob(program, graph("wide", [executor("in", line)])));
    const page = `/api/v1/runs/${run.run_id}/events?page_size=200`;
    assert.ok((await ask(program, "GET", page)).text.length > 1_500_000);
    const before = memoryOf(program.pid).nowBytes;
    const sockets = await Promise.all(Array.from({ length: 40 }, () => dial(program)));
    try {
      for (const socket of sockets) socket.pause().write(request("GET", page).repeat(100));
      for (let i = 0; i < 3; i++) await works(program);
      // All that was asked for would be 6,400 MiB. What there may be is an answer for each socket, 64 MiB, and what the
      // collector has not cleared away yet of answers that the sockets took: up to 400 MiB were seen of it.
      const grown = (memoryOf(program.pid).peakBytes - before) / MiB;
      assert.ok(grown <= 1_200, `it took ${grown.toFixed(0)} MiB more`);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    await works(program);
  });

  test("HEAD on a stream is answered at once, without a body and without a stream behind it", async () => {
    await using program = await startGatewayHere();
    const runId = await startRun(program, await createJob(program, graph("waits", [sensor("s")])));
    await happens(program, runId, "agent_started");
    for (const path of ["events/stream", "stream", "stream?channels=logs"]) {
      const socket = await dial(program);
      const text = everything(socket);
      const close = ["Connection: close"];
      socket.write(request("HEAD", `/api/v1/runs/${runId}/${path}`, close));
      assert.match(await text, /^HTTP\/1\.1 200 .*text\/event-stream.*\r\n\r\n$/is);
      socket.destroy();
    }
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    assert.equal((await ended(program, runId)).run.status, "cancelled");
    assert.equal((await ask(program, "HEAD", `/runs/${runId}/events/stream`)).status, 200);
  });

  test("a client that asks for a tunnel and stays does not keep the program from stopping", async () => {
    await using program = await startGatewayHere();
    const sockets = [];
    for (const bytes of ["CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n", "\0\0\r\n\r\n"]) {
      const socket = await dial(program);
      socket.write(bytes);
      const [answer] = await read(socket, 1);
      assert.equal(answer?.status, 400);
      sockets.push(socket);
    }
    assert.deepEqual(await program.stop(), { code: 0, signal: null });
    for (const socket of sockets) socket.destroy();
  });
});
