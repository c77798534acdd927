// Runs with dead letters, for tests: a worker that gives up every message until a file is there, and a sensor beside it
// that holds the run open.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Files } from "./bundle-files.ts";
import { executor, graph, module, router, sensor } from "./graphs.ts";

export interface Refusing {
  /** Entrypoints: `in`, which hands its messages to `worker`; and `hold`, a sensor that waits. */
  readonly manifest: JsonObject;
  /** What the bundle has besides. */
  readonly files?: Files;
}

export interface GivingUp extends Refusing {
  /** From now on the worker does what it is asked. */
  fix(): Promise<void>;
  remove(): Promise<void>;
}

const manifestWith = (worker: JsonObject) =>
  graph("giving-up", [router("in"), sensor("hold"), worker], [["in", "worker"]], {
    entrypoints: ["in", "hold"],
    policies: { failure_policy: "continue" },
  });

/** Gives up every message for ever, without a process for each: for hundreds of them. */
export const refusing: Refusing = {
  manifest: manifestWith(module("worker", { module: "refuse.mjs" })),
  files: { "payloads/refuse.mjs": 'export async function handle() {\n  throw new Error("never");\n}\n' },
};

export async function makeGivingUp(): Promise<GivingUp> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-giving-up-"));
  const fixed = join(folder, "fixed");
  return {
    manifest: manifestWith(executor("worker", ["test", "-e", fixed])),
    fix: () => writeFile(fixed, ""),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
