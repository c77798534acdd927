// For tests of requests that wait for an end: `Prefer: wait=N`.

import type { JsonObject } from "../../src/engine/json.ts";
import { call } from "./gateway-api.ts";
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
