// For tests of requests that wait for an end: `Prefer: wait=N`.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import { ask, call, walk } from "./gateway-api.ts";
import type { Program } from "./program.ts";
import { until } from "./until.ts";

export const waiting = (seconds: number) => ({ prefer: `wait=${seconds}` });

/** The longest wait there is: a test that uses it waits for a fact. */
export const LONG = waiting(60);

/** How many requests of either API wait now. @param gateway the program at its gateway */
export async function waitingRequests(gateway: Program): Promise<number> {
  const { runtime } = (await call(gateway, "GET", "/metrics")) as { readonly runtime: JsonObject };
  return Number(runtime.waiting_requests);
}

export async function untilWaiting(gateway: Program, count: number): Promise<void> {
  await until(`${count} requests wait`, async () => (await waitingRequests(gateway)) === count);
}

/** Starts many runs of a job in one request, and waits until all of them have ended. */
export async function startAndEnd(program: Program, jobId: string, count: number): Promise<void> {
  const body = { items: Array.from({ length: count }, () => ({})) };
  const answer = await ask(program, "POST", `/jobs/${jobId}/runs:batch`, { body, headers: LONG });
  assert.equal(answer.status, 200, answer.text);
  await runsEnded(program, jobId);
}

/** Waits until no run of a job is open. @returns all of them */
export async function runsEnded(program: Program, jobId: string): Promise<readonly JsonObject[]> {
  await until(`all runs of ${jobId} have ended`, async () => {
    const { active_runs: active } = await call(program, "GET", `/jobs/${jobId}`);
    return active === 0;
  });
  return walk(program, `/jobs/${jobId}/runs`);
}
