// Commands in sandboxes, in turns with the same ones without: what a sandbox adds to one command, and how long very many at
// once take, and what they hold.

import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { JsonObject } from "../src/engine/json.ts";
import { type Program, startProgram } from "../test/support/program.ts";
import { send, submit, untilOver } from "./client.ts";
import { commands, manyCommands } from "./manifests.ts";

const ONE_BY_ONE = 30;
/** Fewer of those that take longer. */
const GVISOR_ONE_BY_ONE = 5;
const ROUNDS = 5;
const AT_ONCE = 200;
const ASK_EVERY_MS = 5;
const COMMAND = ["/bin/true"];

/** What sandboxes made by gVisor add, where it is. */
async function measureGvisor(figures: Map<string, string>): Promise<void> {
  if (spawnSync("runsc", ["--version"]).status !== 0) return;
  const env = { SVC_LOG_LEVEL: "warn", SVC_SANDBOX_ENGINE: "gvisor" };
  await using program = await startProgram({ env });
  figures.set("— made by gVisor", `${(await addedMs(program, GVISOR_ONE_BY_ONE)).toFixed(0)} ms`);
}

/** The median of what a sandbox adds to one of several commands in a row, in turns with bare ones. */
async function addedMs({ api }: Program, count: number): Promise<number> {
  const eachMs = async (manifest: JsonObject) => (await timeOf(api, manifest)) / count;
  const added: number[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const bareMs = await eachMs(commands(count, COMMAND));
    const boxedMs = await eachMs(boxed(commands(count, COMMAND)));
    if (round >= 0) added.push(boxedMs - bareMs);
  }
  return added.toSorted((a, b) => a - b)[ROUNDS >> 1]!;
}

async function timeOf(api: Program["api"], manifest: JsonObject): Promise<number> {
  const from = performance.now();
  const status = await untilOver(api, await submit(api, JSON.stringify(manifest)), ASK_EVERY_MS);
  if (status !== "completed") throw new Error(`the job ended as ${status}`);
  return performance.now() - from;
}

export async function measureSandboxes(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("sandbox")) return figures;
  const env = { SVC_LOG_LEVEL: "warn", SVC_EXECUTOR_MAX_CONCURRENCY: String(AT_ONCE) };
  await using program = await startProgram({ env });
  const added = await addedMs(program, ONE_BY_ONE);
  figures.set("a command in a sandbox, over the bare one", `${added.toFixed(1)} ms`);
  await measureGvisor(figures);
  const manyMs = await timeOf(program.api, boxed(manyCommands(AT_ONCE, COMMAND)));
  figures.set(`${AT_ONCE} sandboxes at once`, `${Math.round(manyMs)} ms`);
  const megabytes = (await heldAtOnce(program)) / 2 ** 20;
  figures.set(`memory of the processes of one of ${AT_ONCE} sandboxes`, `${megabytes.toFixed(1)} MB`);
  return figures;
}

/** The shell, and what it waits for. */
const PROCESSES = 2;

/** Bytes that the processes of one of many sandboxes hold that run beside each other. */
async function heldAtOnce({ api, home }: Program): Promise<number> {
  const waiting = ["sh", "-c", 'until [ -e "$SVC_RUN_DIR/go" ]; do sleep 1; done'];
  const id = await submit(api, JSON.stringify(boxed(manyCommands(AT_ONCE, waiting))));
  for (;;) {
    const { job, sandboxes } = JSON.parse((await send(api, "GET", `/jobs/${id}`)).text) as Detail;
    const held = sandboxes.flatMap(({ peaks }) =>
      (peaks?.processes ?? 0) < PROCESSES ? [] : [peaks!.memory_bytes],
    );
    if (held.length < AT_ONCE) {
      await setTimeout(ASK_EVERY_MS);
      continue;
    }
    await writeFile(join(home, "runs", job.run_id, "shared", "go"), "");
    await untilOver(api, id, ASK_EVERY_MS);
    return held.reduce((sum, bytes) => sum + bytes, 0) / AT_ONCE;
  }
}

interface Detail {
  readonly job: { readonly run_id: string };
  readonly sandboxes: readonly {
    readonly peaks: { readonly memory_bytes: number; readonly processes: number } | null;
  }[];
}

/** The same graph, with all its commands in sandboxes. */
function boxed(manifest: JsonObject): JsonObject {
  const nodes = (manifest.nodes as JsonObject[]).map((node) =>
    node.agent_type === "executor" ? { ...node, runner_module: "Sandbox" } : node,
  );
  return { ...manifest, nodes };
}
