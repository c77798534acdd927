// npm run bench:streams: what 2,000 live streams on one run, a tenth of them not reading, cost that run. Each graph is
// run alone and with its crowd, in turns, so that the machine's slow moments hit both.
//
//   npm run bench:streams
//   npm run bench:streams -- --streams 2000 --rounds 5

import { connect, type Socket } from "node:net";
import { parseArgs } from "node:util";
import type { JsonObject } from "../src/engine/json.ts";
import { type Gates, makeGates } from "../test/support/gates.ts";
import { createJob, happens, startGateway, startRun } from "../test/support/gateway-api.ts";
import { answer, executor, graph, router } from "../test/support/graphs.ts";
import type { Program } from "../test/support/program.ts";
import { peakMb, residentMb } from "./memory.ts";
import { printTable } from "./table.ts";

const IDLE_SHARE = 0.1;

const { values } = parseArgs({
  options: { streams: { type: "string", default: "2000" }, rounds: { type: "string", default: "5" } },
});
const streams = Number(values.streams);
const rounds = Number(values.rounds);

/** Begins at the gate: a worker that logs, then routers for what it emits. */
function graphs(gate: string): ReadonlyMap<string, JsonObject> {
  const width = 20;
  const routers = Array.from({ length: width }, (_, i) => `r${i}`);
  const make = (log: string, messages: number) => {
    const emitted = Array.from({ length: messages }, (_, n) => ({ type: "work", body: { n } }));
    return graph(
      "streams",
      [
        executor("talker", `cat ${gate}; ${log}${answer({ emit_messages: emitted })}`),
        ...routers.map((id) => router(id)),
      ],
      routers.map((id) => ["talker", id, "work"] as const),
    );
  };
  const steadily = 'i=0; while [ $i -lt 300 ]; do echo "line $i"; i=$((i+1)); sleep 0.01; done; ';
  return new Map([
    ["a worker that logs 300 lines in 3 s, then 800 events of routers", make(steadily, 20)],
    ["routers, 80,000 events as fast as they can", make("", 2_000)],
  ]);
}

/** @returns ms from the gate to the run's end, by the run's own events */
async function timeRun(program: Program, gates: Gates, gate: string, jobId: string, count: number) {
  const runId = await startRun(program, jobId);
  await happens(program, runId, "sandbox_job_started");
  const crowd = await gather(program, runId, count);
  await gates.open(gate);
  const openedAtMs = performance.timeOrigin + performance.now();
  // Asked for now and then only: following it would be one more stream.
  const run = await untilEnded(program, runId);
  for (const socket of crowd) socket.destroy();
  if (run.status !== "completed") throw new Error(`the run ended as ${run.status}`);
  return Date.parse(String(run.finished_at)) - openedAtMs;
}

async function untilEnded(program: Program, runId: string): Promise<JsonObject> {
  for (;;) {
    const run = (await (await fetch(`${program.api}/runs/${runId}`)).json()) as JsonObject;
    if (run.finished_at !== null) return run;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Opens streams on a run; resolves when all of them are answered. */
function gather(program: Program, runId: string, count: number): Promise<readonly Socket[]> {
  const { hostname, port } = new URL(program.url);
  const head = `GET /api/v1/runs/${runId}/events/stream HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`;
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on("error", () => {});
      socket.write(head);
      await new Promise((resolve) => socket.once("data", resolve));
      if (i < count * IDLE_SHARE) socket.pause();
      else socket.on("data", () => {});
      return socket;
    }),
  );
}

const medianOf = (times: readonly number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;

const gates = await makeGates();
await using program = await startGateway({ env: { SVC_LOG_LEVEL: "warn" } });
const figures = new Map<string, string>();
const beforeMb = residentMb(program.pid);
let seq = 0;
for (const name of graphs("").keys()) {
  const alone: number[] = [];
  const crowded: number[] = [];
  for (let round = -1; round < rounds; round++) {
    for (const [times, count] of [
      [alone, 0],
      [crowded, streams],
    ] as const) {
      const gate = gates.pipe(`gate${++seq}`);
      const jobId = await createJob(program, graphs(gate).get(name)!);
      const ms = await timeRun(program, gates, gate, jobId, count);
      // The first round is compiled while it runs.
      if (round >= 0) times.push(ms);
    }
  }
  const change = (medianOf(crowded) / medianOf(alone) - 1) * 100;
  figures.set(`${name}: alone`, `${medianOf(alone).toFixed(0)} ms`);
  figures.set(
    `${name}: with ${streams} streams`,
    `${medianOf(crowded).toFixed(0)} ms (${change.toFixed(1)} %)`,
  );
}
figures.set("resident, growth at its peak", `${peakMb(program.pid) - beforeMb} MB`);
await gates.remove();
printTable([{ name: "the gateway", figures }]);
