// What is to be launched, and what it comes to once the layers of its configuration are merged: the package's
// (config/default.json, config/overwrite.json), the job's, the run's.
//
// - Layers are merged as plaintext, so that a secret is replaced whole and never mixed with what is below it.
// - A path that names a folder of the user's is never blanked: what a form sends for an untouched field does not
//   hide what a lower layer has.

import { readLocalFolders, readWebUi } from "../../blueprints/describe-configuration.ts";
import type { LocalFolder, PackageDescription, WebUi } from "../../blueprints/package-description.ts";
import type { Definition } from "../../bundles/definition.ts";
import { merged } from "../../bundles/merge.ts";
import type { Graph } from "../../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { blanksTakenAt, isBlank, valueAt, withValuesAt } from "./config-paths.ts";
import type { Found, LaunchProblem } from "./findings.ts";

/** A package that may be launched. */
export interface LaunchPackage {
  /** Null for a job of an uploaded bundle. */
  readonly blueprintId: string | null;
  /** The snapshot; null for a blueprint that is not added: what needs its payload is not checked. */
  readonly fingerprint: string | null;
  readonly definition: Definition;
  readonly description: PackageDescription;
}

/** What is to be launched. */
export interface LaunchSubject extends LaunchPackage {
  /** The job's own configuration, secrets encrypted. */
  readonly jobConfiguration: JsonObject;
  /** The run's, secrets encrypted; null without any. */
  readonly configOverrides: JsonObject | null;
  /** The run's `inputs`. */
  readonly inputs: JsonObject;
}

export interface ResolvedLaunch extends Found {
  /** In plaintext; never to be written anywhere. */
  readonly configuration: JsonObject;
  readonly folders: readonly LocalFolder[];
  readonly webUi: WebUi | null;
  /** Names the package's own file for what stands there, and was not asked for by the job or the run. */
  readonly placed: (problem: LaunchProblem) => LaunchProblem;
}

/** @throws ConfigurationUnreadable when a secret was encrypted with another key */
export async function resolveLaunch(
  subject: LaunchSubject,
  secrets: ConfigurationSecrets,
): Promise<ResolvedLaunch> {
  const { definition, description, jobConfiguration, configOverrides } = subject;
  const layers: Layers = [
    definition.configuration ?? {},
    await secrets.decrypt(jobConfiguration),
    ...(configOverrides === null ? [] : [await secrets.decrypt(configOverrides)]),
  ];
  const configuration = mergedLayers(layers);
  const folders = readLocalFolders(configuration, definition.graph);
  const webUi = readWebUi(configuration, description.identity);
  const paths = folders.folders.map(({ configPath }) => configPath);
  const inConfiguration = ({ path, code, message }: Omit<LaunchProblem, "part">): LaunchProblem => {
    return { part: "configuration", path, code, message };
  };
  return {
    configuration: withoutBlanks(layers, configuration, paths),
    folders: folders.folders,
    webUi: webUi.webUi,
    errors: [...folders.problems, ...webUi.problems].map(inConfiguration),
    warnings: [...folders.warnings, ...webUi.warnings].map(inConfiguration),
    placed: (problem) => (isOfPackage(problem, layers) ? inPackage(problem) : problem),
  };
}

/** From the lowest to the highest. */
type Layers = readonly JsonObject[];

/** Lays the layers on one another. */
export function mergedLayers(layers: Layers): JsonObject {
  return layers.reduce((base, layer) => merged(base, layer), {});
}

/**
 * Gives paths that a higher layer has blanked the value of the highest layer that has one.
 *
 * @param resolved the merged layers
 * @param paths dotted
 */
export function withoutBlanks(layers: Layers, resolved: JsonObject, paths: readonly string[]): JsonObject {
  const settings: { path: string; value: JsonValue }[] = [];
  for (const path of paths) {
    if (!isBlank(valueAt(resolved, path))) continue;
    const value = layers.map((layer) => valueAt(layer, path)).findLast((found) => !isBlank(found));
    if (value !== undefined) settings.push({ path, value });
  }
  return withValuesAt(resolved, settings);
}

/** Whether the value is in the package's own layer, and no other layer sets it. */
function isOfPackage({ part, path, code }: LaunchProblem, [own, ...later]: Layers): boolean {
  if (part !== "configuration" || path === "") return false;
  // What one of these lacks is a mistake of its declaration; what any other value lacks is for the caller to give.
  const isDeclaration = /^\/(?:local_inputs|web_ui)\//.test(path);
  if (code === "required" && !isDeclaration) return false;
  const place = isDeclaration ? path.split("/", 2).join("/") : path;
  return setBy(own ?? {}, place) === "whole" && later.every((layer) => setBy(layer, path) === "none");
}

/** Whether a layer has the value at a pointer, or something in the place of an object on the way there. */
function setBy(layer: JsonObject, path: string): "none" | "whole" | "other" {
  let value: JsonValue = layer;
  for (const part of path.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null) return "other";
    const isList: boolean = Array.isArray(value);
    const next: JsonValue | undefined = (value as Record<string, JsonValue | undefined>)[key];
    if (next === undefined) return isList ? "other" : "none";
    value = next;
  }
  return "whole";
}

function inPackage({ path, code, message }: LaunchProblem): LaunchProblem {
  const file = "config/default.json";
  return {
    part: "package",
    path: `/${file}#${path}`,
    code,
    message: `the package's own ${file}: ${message}`,
  };
}

/** Whether what a launch declares, encrypted or not, asks for more than its package's own payload. */
export function declaresLaunch({ definition, jobConfiguration, configOverrides }: LaunchSubject): boolean {
  const { local_inputs, web_ui } = mergedLayers([
    definition.configuration ?? {},
    jobConfiguration,
    configOverrides ?? {},
  ]);
  return !isBlank(local_inputs) || !isBlank(web_ui);
}

/**
 * The inputs without what is blank where the configuration names a folder: a worker that lays its inputs over its
 * configuration must not lose the folder (spec "packaging" 8).
 */
export function withoutBlankInputs(
  inputs: JsonObject,
  folders: readonly LocalFolder[],
  configuration: JsonObject,
): JsonObject {
  const cleaned = bodyCleaner(folders, configuration);
  const { $entrypoints: addressed } = inputs;
  if (!isObject(addressed)) return cleaned(inputs) as JsonObject;
  const bodies = Object.entries(addressed).map(([nodeId, list]) => [
    nodeId,
    Array.isArray(list) ? list.map(cleaned) : cleaned(list),
  ]);
  return { ...inputs, $entrypoints: Object.fromEntries(bodies) };
}

/** The same for the inputs of the manifest, which a run without its own is sent. */
export function withoutBlankInitialInputs(
  graph: Graph,
  folders: readonly LocalFolder[],
  configuration: JsonObject,
): Graph {
  if (folders.length === 0 || graph.initialInputs.size === 0) return graph;
  const cleaned = bodyCleaner(folders, configuration);
  const initialInputs = new Map(
    [...graph.initialInputs].map(([node, bodies]) => [node, bodies.map(cleaned)]),
  );
  return { ...graph, initialInputs };
}

function bodyCleaner(folders: readonly LocalFolder[], configuration: JsonObject) {
  const paths = folders
    .flatMap(({ configPath, linkedConfigPaths }) => [configPath, ...linkedConfigPaths])
    .filter((path) => !isBlank(valueAt(configuration, path)));
  const cleaned = blanksTakenAt(paths);
  return (body: JsonValue): JsonValue => (isObject(body) ? cleaned(body) : body);
}
