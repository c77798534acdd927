// Crowds of streams on one run, of readers that read and readers that do not. The run completes, every reader gets
// every event, and the program's memory stays within a bound. What a crowd costs a run in time is measured by
// bench/gateway-streams.ts.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, happens, startGateway, startRun, walk } from "../support/gateway-api.ts";
import { answer, executor, graph, router } from "../support/graphs.ts";
import { sized } from "../support/long.ts";
import { memoryOf, seesProcesses } from "../support/processes.ts";
import type { Program } from "../support/program.ts";
import { type ReadOptions, readStream, toEvent } from "../support/wire-stream.ts";

const MiB = 1024 * 1024;
const STREAMS = sized(500, 2_000);
/** Of those that stop reading: how many read on in the end. */
const RETURNING = sized(10, 100);

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startGateway();
});
after(async () => {
  await program.stop();
  await gates.remove();
});

/** A worker that waits at the gate, then logs for a while; what it emits in the end goes through routers. */
function talking(gate: string, log: string): JsonObject {
  const routers = Array.from({ length: 10 }, (_, i) => `r${i}`);
  const messages = Array.from({ length: 20 }, (_, n) => ({ type: "work", body: { n } }));
  const command = `cat ${gate}; ${log}; ${answer({ emit_messages: messages })}`;
  return graph(
    "talking",
    [executor("talker", command), ...routers.map((id) => router(id))],
    routers.map((id) => ["talker", id, "work"] as const),
  );
}

/** Starts a run whose worker waits at the gate. */
async function startWaiting(manifest: JsonObject): Promise<string> {
  const runId = await startRun(program, await createJob(program, manifest));
  await happens(program, runId, "sandbox_job_started");
  return runId;
}

/** A crowd that gathers before something begins. */
function gathering(count: number): { readonly arrive: () => void; readonly isWhole: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = count;
  const arrive = () => {
    left--;
    if (left === 0) resolve();
  };
  return { arrive, isWhole: promise };
}

/** What the program has taken at most since `beforeBytes` were measured. */
function assertGrowth(beforeBytes: number, boundBytes: number): void {
  if (!seesProcesses) return;
  const grown = memoryOf(program.pid).peakBytes - beforeBytes;
  assert.ok(
    grown <= boundBytes,
    `it took ${Math.round(grown / MiB)} MiB more, of ${boundBytes / MiB} allowed`,
  );
}

test(`${STREAMS} streams at once on one run, a tenth of them not reading: it completes, all others get everything, memory is bounded`, async () => {
  const idlers = STREAMS / 10;
  const readers = STREAMS - idlers;
  const gate = gates.pipe("crowd");
  const runId = await startWaiting(
    talking(gate, 'i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i+1)); sleep 0.01; done'),
  );
  const path = `/runs/${runId}/events/stream`;
  const before = memoryOf(program.pid).nowBytes;
  const crowd = gathering(readers + idlers);
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const idle = Array.from({ length: idlers }, () =>
    readToTheEnd(path, { onOpen: crowd.arrive, idleUntil: over }),
  );
  const reading = Array.from({ length: readers }, async () => {
    const digest = createHash("sha256");
    let count = 0;
    const read = await readStream(program, path, { onOpen: crowd.arrive }, (block) => {
      digest.update(block);
      count++;
    });
    return `${read} ${count} ${digest.digest("hex")}`;
  });
  await crowd.isWhole;
  await gates.open(gate);
  const read = await Promise.all(reading);
  // A connection with what belongs to it takes some 40 KiB; events are held once, not once per reader. Three
  // times that is allowed, for a collector that has not come round yet.
  assertGrowth(before, Math.max(100, 0.12 * STREAMS) * MiB);
  const history = await walk(program, `/runs/${runId}/events`);
  const alone = createHash("sha256");
  const whole = await readStream(program, path, {}, (block) => alone.update(block));
  assert.deepEqual([...new Set(read)], [`${whole} ${history.length} ${alone.digest("hex")}`]);
  assert.equal((await call(program, "GET", `/runs/${runId}`)).status, "completed");
  end();
  // One that has not read for a minute may have been cut off, and comes back.
  const told = history.map(({ id, type }) => `${id} ${type}`);
  for (const events of await Promise.all(idle))
    assert.deepEqual(events, told, "who reads at last gets the rest");
});

test("100 readers that stop reading while a run says 8 MB hold up nobody, and get everything once they read", async () => {
  const [readers, idlers] = [5, 100];
  const gate = gates.pipe("stalled");
  const line = "$(head -c 8000 /dev/zero | tr '\\0' x)";
  const runId = await startWaiting(
    talking(gate, `x=${line}; i=0; while [ $i -lt 1000 ]; do echo $x; i=$((i+1)); done`),
  );
  const path = `/runs/${runId}/events/stream`;
  const before = memoryOf(program.pid).nowBytes;
  const crowd = gathering(readers + idlers);
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const follow = (idleUntil: Promise<unknown>) => readToTheEnd(path, { onOpen: crowd.arrive, idleUntil });
  const idle = Array.from({ length: RETURNING }, () => follow(over));
  // The others stay as they are until the program ends them.
  const never = { onOpen: crowd.arrive, idleUntil: new Promise<never>(() => {}) };
  for (let i = RETURNING; i < idlers; i++) readStream(program, path, never, () => {}).catch(() => {});
  const reading = Array.from({ length: readers }, () => follow(Promise.resolve()));
  await crowd.isWhole;
  await gates.open(gate);
  const read = await Promise.all(reading);
  const history = (await walk(program, `/runs/${runId}/events`)).map(({ id, type }) => `${id} ${type}`);
  for (const events of read) assert.deepEqual(events, history);
  // The history goes through memory as it is written, and in pieces as it is read, and not once per reader: what the
  // idle ones' sockets do not take would be 400 MiB.
  assertGrowth(before, 240 * MiB);
  end();
  for (const events of await Promise.all(idle)) assert.deepEqual(events, history);
});

/** Reads a stream, and comes back by id as long as there is more. @returns each event's id and type */
async function readToTheEnd(path: string, options: ReadOptions): Promise<readonly string[]> {
  const seen: string[] = [];
  let next = options;
  for (;;) {
    const end = await readStream(program, path, next, (block) => {
      const { id, event } = toEvent(block);
      seen.push(`${id} ${event}`);
      next = { lastId: id };
    });
    if (end === "nothing_left") return seen;
  }
}
