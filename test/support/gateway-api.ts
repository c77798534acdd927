// A bare client of the gateway for tests: fetch and nothing else, so that it shares no mistake with the program's own
// client. What a test waits for, it waits for on a run's event stream.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Files, zipOf } from "./bundle-files.ts";
import { blocksOf, happensIn } from "./event-stream.ts";
import { type Program, type ProgramOptions, startProgram } from "./program.ts";
import { until } from "./until.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it came. */
  readonly text: string;
  /** The body as JSON; {} when it is none. */
  readonly body: JsonObject;
}

export interface Asked {
  /** Sent as JSON; nothing is sent when absent. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One frame of an event stream. */
export interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: JsonObject;
}

/** An event of a run, as histories and streams show it. */
export interface SeenEvent {
  readonly id: number;
  readonly run_id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly agent_id: string | null;
  readonly payload: JsonObject;
  readonly error?: JsonObject;
}

/** Starts the gateway, with its runtime beside it unless `args` say otherwise. */
export async function startGateway(options: ProgramOptions = {}): Promise<Program> {
  return at(await startProgram({ args: ["up"], ...options }), "gateway");
}

/** The same program, seen at its runtime API. */
export const runtimeApiOf = (program: Program): Promise<Program> => at(program, "runtime API");

/** The program at the API that its first lines show under this name. */
async function at(program: Program, name: string): Promise<Program> {
  const line = new RegExp(`^  ${name} +(http:\\S+)\n`, "m");
  const api = await until(
    `the URL of the ${name} is printed`,
    () => line.exec(program.output())?.[1] ?? null,
  );
  return { ...program, api, url: new URL(api).origin };
}

