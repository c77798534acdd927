// `troupe sandbox check` and `shell`: the sandboxes of a package on this machine, without a server.

import { realpathSync, statSync } from "node:fs";
import { systemClock } from "../app/clock.ts";
import { readDefinition } from "../bundles/definition.ts";
import { BundleProblem } from "../bundles/problem.ts";
import type { GraphNode } from "../engine/graph.ts";
import { hasSandbox, type TrialParts, tryNode } from "../execution/sandbox/trial.ts";
import { type Call, exitCodes, printAnswer, UsageError } from "./command.ts";
import { configFor } from "./connection.ts";
import { cleanText, table } from "./text.ts";

/** @returns the exit code: 1 when a sandbox does not start, or a host of its policy cannot be reached */
export async function check(call: Call): Promise<number> {
  const { nodes, parts } = await packageOf(call);
  const found: { readonly node_id: string; readonly ok: boolean; readonly problem: string | null }[] = [];
  for (const node of nodes) {
    const { problem } = await tryNode(node, "check", parts);
    found.push({ node_id: node.nodeId, ok: problem === null, problem });
  }
  printAnswer(call, { items: found }, () =>
    table(
      ["NODE", "SANDBOX"],
      found.map(({ node_id: name, problem }) => [
        cleanText(name),
        problem === null ? "ok" : cleanText(problem),
      ]),
    ),
  );
  return found.every(({ ok }) => ok) ? exitCodes.success : exitCodes.failure;
}

/** @returns the shell's exit code */
export async function shell(call: Call): Promise<number> {
  const { nodes, parts } = await packageOf(call);
  const [, asked = ""] = call.words;
  const node = nodes.find(({ nodeId }) => nodeId === asked);
  if (node === undefined) {
    const names = nodes.map(({ nodeId }) => nodeId).join(", ");
    throw new UsageError(`The package has no node ${asked} with a sandbox; it has ${names}.`);
  }
  // The sandbox has a session of its own, which Ctrl-C does not reach; without this it would end with the command.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  const { exitCode, problem } = await tryNode(node, "shell", parts);
  process.off("SIGINT", ignore);
  if (problem !== null) call.terminal.note(cleanText(problem));
  return exitCode ?? exitCodes.failure;
}

async function packageOf(call: Call): Promise<{
  readonly nodes: readonly [GraphNode, ...GraphNode[]];
  readonly parts: TrialParts;
}> {
  const { words, env, terminal } = call;
  const [target = ""] = words;
  if (statSync(target, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`${target} is no folder; give the folder of a package.`);
  const { sandboxEngine: engine } = configFor(call, "client");
  const folder = realpathSync(target);
  const note = (fields: object, text: string) =>
    terminal.note(cleanText(`${text} ${JSON.stringify(fields)}`));
  try {
    const [first, ...others] = (await readDefinition(folder)).graph.nodes.filter(hasSandbox);
    if (first === undefined)
      throw new UsageError(
        `${target} has no node with a sandbox: write "runner_module": "Sandbox" into one's config, or "isolation": "process" into a module's.`,
      );
    return {
      nodes: [first, ...others],
      parts: { folder, env, engine, clock: systemClock, log: { warn: note, error: note } },
    };
  } catch (error) {
    if (!(error instanceof BundleProblem)) throw error;
    throw new UsageError(`${error.message} \`troupe validate\` lists what is wrong.`);
  }
}
