// What it costs to be answered with the end (`Prefer: wait`): one two-step job at a time on a connection that is kept,
// and 1,000 of them in one request. For both APIs.

import { Connection, type Reply, request } from "./connections.ts";

/** Starts that wait: a path below the API, and the body of one start. */
export interface WaitedStart {
  readonly url: URL;
  readonly path: string;
  readonly body: unknown;
}

const WARM_UP = 300;
const SINGLE = 1_000;
const BATCH = 1_000;
const BATCHES = 10;
const headers = { Prefer: "wait=60" };

const quantile = (values: readonly number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(q * values.length)] ?? Number.NaN;
const shown = (ms: number) => `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;

/** @param figures filled with the p50 and p99 of one start at a time */
export async function measureWait(
  { url, path, body }: WaitedStart,
  figures: Map<string, string>,
): Promise<void> {
  const connection = new Connection(url);
  const bytes = request(url, "POST", path, { headers, body: JSON.stringify(body) });
  const times: number[] = [];
  while (times.length < WARM_UP + SINGLE) {
    const from = performance.now();
    const reply = await connection.send(bytes);
    times.push(performance.now() - from);
    mustHaveEnded(reply, 1);
  }
  connection.close();
  const steady = times.slice(WARM_UP);
  figures.set("two-step job with Prefer: wait, p50", shown(quantile(steady, 0.5)));
  figures.set("— p99", shown(quantile(steady, 0.99)));
}

/** @param figures filled with the jobs per second of batches, from the request to all ends */
export async function measureBatch(
  { url, path, body }: WaitedStart,
  figures: Map<string, string>,
): Promise<void> {
  const text = JSON.stringify({ items: Array.from({ length: BATCH }, () => body) });
  const asked = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: text };
  const times: number[] = [];
  while (times.length < 2 * BATCHES) {
    const from = performance.now();
    const answer = await fetch(`${url}${path}:batch`, asked);
    const reply = { status: answer.status, body: await answer.text() };
    times.push(performance.now() - from);
    mustHaveEnded(reply, BATCH);
  }
  // The first ones are compiled while they run.
  const steady = times.slice(BATCHES);
  const perSecond = (ms: number) => Math.round((BATCH / ms) * 1_000).toLocaleString("en");
  figures.set(`a batch of ${BATCH} two-step jobs with Prefer: wait, p50`, shown(quantile(steady, 0.5)));
  figures.set("— p99 ", shown(quantile(steady, 0.99)));
  figures.set(
    "— jobs/s, median / best",
    `${perSecond(quantile(steady, 0.5))} / ${perSecond(Math.min(...steady))}`,
  );
}

/** @throws Error unless all of the two-step jobs have completed */
export function mustHaveEnded({ status, body }: Reply, count: number): void {
  const ended = body.match(/"status":"completed"/g)?.length ?? 0;
  if (status !== 200 || ended < count) throw new Error(`answered ${status}: ${body.slice(0, 300)}`);
}
