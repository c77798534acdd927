// The measurements of evidence: how long the first look at a large run takes, what memory it needs, and what a run loses
// while somebody looks at it all the time.

import { rm } from "node:fs/promises";
import { startProgram, temporaryHome } from "../test/support/program.ts";
import { send, submitAndWait, untilOver } from "./client.ts";
import { commands, fan } from "./manifests.ts";
import { peakMb, residentMb } from "./memory.ts";

const EVENTS = 100_000;
const env = { SVC_LOG_LEVEL: "warn" };

export async function measureEvidence(figures: Map<string, string>): Promise<void> {
  await measureFirstLook("of messages", fan(20, 2_400), figures);
  await measureFirstLook("of log lines", commands(1, ["seq", "1", String(EVENTS)]), figures);
  await measureWatchedRun(figures);
}

/** A fresh program each time, so that memory is that of the look alone. */
async function measureFirstLook(what: string, manifest: object, figures: Map<string, string>): Promise<void> {
  const home = await temporaryHome();
  try {
    let program = await startProgram({ home, env });
    const jobId = await submitAndWait(program.api, JSON.stringify(manifest));
    const { text } = await send(program.api, "GET", `/jobs/${jobId}`);
    const runId = (JSON.parse(text) as { job: { run_id: string } }).job.run_id;
    await program.stop();

    const times: number[] = [];
    let grownMb = 0;
    let eventCount = 0;
    for (let round = 0; round < 5; round++) {
      await rm(`${home}/evidence`, { recursive: true, force: true });
      program = await startProgram({ home, env });
      // One look at nothing large, so that the code is there.
      await send(program.api, "GET", `/runs/${runId}/artifacts?evidence=false`);
      const beforeMb = residentMb(program.pid);
      const from = performance.now();
      const answer = await send(program.api, "GET", `/runs/${runId}/artifacts`);
      times.push(performance.now() - from);
      grownMb = Math.max(grownMb, peakMb(program.pid) - beforeMb);
      if (answer.status !== 200) throw new Error(`artifacts: ${answer.status} ${answer.text}`);
      const summary = await send(program.api, "GET", `/runs/${runId}/artifacts/observability_summary_json`);
      eventCount = (JSON.parse(summary.text) as { counts: { events: number } }).counts.events;
      await program.stop();
    }
    const median = times.toSorted((a, b) => a - b)[2] ?? Number.NaN;
    figures.set(
      `first look at ${eventCount.toLocaleString("en")} events ${what}`,
      `${Math.round(median)} ms (${Math.round((median / eventCount) * EVENTS)} ms per 100,000), memory +${grownMb} MB`,
    );
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

const ROUNDS = 15;

/** Runs that nobody looks at and runs whose artifacts are listed take turns, so that slow moments hit all. */
async function measureWatchedRun(figures: Map<string, string>): Promise<void> {
  await using program = await startProgram({ env });
  const looks = { never: null, "every 100 ms": 100, "without a pause": 0 } as const;
  const times = new Map<string, number[]>();
  for (let round = -3; round < ROUNDS; round++) {
    for (const [name, pauseMs] of Object.entries(looks)) {
      const took = await timeWatched(program.api, pauseMs);
      if (round >= 0) times.set(name, [...(times.get(name) ?? []), took]);
    }
  }
  const medianOf = (name: string) =>
    (times.get(name) ?? []).toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
  const alone = medianOf("never");
  for (const name of Object.keys(looks)) {
    const took = medianOf(name);
    const share = Math.round((alone / took) * 100);
    figures.set(
      `82,000 messages, artifacts listed ${name}`,
      `${Math.round(took)} ms (${share} % of the throughput)`,
    );
  }
}

/** @returns how long the run took, as its own record tells: asking for that must not be what is measured */
async function timeWatched(api: string, pauseMs: number | null): Promise<number> {
  const { text } = await send(api, "POST", "/jobs", JSON.stringify(fan(20, 2_000)));
  const { id, run_id: runId } = JSON.parse(text) as { id: string; run_id: string };
  let isOver = false;
  const looking = (async () => {
    while (pauseMs !== null && !isOver) {
      await send(api, "GET", `/runs/${runId}/artifacts`);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  })();
  const status = await untilOver(api, id, 100);
  isOver = true;
  await looking;
  if (status !== "completed") throw new Error(`the job ended as ${status}`);
  const detail = JSON.parse((await send(api, "GET", `/jobs/${id}`)).text) as {
    readonly job: { readonly submitted_at: string; readonly updated_at: string };
  };
  return Date.parse(detail.job.updated_at) - Date.parse(detail.job.submitted_at);
}
