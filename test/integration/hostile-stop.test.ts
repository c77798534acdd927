// Asked to stop in the middle of work: the program ends well and in time, leaves no process behind, and the next start
// carries on. What it interrupted by that does not count as a failed attempt.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { executor, graph } from "../support/manifests.ts";
import { processesWith, seesProcesses } from "../support/processes.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";
import { call, follow, historyOf, jobDetail, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "4" };

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
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`${signal}: it ends with 0 and without a process left, and the next start carries on`, async () => {
      const home = await temporaryHome();
      const outside = await mkdtemp(join(tmpdir(), "troupe-stop-"));
      const gate = join(outside, "open");
      const log = join(outside, "starts");
      try {
        const first = await startProgram({ home, env });
        const submit = async (manifest: object) => String((await call(first, "POST", "/jobs", manifest)).id);
        const jobs = {
          work: await submit(work),
          nearlyDone: await submit(nearlyDone(gate)),
          service: await submit(service(log)),
        };
        for (const jobId of Object.values(jobs)) await started(first, jobId);
        await until("the service is up", () => readFile(log, "utf8").catch(() => null));
        // Open streams end with the server; how they end is the reader's matter, who comes back with an id.
        const streams = Promise.allSettled(Object.values(jobs).map((jobId) => historyOf(first, jobId)));

        process.kill(first.pid, signal);
        await writeFile(gate, "");
        assert.deepEqual(await first.exited, { code: 0, signal: null }, first.output());
        assert.match(first.output(), /open jobs? handed to the next start/);
        assert.match(first.output(), /Stopped\./);
        if (seesProcesses) assert.deepEqual(processesWith(home), [], "no process is left");
        await streams;

        await using second = await startProgram({ home, env });
        for (const jobId of [jobs.work, jobs.nearlyDone]) await endedWell(second, jobId);
        const interrupted = await typesOf(second, jobs.work);
        assert.ok(interrupted.includes("job_recovered"), "the history says that the job was carried on");
        assert.ok(interrupted.includes("executor_interrupted"), "and that its command was interrupted");
        const { result } = (await jobDetail(second, jobs.work)).job;
        assert.match(
          JSON.stringify(result),
          /attempt 2/,
          "max_attempts 1 is not used up by the interruption",
        );
        const done = (await jobDetail(second, jobs.nearlyDone)).job;
        assert.match(
          JSON.stringify(done.result),
          /attempt 1/,
          "what ends in time is kept, and not run again",
        );
        assert.equal((await jobDetail(second, jobs.service)).job.status, "running");
        await until("the service is up again", async () => (await readFile(log, "utf8")) === "1\n2\n");
      } finally {
        await rm(home, { recursive: true, force: true });
        await rm(outside, { recursive: true, force: true });
      }
    });
  }

  test("requests that come while it stops get 503 or no connection, never a false promise", async () => {
    const home = await temporaryHome();
    try {
      const first = await startProgram({ home, env });
      await started(first, String((await call(first, "POST", "/jobs", work)).id));
      process.kill(first.pid, "SIGTERM");
      const accepted: string[] = [];
      let isOver = false;
      void first.exited.then(() => {
        isOver = true;
      });
      while (!isOver) {
        const answer = await request(
          first,
          "POST",
          "/jobs",
          graph("late", [{ node_id: "in", agent_type: "router" }]),
        ).catch(() => null);
        if (answer?.status === 201) accepted.push(String(answer.body.id));
        else if (answer !== null) assert.equal(answer.status, 503, JSON.stringify(answer.body));
      }
      await using second = await startProgram({ home, env });
      for (const jobId of accepted) await endedWell(second, jobId);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

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
