// A package's description, read from its manifest and its configuration: everything beyond the graph that Troupe acts
// on, with every mistake at once.
//
// D1. Pure and linear: nothing but the definition is looked at, and the same definition gives the same description.
// D2. There is a description exactly when there is no problem; warnings stand in nobody's way.
// D3. It is read once for each definition, so that asking for every run costs nothing.

import type { Definition } from "../bundles/definition.ts";
import type { BundleProblemEntry } from "../bundles/problem.ts";
import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject } from "../engine/json.ts";
import { SECRET_PATHS_MAX, secretPathsIn } from "../security/secret-paths.ts";
import { hasTooManySecrets, TOO_MANY_SECRETS } from "../security/values.ts";
import { readLocalFolders, readWebUi } from "./describe-configuration.ts";
import { readIdentity } from "./describe-identity.ts";
import { dottedPathProblem, inConfiguration, inManifestFile, nameList, Reading } from "./describe-reading.ts";
import { readModels, readRequirements, readResources } from "./describe-requirements.ts";
import { readInputRules } from "./describe-rules.ts";
import type { PackageDescription, PackageIdentity } from "./package-description.ts";
import { schemaProblem } from "./schema-check.ts";
import { warnOfUnknownFields } from "./unknown-fields.ts";

export interface DescribedPackage {
  /** As far as it could be read, when there are problems. */
  readonly identity: PackageIdentity;
  readonly description: PackageDescription | null;
  readonly problems: readonly BundleProblemEntry[];
  readonly warnings: readonly BundleProblemEntry[];
}

/** What a package's JSON files hold; a Definition is one. */
export interface PackageText {
  readonly manifest: JsonObject;
  readonly configuration: JsonObject | null;
  /** Null when the manifest is none that can run: then there is no description, and what concerns the graph is not told. */
  readonly graph: Graph | null;
}

/**
 * Reads what a package says of itself.
 *
 * @param folderName what a package without an id is called after; null where nobody knows a folder: after its graph
 * @returns problems and warnings with their places: JSON Pointers into manifest.json, and behind
 *   `/config/default.json#` into the configuration
 */
export function describePackage(text: PackageText, folderName: string | null): DescribedPackage {
  const { graph, configuration } = text;
  const manifest = new Reading(text.manifest);
  const config = new Reading(configuration ?? {});
  const identity = readIdentity(manifest, config, { folderName, graph });
  const description: PackageDescription = {
    identity,
    inputSchema: readSchema(manifest, "input_schema"),
    configSchema: readSchema(manifest, "config_schema"),
    requirements: readRequirements(manifest, graph?.requiredServices ?? []),
    resources: readResources(manifest),
    models: readModels(manifest),
    inputRules: readInputRules(manifest),
  };
  readSecrets(text, manifest, config);
  warnOfUnknownFields(text.manifest, manifest);
  const launch = launchFindings(configuration ?? {}, graph, identity);
  const problems = [
    ...manifest.problems.map(inManifestFile),
    ...[...config.problems, ...launch.problems].map(inConfiguration),
  ];
  const warnings = [
    ...manifest.warnings.map(inManifestFile),
    ...[...config.warnings, ...launch.warnings].map(inConfiguration),
  ];
  const isWhole = graph !== null && problems.length === 0;
  return { identity, description: isWhole ? description : null, problems, warnings };
}

/**
 * The same, remembered for as long as the definition is (D3).
 *
 * @param name as `folderName` of describePackage
 */
export function descriptionOf(definition: Definition, name: string | null = null): DescribedPackage {
  const known = remembered.get(definition);
  if (known?.name === name) return known.described;
  const described = describePackage(definition, name);
  remembered.set(definition, { name, described });
  return described;
}

const remembered = new WeakMap<
  Definition,
  { readonly name: string | null; readonly described: DescribedPackage }
>();

function readSchema(manifest: Reading, name: string): JsonObject | null {
  const { source } = manifest.fields.object(name);
  if (!isObject(manifest.fields.raw(name))) return null;
  const said = schemaProblem(source);
  if (said === null) return source;
  manifest.fields.report(name, "invalid_schema", said);
  return null;
}

/** What the manifest names as secret (src/security reads it), and whether there is too much of it. */
function readSecrets(
  { manifest: source, configuration }: PackageText,
  manifest: Reading,
  config: Reading,
): void {
  nameList(manifest.fields, "secrets", SECRET_PATHS_MAX, dottedPathProblem);
  const paths = secretPathsIn(source);
  if (configuration !== null && hasTooManySecrets(configuration, paths)) {
    config.fields.report([], "too_many_secrets", TOO_MANY_SECRETS);
  }
  const inputs = source.initial_inputs;
  if (isObject(inputs) && hasTooManySecrets(Object.values(inputs), paths)) {
    manifest.fields.report("initial_inputs", "too_many_secrets", TOO_MANY_SECRETS);
  }
}

/** What the package's own configuration declares for its launches, before anybody has changed it. */
function launchFindings(configuration: JsonObject, graph: Graph | null, identity: PackageIdentity) {
  const folders = readLocalFolders(configuration, graph);
  const webUi = readWebUi(configuration, identity);
  return {
    problems: [...folders.problems, ...webUi.problems],
    warnings: [...folders.warnings, ...webUi.warnings],
  };
}
