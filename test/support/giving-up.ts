// Runs with dead letters, for tests: a worker that gives up every message until a file is there, and a sensor beside it
// that holds the run open.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../src/engine/json.ts";
import { executor, graph, router, sensor } from "./graphs.ts";

export interface GivingUp {
  /** Entrypoints: `in`, which hands its messages to `worker`; and `hold`, a sensor that waits. */
  readonly manifest: JsonObject;
  /** From now on the worker does what it is asked. */
  mend(): Promise<void>;
  remove(): Promise<void>;
}

export async function makeGivingUp(): Promise<GivingUp> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-giving-up-"));
  const mended = join(folder, "mended");
  const nodes = [router("in"), sensor("hold"), executor("worker", ["test", "-e", mended])];
  const more = { entrypoints: ["in", "hold"], policies: { failure_policy: "continue" } };
  return {
    manifest: graph("giving-up", nodes, [["in", "worker"]], more),
    mend: () => writeFile(mended, ""),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
