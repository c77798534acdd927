// Commands in sandboxes, in turns with the same ones without: what a sandbox adds to one command, and how long very many at
// once take.

import type { JsonObject } from "../src/engine/json.ts";
import { startProgram } from "../test/support/program.ts";
import { submit, untilOver } from "./client.ts";
import { commands, manyCommands } from "./manifests.ts";

const ONE_BY_ONE = 30;
const ROUNDS = 5;
const AT_ONCE = 200;
const ASK_EVERY_MS = 5;
const COMMAND = ["/bin/true"];

export async function measureSandboxes(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("sandbox")) return figures;
  const env = { SVC_LOG_LEVEL: "warn", SVC_EXECUTOR_MAX_CONCURRENCY: String(AT_ONCE) };
  await using program = await startProgram({ env });
  const { api } = program;
  const timeOf = async (manifest: JsonObject) => {
    const from = performance.now();
    const status = await untilOver(api, await submit(api, JSON.stringify(manifest)), ASK_EVERY_MS);
    if (status !== "completed") throw new Error(`the job ended as ${status}`);
    return performance.now() - from;
  };
  const rounds: { readonly bareMs: number; readonly boxedMs: number }[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const bareMs = (await timeOf(commands(ONE_BY_ONE, COMMAND))) / ONE_BY_ONE;
    const boxedMs = (await timeOf(boxed(commands(ONE_BY_ONE, COMMAND)))) / ONE_BY_ONE;
    if (round >= 0) rounds.push({ bareMs, boxedMs });
  }
  const added = rounds.map(({ bareMs, boxedMs }) => boxedMs - bareMs).toSorted((a, b) => a - b);
  figures.set("a command in a sandbox, over the bare one", `${added[ROUNDS >> 1]!.toFixed(1)} ms`);
  const manyMs = await timeOf(boxed(manyCommands(AT_ONCE, COMMAND)));
  figures.set(`${AT_ONCE} sandboxes at once`, `${Math.round(manyMs)} ms`);
  return figures;
}

/** The same graph, with all its commands in sandboxes. */
function boxed(manifest: JsonObject): JsonObject {
  const nodes = (manifest.nodes as JsonObject[]).map((node) =>
    node.agent_type === "executor" ? { ...node, runner_module: "Sandbox" } : node,
  );
  return { ...manifest, nodes };
}
