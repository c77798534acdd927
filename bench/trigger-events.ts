// Trigger events: how many a gateway accepts in a second, each on disk when it is answered, and what one costs. Nobody reacts
// to them, without schedules and with 1,000; then each is one schedule's of 1,000, which collects them in batches, or starts a run.

import { createJob, startGateway } from "../test/support/gateway-api.ts";
import { graph, router } from "../test/support/graphs.ts";
import type { Program } from "../test/support/program.ts";
import { Connection, request } from "./connections.ts";
import { processorMs } from "./processor.ts";

const CLIENTS = 64;
const EVENTS = 20_000;
const RUNS = 4_000;
const WARM_UP = 3_000;
const SCHEDULES = 1_000;

/** @returns the figures; each name is a row */
export async function measureTriggerEvents(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("events")) return figures;
  const program = await startGateway({ env: { SVC_LOG_LEVEL: "warn" } });
  const url = new URL(program.api);
  const measure = async (name: string, count: number, typeOf: (n: number) => string) => {
    await emitMany(url, Math.min(count, WARM_UP), typeOf);
    figures.set(name, await emitMeasured(program, url, count, typeOf));
  };
  try {
    const jobId = await createJob(program, graph("react", [router("only")], [], { entrypoints: ["only"] }));
    const nobodys = (n: number) => `nobodys.${n % SCHEDULES}`;
    await measure("events that no schedule reacts to", EVENTS, nobodys);
    await makeSchedules(url, jobId, (n) => ({ type: `batched.${n}`, batch: { max: 1_000, seconds: 3_600 } }));
    await measure(`— with ${SCHEDULES} schedules of other types`, EVENTS, nobodys);
    await measure(
      `— each for one of ${SCHEDULES} schedules, in batches`,
      EVENTS,
      (n) => `batched.${n % SCHEDULES}`,
    );
    await makeSchedules(url, jobId, (n) => ({ type: `started.${n}` }));
    await measure("— each starts a run", RUNS, (n) => `started.${n % SCHEDULES}`);
  } finally {
    await program.stop();
  }
  return figures;
}

async function makeSchedules(url: URL, jobId: string, event: (n: number) => object): Promise<void> {
  await inParallel(url, SCHEDULES, (n) =>
    request(url, "POST", "/schedules", {
      body: JSON.stringify({ job_id: jobId, event: event(n), overlap: "allow" }),
    }),
  );
}

const emitMany = (url: URL, count: number, typeOf: (n: number) => string) =>
  inParallel(url, count, (n) =>
    request(url, "POST", "/events", {
      body: JSON.stringify({
        type: typeOf(n),
        payload: { path: `/srv/papers/${n}.pdf`, size: n },
        source: "bench",
      }),
    }),
  );

async function emitMeasured({ pid }: Program, url: URL, count: number, typeOf: (n: number) => string) {
  const before = processorMs(pid);
  const beganMs = performance.now();
  await emitMany(url, count, typeOf);
  const perSecond = (count / (performance.now() - beganMs)) * 1_000;
  const each = ((processorMs(pid) - before) / count) * 1_000;
  return `${Math.round(perSecond).toLocaleString("en")}/s, ${Math.round(each)} µs of processor time each`;
}

async function inParallel(url: URL, count: number, requestOf: (n: number) => Buffer): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const connection = new Connection(url);
      for (let n = next++; n < count; n = next++) {
        const { status, body } = await connection.send(requestOf(n));
        if (status >= 300) throw new Error(`answered ${status}: ${body.slice(0, 300)}`);
      }
      connection.close();
    }),
  );
}
