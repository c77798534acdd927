// A bare client of the runtime API for tests: fetch and nothing else, so that it shares no mistake with the
// program's own client.

import type { JsonObject } from "../../src/engine/json.ts";
import { blocksOf } from "./event-stream.ts";
import type { Program } from "./program.ts";

export interface Answer {
  readonly status: number;
  readonly body: JsonObject;
}

/** An event as the stream shows it, with its sequence number. */
export interface SeenEvent {
  readonly id: number;
  readonly type: string;
  /** Absent, or null on the gateway, in events of the whole job. */
  readonly agent_id?: string | null;
  readonly payload: JsonObject;
  readonly error?: JsonObject;
}

export interface JobDetail {
  readonly job: {
    readonly job_id: string;
    readonly run_id: string;
    readonly status: string;
    readonly result: JsonObject | null;
  };
  readonly agents: readonly {
    readonly agent_id: string;
    readonly processed_messages: number;
    readonly status: string;
    readonly current_state: JsonObject;
  }[];
}

export interface Artifact {
  readonly artifact_id: string;
  readonly name: string;
  readonly kind: string;
  readonly title: string | null;
  readonly primary: boolean;
  readonly size: number;
  readonly sha256: string;
  readonly content_type: string;
  readonly url: string;
}

export async function request(
  program: Program,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const answer = await fetch(program.api + path, {
    method,
    ...(body !== undefined && {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
  return { status: answer.status, body: (await answer.json()) as JsonObject };
}

/** Like `request`, and a status of 400 or more is an error that shows the answer. */
export async function call(
  program: Program,
  method: string,
  path: string,
  body?: unknown,
): Promise<JsonObject> {
  const answer = await request(program, method, path, body);
  if (answer.status < 400) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}\n${program.output()}`);
}

/**
 * Registers a folder and submits a job of it.
 * @returns the job's id
 */
export async function submitFolder(
  program: Program,
  folder: string,
  given: { readonly inputs?: JsonObject; readonly config?: JsonObject } = {},
): Promise<string> {
  const bundle = await call(program, "POST", "/bundles", { path: folder });
  const job = await call(program, "POST", "/jobs", { bundle_id: bundle.bundle_id, ...given });
  return String(job.id);
}

export async function jobDetail(program: Program, jobId: string): Promise<JobDetail> {
  return (await call(program, "GET", `/jobs/${encodeURIComponent(jobId)}`)) as unknown as JobDetail;
}

/** The files that the run's workers left. */
export async function artifactsOf(program: Program, runId: string): Promise<readonly Artifact[]> {
  const answer = await call(program, "GET", `/runs/${encodeURIComponent(runId)}/artifacts?evidence=false`);
  return answer.data as unknown as readonly Artifact[];
}

/** The bytes behind a URL of the API, absolute or from the server's root. */
export async function bytesOf(program: Program, url: string): Promise<Buffer> {
  const answer = await fetch(new URL(url, program.url));
  if (!answer.ok) throw new Error(`GET ${url}: ${answer.status} ${await answer.text()}`);
  return Buffer.from(await answer.arrayBuffer());
}

/** How long a job that never ends can hold up a test run; no test asserts on it. */
const STREAM_LIMIT_MS = 180_000;

/** Follows a job's live stream from its first event until it ends or the caller stops listening. */
export async function* follow(program: Program, jobId: string): AsyncGenerator<SeenEvent> {
  const answer = await fetch(`${program.api}/jobs/${encodeURIComponent(jobId)}/events/stream`, {
    signal: AbortSignal.timeout(STREAM_LIMIT_MS),
  });
  if (!answer.ok) throw new Error(`stream: ${answer.status} ${await answer.text()}`);
  for await (const { fields } of blocksOf(answer)) {
    const data = fields.get("data");
    if (data === undefined) continue;
    yield { id: Number(fields.get("id")), ...(JSON.parse(data) as Omit<SeenEvent, "id">) };
  }
}

/** All events of a job, up to the terminal one. */
export async function historyOf(program: Program, jobId: string): Promise<readonly SeenEvent[]> {
  return Array.fromAsync(follow(program, jobId));
}
