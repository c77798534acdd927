// `troupe validate`: every problem of a bundle folder or a manifest, without a server. The checks are those that
// register bundles and accept jobs; only the check of payloads/ is this command's own.

import { realpathSync, statSync } from "node:fs";
import { posix } from "node:path";
import type { Config } from "../app/config.ts";
import { describePackage, descriptionOf } from "../blueprints/describe-package.ts";
import { type Definition, readDefinition } from "../bundles/definition.ts";
import { type BundleFile, PAYLOADS_FOLDER } from "../bundles/layout.ts";
import { problemsOfPolicies } from "../bundles/policies.ts";
import { BundleProblem, type BundleProblemEntry } from "../bundles/problem.ts";
import type { Graph, GraphNode } from "../engine/graph.ts";
import type { JsonObject, JsonValue } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import { type Call, exitCodes, printAnswer, UsageError } from "./command.ts";
import { configFor } from "./connection.ts";
import { openBundleFolder } from "./folder-zip.ts";
import { readJsonFile } from "./input.ts";
import { cleanText, plural, table } from "./text.ts";

export async function validate(call: Call): Promise<number> {
  const [target = ""] = call.words;
  const found = statSync(target, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new UsageError(`${target} does not exist; give a bundle folder or a manifest.`);
  }
  const { graph, ...result } = found.isDirectory()
    ? await described(await inspectFolder(realpathSync(target), configFor(call, "client")))
    : inspectManifest(target);
  return printCheckResult(call, result, graph === null ? "" : validLine(graph));
}

/** What is wrong with a package, and what is suspicious. */
export interface CheckResult {
  readonly problems: readonly BundleProblemEntry[];
  readonly warnings: readonly BundleProblemEntry[];
}

/**
 * @param validLine printed when there are no problems
 * @param also further fields of the JSON document
 * @returns the exit code: 0 valid, with or without warnings; 1 invalid
 */
export function printCheckResult(
  call: Call,
  { problems, warnings }: CheckResult,
  validLine: string,
  also: object = {},
): number {
  const isValid = problems.length === 0;
  printAnswer(call, { valid: isValid, ...also, problems, warnings }, () => [
    ...problemTable(problems, "PROBLEM"),
    ...problemTable(warnings, "WARNING"),
    ...(isValid ? [validLine] : []),
  ]);
  if (isValid) return exitCodes.success;
  if (!call.flag("json")) {
    const counts = [plural(problems.length, "problem"), plural(warnings.length, "warning")].join(", ");
    call.terminal.note(`${cleanText(call.words[0])}: ${counts}.`);
  }
  return exitCodes.failure;
}

function problemTable(entries: readonly BundleProblemEntry[], title: string): readonly string[] {
  if (entries.length === 0) return [];
  const rows = entries.map(({ path, code, message }) => [cleanText(path) || "/", code, cleanText(message)]);
  return table(["WHERE", "CODE", title], rows);
}

function validLine(graph: Graph): string {
  const edges = graph.nodes.reduce((sum, node) => sum + edgeCount(node), 0);
  const counts = [
    plural(graph.nodes.length, "node"),
    plural(edges, "edge"),
    plural(graph.entrypoints.length, "entrypoint"),
  ];
  return `${cleanText(graph.graphId)} is valid: ${counts.join(", ")}.`;
}

function edgeCount(node: GraphNode): number {
  return [...node.toByType.values()].reduce((sum, receivers) => sum + receivers.length, node.toAll.length);
}

type Inspection = CheckResult & { readonly graph: Graph | null };

function inspectManifest(file: string): Inspection {
  let manifest: JsonValue;
  try {
    manifest = readJsonFile(file);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const problem = { path: "", code: "invalid_json", message: error.message };
    return { graph: null, problems: [problem], warnings: [] };
  }
  const parsed = parseManifest(manifest);
  if (parsed.kind === "invalid") return { graph: null, problems: parsed.problems, warnings: [] };
  const { graph } = parsed;
  return {
    graph,
    ...describePackage({ manifest: manifest as JsonObject, configuration: null, graph }, null),
  };
}

export interface FolderInspection {
  /** Null when the JSON files are not what they must be. */
  readonly definition: Definition | null;
  /** Null when the folder cannot be taken as it is. */
  readonly files: readonly BundleFile[] | null;
  readonly problems: readonly BundleProblemEntry[];
}

/** With what the package declares, as an upload of it is checked. */
async function described({ definition, problems }: FolderInspection): Promise<Inspection> {
  if (definition === null) return { graph: null, problems, warnings: [] };
  const found = await descriptionOf(definition);
  return { graph: definition.graph, problems: [...problems, ...found.problems], warnings: found.warnings };
}

/**
 * Everything that is wrong with a bundle's folder.
 *
 * @param folder absolute, without symlinks
 */
export async function inspectFolder(folder: string, config: Config): Promise<FolderInspection> {
  const source = await settle(openBundleFolder(folder, config));
  const definition = await settle(readDefinition(folder));
  const graph = definition.value?.graph ?? null;
  const files = source.value?.files ?? null;
  await source.value?.close();
  const missing = graph === null || files === null ? [] : missingPayloads(graph, files);
  const policies = graph === null ? [] : await problemsOfPolicies(folder, graph);
  const problems = [...source.problems, ...definition.problems, ...missing, ...policies];
  return { definition: definition.value, files, problems };
}

interface Settled<T> {
  readonly value: T | null;
  readonly problems: readonly BundleProblemEntry[];
}

async function settle<T>(check: Promise<T>): Promise<Settled<T>> {
  try {
    return { value: await check, problems: [] };
  } catch (error) {
    if (error instanceof BundleProblem) return { value: null, problems: error.problems };
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    // A file that this user may not read, say: the message names it.
    return {
      value: null,
      problems: [{ path: "", code: "unreadable", message: `cannot be read: ${message}` }],
    };
  }
}

/** Looks up whether a file or folder of payloads/ exists, by its path in it. */
export function payloadLookup(files: readonly BundleFile[]): (name: string) => boolean {
  const present = new Set([PAYLOADS_FOLDER]);
  for (const { path } of files) {
    for (let name = path; name !== "." && !present.has(name); name = posix.dirname(name)) present.add(name);
  }
  return (name) => {
    const place = posix.join(PAYLOADS_FOLDER, name).replace(/\/$/, "");
    return present.has(place) && `${place}/`.startsWith(`${PAYLOADS_FOLDER}/`);
  };
}

/** @param path in the file that names it. @param what needs it, for people */
export function missingPayload(path: string, what: string, name: string): BundleProblemEntry {
  const message = `${what} needs ${JSON.stringify(name)}, which is not in payloads/`;
  return { path, code: "missing_payload", message };
}

/** What nodes name in payloads/ and is missing, or outside. */
function missingPayloads(graph: Graph, files: readonly BundleFile[]): readonly BundleProblemEntry[] {
  const isThere = payloadLookup(files);
  return graph.nodes.flatMap((node) =>
    payloadNames(node).flatMap((name) => {
      if (isThere(name)) return [];
      return [missingPayload(`/nodes/${node.index}/config`, `node ${JSON.stringify(node.nodeId)}`, name)];
    }),
  );
}

function payloadNames({ config }: GraphNode): readonly string[] {
  if (config.kind === "module") return [config.module];
  if (config.kind !== "executor") return [];
  return [
    ...(config.module === null ? [] : [config.module.path]),
    ...config.uploadPaths.map(({ path }) => path),
  ];
}
