// Additions and removals of blueprints for tests: a catalog folder that a test fills, requests, and what they come to.

import assert from "node:assert/strict";
import { lstat, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Files, writeFolder } from "./bundle-files.ts";
import { type Answer, ask, call, type Frame, frames } from "./gateway-api.ts";
import { oneCommand } from "./manifests.ts";
import type { Program } from "./program.ts";

export interface TestCatalog extends AsyncDisposable {
  readonly folder: string;
  /** Writes a blueprint's folder anew. @param manifest laid over that of one command */
  write(blueprintId: string, manifest?: JsonObject, files?: Files): Promise<string>;
}

export async function testCatalog(): Promise<TestCatalog> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-catalog-"));
  return {
    folder,
    write: (blueprintId, manifest = {}, files = {}) =>
      writeFolder(join(folder, blueprintId), blueprintFiles(blueprintId, manifest, files)),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A whole blueprint of one command. */
export function blueprintFiles(blueprintId: string, manifest: JsonObject = {}, files: Files = {}): Files {
  return {
    "manifest.json": {
      ...oneCommand(blueprintId, ["true"]),
      metadata: { blueprint_id: blueprintId, name: `The ${blueprintId}` },
      ...manifest,
    },
    "config/default.json": {},
    "payloads/notes.txt": "hello",
    ...files,
  };
}

/** Asks for an addition or a removal. */
export function request(
  program: Program,
  blueprintId: string,
  kind: "additions" | "removals",
  body: JsonObject = {},
  key?: string,
): Promise<Answer> {
  const headers = key === undefined ? {} : { "idempotency-key": key };
  return ask(program, "POST", `/blueprints/${blueprintId}/${kind}`, { body, headers });
}

/** Asks for one and waits for its end. @returns the operation */
export async function operate(
  program: Program,
  blueprintId: string,
  kind: "additions" | "removals",
  body: JsonObject = {},
): Promise<JsonObject> {
  const answer = await request(program, blueprintId, kind, body);
  assert.equal(answer.status, 202, answer.text);
  return ended(program, String(answer.body.operation_id));
}

/** The same for one that must go well. @returns its result */
export async function succeed(
  program: Program,
  blueprintId: string,
  kind: "additions" | "removals",
  body: JsonObject = {},
): Promise<JsonObject> {
  const operation = await operate(program, blueprintId, kind, body);
  assert.equal(operation.status, "completed", JSON.stringify(operation.error));
  return operation.result as JsonObject;
}

/** Waits until an operation has ended. */
export async function ended(program: Program, operationId: string): Promise<JsonObject> {
  await eventsOf(program, operationId);
  return call(program, "GET", `/operations/${operationId}`);
}

/** All events of an operation, once it has ended. */
export function eventsOf(program: Program, operationId: string): Promise<Frame[]> {
  return Array.fromAsync(frames(program, `/operations/${operationId}/events/stream`));
}

/** Bytes of all files below some folders of the home, by their paths; links are left out. */
export async function filesIn(home: string, ...folders: string[]): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const left = [...folders];
  for (let folder = left.pop(); folder !== undefined; folder = left.pop()) {
    // Not `recursive`, which follows links.
    for (const entry of await readdir(join(home, folder), { withFileTypes: true }).catch(() => [])) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) left.push(path);
      else if (entry.isFile()) found.set(path, (await lstat(join(home, path))).size);
    }
  }
  return found;
}

export function bytesOf(files: ReadonlyMap<string, number>): number {
  return [...files.values()].reduce((sum, size) => sum + size, 0);
}
