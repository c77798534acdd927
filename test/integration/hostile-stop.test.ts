// Asked to stop in the middle of work: the program ends well and in time, leaves no process behind, and the next start
// carries on. What it interrupted by that does not count as a failed attempt.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startRuntimeHere } from "../support/in-process.ts";
import { executor, graph } from "../support/manifests.ts";
import { processesWith, seesProcesses } from "../support/processes.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";
import { call, follow, historyOf, jobDetail, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "4" };
/** How long a stopping program lets commands go on (DRAIN_MS in src/app/app.ts). */
const LEFT_TO_COMMANDS_MS = 2_000;

/** Sleeps for ever on its first attempt, with children in and outside its process group; then it succeeds. */
const stubborn = [
  'trap "" TERM INT HUP',
  'if [ "$SVC_ATTEMPT" = 1 ]; then sleep 300 & setsid sleep 300 & wait; fi',
  'echo "attempt $SVC_ATTEMPT"',
].join("; ");

const work = graph(
  "work",
  [
    executor("worker", stubborn, { max_attempts: 1 }),
    { node_id: "out", agent_type: "aggregator", config: { complete_after: 1 } },
  ],
  ["worker>out"],
);

/** Ends by itself soon after the file is there, within the time that a stopping program leaves it. */
const nearlyDone = (gate: string) =>
  graph("nearly-done", [
    executor("worker", 'while [ ! -e "$GATE" ]; do sleep 0.02; done; echo "attempt $SVC_ATTEMPT"', {
      environment: { GATE: gate },
      max_attempts: 1,
    }),
  ]);

const service = (log: string) =>
  graph(
    "service",
    [
      executor("server", 'echo "$SVC_ATTEMPT" >> "$LOG"; exec sleep 300', {
        lifecycle: "long_lived",
        environment: { LOG: log },
      }),
    ],
    [],
    { type: "service" },
  );

describe("asked to stop while commands run", { concurrency: true }, () => {
  test("SIGTERM: it ends with 0 and without a process left, and the next start carries on", async () => {
    const home = await temporaryHome();
    const outside = await mkdtemp(join(tmpdir(), "troupe-stop-"));
    const log = join(outside, "starts");
    try {
      await using first = await startProgram({ home, env });
      const jobs = { work: await submit(first, work), service: await submit(first, service(log)) };
      for (const jobId of Object.values(jobs)) await started(first, jobId);
      const starts = () => readFile(log, "utf8").catch(() => "");
      await until("the service is up", async () => (await starts()) === "1\n");
      // Open streams end with the server; how they end is the reader's matter, who comes back with an id.
      const streams = Promise.allSettled(Object.values(jobs).map((jobId) => historyOf(first, jobId)));

      await stopsWell(first, "SIGTERM");
      assert.match(first.output(), /open jobs? will resume at the next start/);
      await streams;

      await using second = await startRuntimeHere({ home, env });
      await endedWell(second, jobs.work);
      const interrupted = await typesOf(second, jobs.work);
      assert.ok(interrupted.includes("job_recovered"), "the history says that the job was carried on");
      assert.ok(interrupted.includes("executor_interrupted"), "and that its command was interrupted");
      const { result } = (await jobDetail(second, jobs.work)).job;
      assert.match(JSON.stringify(result), /attempt 2/, "max_attempts 1 is not used up by the interruption");
      assert.equal((await jobDetail(second, jobs.service)).job.status, "running");
      await until("the service is up again", async () => (await starts()) === "1\n2\n");
    } finally {
      await rm(home, { recursive: true, force: true });
      await rm(outside, { recursive: true, force: true });
    }
  });

  test("SIGINT: the same, and what ends in the time that is left to it is kept, and not run again", async () => {
    const home = await temporaryHome();
    const outside = await mkdtemp(join(tmpdir(), "troupe-stop-"));
    const gate = join(outside, "open");
    try {
      await using first = await startProgram({ home, env });
      const jobId = await submit(first, nearlyDone(gate));
      await started(first, jobId);
      const askedAtMs = performance.now();
      const stopped = stopsWell(first, "SIGINT");
      await writeFile(gate, "");
      await stopped;
      const tookMs = performance.now() - askedAtMs;

      await using second = await startRuntimeHere({ home, env });
      await endedWell(second, jobId);
      const result = JSON.stringify((await jobDetail(second, jobId)).job.result);
      // On a machine that stood still its time may be over before it has seen the gate; then all of it was waited for.
      if (tookMs < LEFT_TO_COMMANDS_MS) assert.match(result, /attempt 1/);
      else assert.match(result, /attempt [12]/);
    } finally {
      await rm(home, { recursive: true, force: true });
      await rm(outside, { recursive: true, force: true });
    }
  });

  test("requests that come while it stops get 503 or no connection, never a false promise", async () => {
    const home = await temporaryHome();
    try {
      await using first = await startProgram({ home, env });
      await started(first, await submit(first, work));
      process.kill(first.pid, "SIGTERM");
      const accepted: string[] = [];
      const late = graph("late", [{ node_id: "in", agent_type: "router" }]);
      // Until nobody listens: from then on the port may be somebody else's.
      for (let isServed = true; isServed; ) {
        const answer = await request(first, "POST", "/jobs", late).catch((error: Error) => {
          isServed = (error.cause as NodeJS.ErrnoException | undefined)?.code !== "ECONNREFUSED";
          return null;
        });
        if (answer?.status === 201) accepted.push(String(answer.body.id));
        else if (answer !== null) assert.equal(answer.status, 503, JSON.stringify(answer.body));
      }
      await first.exited;
      await using second = await startRuntimeHere({ home, env });
      for (const jobId of accepted) await endedWell(second, jobId);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

async function submit(program: Program, manifest: object): Promise<string> {
  return String((await call(program, "POST", "/jobs", manifest)).id);
}

/** Asks a program to stop that has a command at work, and waits until it has. */
async function stopsWell(program: Program, signal: "SIGTERM" | "SIGINT"): Promise<void> {
  process.kill(program.pid, signal);
  assert.deepEqual(await program.exited, { code: 0, signal: null }, program.output());
  assert.match(program.output(), /Stopped\./);
  // One that was killed a moment ago may still be on its way out; one that stays, stays for minutes.
  if (seesProcesses) await until("no process is left", () => processesWith(program.home).length === 0);
}

async function started(program: Program, jobId: string): Promise<void> {
  for await (const { type } of follow(program, jobId)) if (type === "sandbox_job_started") break;
}

async function endedWell(program: Program, jobId: string): Promise<void> {
  const events = await historyOf(program, jobId);
  assert.equal(events.at(-1)?.type, "job_completed", JSON.stringify(events.at(-1)));
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, i) => i + 1),
    "no gap",
  );
}

async function typesOf(program: Program, jobId: string): Promise<readonly string[]> {
  return (await historyOf(program, jobId)).map(({ type }) => type);
}