/** One request; any status is an answer. @param path below /api/v1, or a whole path */
export async function ask(
  program: Program,
  method: string,
  path: string,
  asked: Asked = {},
): Promise<Answer> {
  const { body, headers } = asked;
  const answer = await fetch(urlOf(program, path), {
    method,
    redirect: "manual",
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return toAnswer(answer);
}

/** Like `ask`; a status of 400 or more is an error that shows the answer. @returns the body */
export async function call(
  program: Program,
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
): Promise<JsonObject> {
  const answer = await ask(program, method, path, { body, ...(headers !== undefined && { headers }) });
  if (answer.status < 400) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${answer.text}\n${program.output()}`);
}

/** Asserts that an answer is a problem body of this status and code, and returns it. */
export function assertProblem(answer: Answer, status: number, code: string): JsonObject {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  assert.equal(answer.body.code, code);
  assert.equal(answer.body.status, status);
  assert.equal(typeof answer.body.title, "string");
  assert.equal(typeof answer.body.type, "string");
  assert.ok(String(answer.body.detail).length > 0);
  assert.equal(answer.body.request_id, answer.headers.get("x-request-id"));
  return answer.body;
}

/** The paths of a problem's errors. */
export function pathsOf(answer: Answer): readonly unknown[] {
  return ((answer.body.errors ?? []) as readonly JsonObject[]).map(({ path }) => path);
}

function urlOf({ api, url }: Program, path: string): string {
  return path.startsWith("/api/") ? url + path : api + path;
}

async function toAnswer(answer: Response): Promise<Answer> {
  const text = await answer.text();
  const isJson = /^application\/(problem\+)?json/.test(answer.headers.get("content-type") ?? "");
  const body = isJson && text !== "" ? (JSON.parse(text) as JsonObject) : {};
  return { status: answer.status, headers: answer.headers, text, body };
}

// ---------------------------------------------------------------------------------- bundles, jobs, runs

/** Sends bytes as an upload. */
export async function sendBundle(
  program: Program,
  zip: Uint8Array<ArrayBuffer>,
  asked: { readonly field?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Answer> {
  const form = new FormData();
  form.set(asked.field ?? "bundle", new Blob([zip], { type: "application/zip" }), "bundle.zip");
  const headers = { ...asked.headers };
  return toAnswer(await fetch(`${program.api}/bundles`, { method: "POST", body: form, headers }));
}

/** Uploads a bundle made in memory. @param files further files. @returns its id */
export async function uploadBundle(
  program: Program,
  manifest: JsonObject,
  files: Files = {},
): Promise<string> {
  const answer = await sendBundle(program, await zipOf({ "manifest.json": manifest, ...files }));
  assert.equal(answer.status, 201, answer.text);
  return String(answer.body.bundle_id);
}

/** Uploads a bundle and creates a job of it. @param more further fields of the job. @returns the job's id */
export async function createJob(
  program: Program,
  manifest: JsonObject,
  more: JsonObject = {},
  files: Files = {},
): Promise<string> {
  const bundleId = await uploadBundle(program, manifest, files);
  return String((await call(program, "POST", "/jobs", { bundle_id: bundleId, ...more })).job_id);
}

/** Starts a run of a job. @returns its id */
export async function startRun(program: Program, jobId: string, body: JsonObject = {}): Promise<string> {
  return String((await call(program, "POST", `/jobs/${jobId}/runs`, body)).run_id);
}

/** All items of a list, page by page. */
export async function walk(program: Program, list: string, pageSize = 200): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  let token: string | null = null;
  do {
    const separator = list.includes("?") ? "&" : "?";
    const next: string = token === null ? "" : `&page_token=${encodeURIComponent(token)}`;
    const page = await call(program, "GET", `${list}${separator}page_size=${pageSize}${next}`);
    items.push(...(page.items as readonly JsonObject[]));
    token = page.next_page_token as string | null;
  } while (token !== null);
  return items;
}

// --------------------------------------------------------------------------------------------- streams

/** How long a run that never ends can hold up a test run; no test asserts on it. */
const STREAM_LIMIT_MS = 180_000;

/** The frames of a stream until it ends, or until the caller stops listening. @param path below /api/v1 */
export async function* frames(
  program: Program,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  limitMs: number = STREAM_LIMIT_MS,
): AsyncGenerator<Frame, undefined> {
  const signal = AbortSignal.timeout(limitMs);
  const answer = await fetch(urlOf(program, path), { headers: { ...headers }, signal });
  if (answer.status === 204) return;
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  for await (const { fields } of blocksOf(answer)) {
    const data = fields.get("data");
    if (data === undefined) continue;
    const event = fields.get("event") ?? "";
    yield { id: Number(fields.get("id")), event, data: JSON.parse(data) as JsonObject };
  }
}

/** A run's events, from its first one until it ends or the caller stops listening. */
export async function* follow(program: Program, runId: string): AsyncGenerator<SeenEvent, undefined> {
  for await (const { data } of frames(program, `/runs/${runId}/events/stream`)) {
    yield data as unknown as SeenEvent;
  }
}

/** Waits until an event of a run has happened; it may have happened long ago. */
export const happens = (program: Program, runId: string, wanted: string | ((event: SeenEvent) => boolean)) =>
  happensIn(follow(program, runId), `run ${runId}`, wanted);

export interface EndedRun {
  /** The run's record. */
  readonly run: JsonObject;
  /** The whole history, as the stream told it. */
  readonly events: readonly SeenEvent[];
  /** The events of one type. */
  of(type: string): readonly SeenEvent[];
}

/** Waits until a run has ended. */
export async function ended(program: Program, runId: string): Promise<EndedRun> {
  const events = await Array.fromAsync(follow(program, runId));
  const run = await call(program, "GET", `/runs/${runId}`);
  return { run, events, of: (type) => events.filter((event) => event.type === type) };
}

/** Starts a run and waits until it has completed. */
export async function completed(program: Program, jobId: string, body: JsonObject = {}): Promise<EndedRun> {
  const end = await ended(program, await startRun(program, jobId, body));
  assert.equal(end.run.status, "completed", JSON.stringify(end.run.failure));
  return end;
}
