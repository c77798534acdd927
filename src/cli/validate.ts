// `troupe validate`: every problem of a bundle folder or a manifest, without a server.

import { existsSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonValue } from "../engine/json.ts";
import { type ManifestProblem, parseManifest } from "../engine/manifest.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { readJsonFile } from "./submission.ts";
import { cleanText, plural, table } from "./text.ts";

export async function validate(call: Call): Promise<number> {
  const { terminal } = call;
  const target = call.words[0] ?? "";
  const { graph, problems } = inspect(target);
  if (call.flag("json")) terminal.print(JSON.stringify({ valid: problems.length === 0, problems }));
  else if (graph !== null && problems.length === 0) {
    const edges = graph.nodes.reduce((sum, node) => sum + edgeCount(node), 0);
    terminal.print(
      `${cleanText(graph.graphId)} is valid: ${plural(graph.nodes.length, "node")}, ${plural(edges, "edge")}, ${plural(graph.entrypoints.length, "entrypoint")}.`,
    );
  } else {
    const rows = problems.map(({ path, code, message }) => [
      cleanText(path) || "/",
      code,
      cleanText(message),
    ]);
    for (const line of table(["WHERE", "CODE", "PROBLEM"], rows)) terminal.print(line);
    terminal.note(`${cleanText(target)}: ${plural(problems.length, "problem")}.`);
  }
  return problems.length === 0 ? exitCodes.success : exitCodes.failure;
}

function edgeCount(node: Graph["nodes"][number]): number {
  return (
    node.toAll.length + [...node.toByType.values()].reduce((sum, receivers) => sum + receivers.length, 0)
  );
}

interface Inspection {
  readonly graph: Graph | null;
  readonly problems: readonly ManifestProblem[];
}

function inspect(target: string): Inspection {
  const found = statSync(target, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new UsageError(`${target} does not exist; give a bundle folder or a manifest.`);
  }
  if (!found.isDirectory()) return inspectManifest(target);
  const file = join(target, "manifest.json");
  if (!existsSync(file)) {
    return { graph: null, problems: [problem("", "missing_manifest", `${target} holds no manifest.json`)] };
  }
  const manifest = inspectManifest(file);
  const payload = manifest.graph === null ? [] : payloadProblems(manifest.graph, join(target, "payloads"));
  return { graph: manifest.graph, problems: [...manifest.problems, ...configProblems(target), ...payload] };
}

function inspectManifest(file: string): Inspection {
  const read = readValue(file, "");
  if ("problem" in read) return { graph: null, problems: [read.problem] };
  const parsed = parseManifest(read.value);
  return parsed.kind === "valid"
    ? { graph: parsed.graph, problems: [] }
    : { graph: null, problems: parsed.problems };
}

function readValue(
  file: string,
  path: string,
): { readonly value: JsonValue } | { readonly problem: ManifestProblem } {
  try {
    return { value: readJsonFile(file) };
  } catch (error) {
    return { problem: problem(path, "invalid_json", error instanceof Error ? error.message : String(error)) };
  }
}

function configProblems(folder: string): readonly ManifestProblem[] {
  return ["config/default.json", "config/overwrite.json"].flatMap((name) => {
    const file = join(folder, name);
    if (!existsSync(file)) return [];
    const read = readValue(file, `/${name}`);
    if ("problem" in read) return [read.problem];
    return isObject(read.value) ? [] : [problem(`/${name}`, "wrong_type", `${name} holds no JSON object`)];
  });
}

/** What nodes name in payloads/ and is not there. */
function payloadProblems(graph: Graph, payloads: string): readonly ManifestProblem[] {
  return graph.nodes.flatMap((node) => {
    const { config, index } = node;
    const names =
      config.kind === "executor"
        ? config.uploadPaths.map((upload) => upload.path)
        : config.kind === "module"
          ? [config.module]
          : [];
    return names.flatMap((name) => {
      const place = resolve(payloads, name);
      const isInside = place === resolve(payloads) || place.startsWith(resolve(payloads) + sep);
      if (isInside && existsSync(place)) return [];
      const message = `${name}, which ${node.nodeId} needs, ${isInside ? "is not in" : "leads out of"} payloads/.`;
      return [problem(`/nodes/${index}/config`, "missing_payload", message)];
    });
  });
}

function problem(path: string, code: string, message: string): ManifestProblem {
  return { path, code, message };
}
