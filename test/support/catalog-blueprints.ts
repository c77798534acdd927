// The blueprints that ship with the project, launched as a user launches them: through the gateway, with folders of the
// test's own.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Answer, ask, call, ended, startGateway, walk } from "./gateway-api.ts";
import { startGatewayHere } from "./in-process.ts";
import { dashboardPorts } from "./ports.ts";
import type { Program } from "./program.ts";

const examples = fileURLToPath(new URL("../../examples", import.meta.url));

interface CatalogOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly home?: string;
}

/** A gateway whose catalog is the project's own examples. */
export const startCatalogHere = async (options: CatalogOptions = {}): Promise<Program> =>
  startGatewayHere({ ...options, env: await catalogEnv(options) });

/** The same in a process of its own, for tests that kill it. */
export const startCatalog = async (options: CatalogOptions = {}): Promise<Program> =>
  startGateway({ ...options, env: await catalogEnv(options) });

async function catalogEnv({ env }: CatalogOptions): Promise<Readonly<Record<string, string>>> {
  // Two programs that look for a free port at the same moment would find the same one.
  return { ...(await dashboardPorts()), SVC_EXECUTOR_POOL_CAPACITIES: "default=4", ...env };
}

export interface GatedCatalog extends AsyncDisposable {
  /** For SVC_BLUEPRINT_CATALOG. */
  readonly folder: string;
  /** Lets the script go on, now and whenever it is started again. */
  open(): Promise<void>;
}

/**
 * A catalog of one of the examples, one of whose programs in Python waits at its beginning until it is released: what
 * happens to a run before that happens in the middle of it.
 *
 * @param script its path in the payload
 */
export async function gatedCatalog(blueprintId: string, script: string): Promise<GatedCatalog> {
  const { path, [Symbol.asyncDispose]: dispose } = await userFolder();
  await cp(join(examples, blueprintId), join(path, blueprintId), { recursive: true });
  const file = join(path, blueprintId, "payloads", script);
  const gate = join(path, "gate");
  const wait = `import os, time\nwhile not os.path.exists(${JSON.stringify(gate)}):\n    time.sleep(0.02)\n`;
  await writeFile(file, wait + (await readFile(file, "utf8")));
  return { folder: path, open: () => writeFile(gate, ""), [Symbol.asyncDispose]: dispose };
}

export interface TestFolder extends AsyncDisposable {
  readonly path: string;
  write(name: string, content: string | Uint8Array): Promise<void>;
}

/** A folder as a user would have it; gone at the end of the test. @param files contents by name */
export async function userFolder(
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), "troupe user's folder "));
  const write = async (name: string, content: string | Uint8Array) => {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), content);
  };
  for (const [name, content] of Object.entries(files)) await write(name, content);
  return { path, write, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Contents, inodes, modes and times of all files of a folder: whether anybody has touched it. */
export async function fingerprintOf(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const entry of (await readdir(folder, { recursive: true })).sort()) {
    const { ino, mode, mtimeMs, nlink } = await stat(join(folder, entry));
    hash.update(JSON.stringify([entry, ino, mode, mtimeMs, nlink]));
    hash.update(await readFile(join(folder, entry)).catch(() => ""));
  }
  return hash.digest("hex");
}

/** POST /blueprints/{id}/runs; any status is an answer. */
export function launch(program: Program, blueprintId: string, overrides: JsonObject = {}): Promise<Answer> {
  return ask(program, "POST", `/blueprints/${blueprintId}/runs`, { body: { config_overrides: overrides } });
}

/** Launches a blueprint that must be accepted. @returns the run's id */
export async function launched(
  program: Program,
  blueprintId: string,
  overrides: JsonObject = {},
): Promise<string> {
  const answer = await launch(program, blueprintId, overrides);
  assert.equal(answer.status, 202, `${answer.text}\n${program.output()}`);
  assert.equal(answer.headers.get("location"), `/api/v1/runs/${answer.body.run_id}`);
  return String(answer.body.run_id);
}

/** What stands against a launch: [path, message] of each error. */
export async function errorsOf(
  program: Program,
  blueprintId: string,
  config: JsonObject,
): Promise<readonly (readonly [string, string])[]> {
  const answer = await call(program, "POST", `/blueprints/${blueprintId}/validate`, { config });
  return (answer.errors as readonly JsonObject[]).map(({ path, message }) => [String(path), String(message)]);
}

export interface Finished {
  readonly run: JsonObject;
  readonly result: JsonObject;
  /** Texts of the outputs, by name; of several of one name the newest. */
  readonly outputs: ReadonlyMap<string, string>;
}

/** Waits for the end of a run that must complete, and takes its outputs. */
export async function finished(program: Program, runId: string): Promise<Finished> {
  const { run } = await ended(program, runId);
  assert.equal(run.status, "completed", `${JSON.stringify(run.failure, null, 1)}\n${program.output()}`);
  return { run, result: run.result as JsonObject, outputs: await outputsOf(program, runId) };
}

/** Each output's text, compared with its size and SHA-256. */
export async function outputsOf(program: Program, runId: string): Promise<ReadonlyMap<string, string>> {
  const outputs = new Map<string, string>();
  for (const { name, url, size, sha256 } of await walk(program, `/runs/${runId}/outputs`)) {
    const bytes = Buffer.from(await (await fetch(program.url + String(url))).arrayBuffer());
    assert.equal(bytes.length, size);
    assert.equal(createHash("sha256").update(bytes).digest("hex"), sha256);
    outputs.set(String(name), bytes.toString("utf8"));
  }
  return outputs;
}
