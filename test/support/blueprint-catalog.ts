// A catalog of blueprints for a program under test, and the requests that its tests make.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Files, writeFolder } from "./bundle-files.ts";
import { ask, call } from "./gateway-api.ts";
import type { Program } from "./program.ts";
import { until } from "./until.ts";

export interface TestCatalog {
  /** For SVC_BLUEPRINT_CATALOG. */
  readonly folder: string;
  /** Writes a blueprint anew. */
  write(blueprintId: string, manifest: JsonObject, files?: Files): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function testCatalog(): Promise<TestCatalog> {
  const folder = await mkdtemp(join(tmpdir(), "troupe catalog "));
  return {
    folder,
    write: (blueprintId, manifest, files = {}) =>
      writeFolder(join(folder, blueprintId), { "manifest.json": manifest, ...files }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Waits until a job is what a test wants it to be. @returns the job */
export const jobIs = (program: Program, jobId: string, status: string): Promise<JsonObject> =>
  until(`job ${jobId} is ${status}`, async () => {
    const job = await call(program, "GET", `/jobs/${jobId}`);
    return job.status === status && job;
  });

/** Makes a job of a blueprint, and waits until it is ready. @returns its id */
export async function readyJob(
  program: Program,
  blueprintId: string,
  more: JsonObject = {},
): Promise<string> {
  const jobId = String((await call(program, "POST", "/jobs", { blueprint_id: blueprintId, ...more })).job_id);
  await jobIs(program, jobId, "ready");
  return jobId;
}

/** Waits until a run's label is one that a test looks for. */
export const labelIs = (program: Program, runId: string, label: RegExp): Promise<JsonObject> =>
  until(`the label of ${runId} to be ${label}`, async () => {
    const { body } = await ask(program, "GET", `/runs/${runId}`);
    const progress = body.progress as JsonObject;
    return label.test(String(progress.label)) && body;
  });
