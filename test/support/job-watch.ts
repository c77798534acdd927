// Waiting for facts of a job: submit it, then wait on its live stream for what a test needs to have happened.

import type { JsonObject } from "../../src/engine/json.ts";
import { happensIn } from "./event-stream.ts";
import type { Program } from "./program.ts";
import { call, follow, type SeenEvent } from "./runtime-api.ts";

export interface Run {
  readonly jobId: string;
  readonly status: string;
  readonly result: JsonObject;
  readonly detail: JsonObject;
  /** The whole history, as the live stream told it. */
  readonly events: readonly SeenEvent[];
  /** The types of the events in order, of one agent if it is named. */
  types(agentId?: string): string[];
  /** The events of one type, of one agent if it is named. */
  of(type: string, agentId?: string): SeenEvent[];
}

/** Submits a job. @returns its id */
export async function submit(program: Program, body: JsonObject): Promise<string> {
  return String((await call(program, "POST", "/jobs", body)).id);
}

/** Submits a job and waits for its end. */
export async function run(program: Program, body: JsonObject): Promise<Run> {
  return ended(program, await submit(program, body));
}

/** Waits until a job has ended. */
export async function ended(program: Program, jobId: string): Promise<Run> {
  const events = await Array.fromAsync(follow(program, jobId));
  const detail = await call(program, "GET", path(jobId));
  const job = detail.job as { readonly status: string; readonly result: JsonObject };
  const by = (agentId?: string) => (event: SeenEvent) => agentId === undefined || event.agent_id === agentId;
  return {
    jobId,
    status: job.status,
    result: job.result,
    detail,
    events,
    types: (agentId) => events.filter(by(agentId)).map((event) => event.type),
    of: (type, agentId) => events.filter(by(agentId)).filter((event) => event.type === type),
  };
}

/** Waits until an event of a job has happened; it may have happened long ago. */
export const happens = (program: Program, jobId: string, wanted: string | ((event: SeenEvent) => boolean)) =>
  happensIn(follow(program, jobId), `job ${jobId}`, wanted);

/** Path of a job below the API's prefix; whatever its id is. */
export function path(jobId: string, rest = ""): string {
  return `/jobs/${encodeURIComponent(jobId)}${rest}`;
}
