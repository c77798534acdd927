// A package's description, read from its manifest and its configuration: everything beyond the graph that Troupe acts
// on, with every mistake at once.
//
// - Pure and linear: nothing but the definition is read, and the same definition gives the same description.
// - There is a description exactly when there is no problem, whatever the warnings.
// - It is read once for each definition, so that asking for every run costs nothing.

import type { Definition } from "../bundles/definition.ts";
import type { BundleProblemEntry } from "../bundles/problem.ts";
import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject } from "../engine/json.ts";
import type { Fields } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { atOnce, inSlices } from "../lib/slices.ts";
import { hasTooManySecrets, secretPathsIn, TOO_MANY_SECRETS } from "../security/secret-detection.ts";
import { readLocalFolders, readWebUi } from "./describe-configuration.ts";
import {
  checkSecretPaths,
  readInputRules,
  readModels,
  readRequirements,
  readResources,
  readSchema,
} from "./describe-manifest.ts";
import { inConfiguration, inManifestFile, nameList, Reading } from "./describe-reading.ts";
import { blueprintIdForm, type PackageDescription, type PackageIdentity } from "./package-description.ts";
import { configSchema } from "./schema-config.ts";
import { manifestSchema } from "./schema-manifest.ts";
import { unknownFieldSteps, warnOfUnknownFields } from "./unknown-fields.ts";

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
  /** Null when the manifest cannot run: then there is no description, and nothing about the graph. */
  readonly graph: Graph | null;
}

/**
 * Reads what a package says of itself.
 *
 * @param folderName what a package without an id is called after; null without a folder: after its graph
 * @returns problems and warnings with their places: JSON Pointers into manifest.json, and behind
 *   `/config/default.json#` into the configuration
 */
export function describePackage(text: PackageText, folderName: string | null): DescribedPackage {
  return atOnce(descriptionSteps(text, folderName));
}

/** The same in steps, for a caller that lets others have their turn in between. */
export function* descriptionSteps(
  text: PackageText,
  folderName: string | null,
): Generator<void, DescribedPackage> {
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
  checkSecretPaths(manifest);
  checkSecretCounts(text, manifest, config);
  yield* unknownFieldSteps(manifest, manifestSchema, text.manifest);
  warnOfUnknownFields(config, configSchema, { identity: configuration?.identity ?? null });
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
 * The same in slices, remembered for as long as the definition is.
 *
 * @param name as `folderName` of describePackage
 */
export async function descriptionOf(
  definition: Definition,
  name: string | null = null,
): Promise<DescribedPackage> {
  const known = remembered.get(definition);
  if (known?.name === name) return known.described;
  const described = await inSlices(descriptionSteps(definition, name));
  remembered.set(definition, { name, described });
  return described;
}

const remembered = new WeakMap<
  Definition,
  { readonly name: string | null; readonly described: DescribedPackage }
>();

/** More secrets than can be kept apart from the rest. */
function checkSecretCounts(
  { manifest: source, configuration }: PackageText,
  manifest: Reading,
  config: Reading,
): void {
  const paths = secretPathsIn(source);
  if (configuration !== null && hasTooManySecrets(configuration, paths)) {
    config.fields.report([], "too_many_secrets", TOO_MANY_SECRETS);
  }
  const inputs = source.initial_inputs;
  if (isObject(inputs) && hasTooManySecrets(Object.values(inputs), paths)) {
    manifest.fields.report("initial_inputs", "too_many_secrets", TOO_MANY_SECRETS);
  }
}

/** What the package's own configuration declares for its launches, before any change. */
function launchFindings(configuration: JsonObject, graph: Graph | null, identity: PackageIdentity) {
  const folders = readLocalFolders(configuration, graph);
  const webUi = readWebUi(configuration, identity);
  return {
    problems: [...folders.problems, ...webUi.problems],
    warnings: [...folders.warnings, ...webUi.warnings],
  };
}

const BLUEPRINT_ID_CHARS_MAX = 64;
const TAGS_MAX = 50;

/**
 * Who a package says it is: config `identity`, else manifest `metadata`, field by field; at last the folder's name.
 *
 * @param given.folderName used for an id and a name that the package does not give; null without a
 *   folder, where the id is not used
 * @param given.graph null when the manifest cannot run
 */
function readIdentity(
  manifest: Reading,
  configuration: Reading,
  given: { readonly folderName: string | null; readonly graph: Graph | null },
): PackageIdentity {
  const { folderName, graph } = given;
  const fallbackName = folderName ?? graph?.graphId ?? "";
  const metadata = manifest.fields.object("metadata");
  const identity = configuration.fields.object("identity");
  // Both are read, so that a mistake in the one that loses is told too.
  const first = <Value>(read: (fields: Fields) => Value | null): Value | null => {
    const [own, other] = [read(identity), read(metadata)];
    return own ?? other;
  };
  const text = (name: string) => first((fields) => fields.text(name) || null);
  const blueprintId = first(readId);
  const byFolder = idOfFolder(fallbackName);
  if (blueprintId === null && folderName !== null && byFolder !== folderName) {
    const clause = `is missing, and the folder's name, ${quoted(folderName)}, is not a valid id: it is called ${quoted(byFolder)}`;
    configuration.warn(["identity", "blueprint_id"], "no_id", clause);
  }
  return {
    blueprintId: blueprintId ?? byFolder,
    name: text("name") ?? graph?.jobName ?? fallbackName,
    description: text("description") ?? "",
    version: text("version"),
    category: first((fields) => fields.name("category", null)),
    tags:
      first((fields) => (fields.raw("tags") === undefined ? null : nameList(fields, "tags", TAGS_MAX))) ?? [],
  };
}

function readId(fields: Fields): string | null {
  const id = fields.name("blueprint_id", null);
  if (id === null || blueprintIdForm.test(id)) return id;
  const allowed = "1 to 64 of a to z, 0 to 9, _ and -, and a letter or digit first";
  fields.report("blueprint_id", "invalid_value", `is ${quoted(id)}: it must have ${allowed}`);
  return null;
}

/** A folder's name as an id: itself when it is one, else its characters that an id may have. */
export function idOfFolder(folderName: string): string {
  if (blueprintIdForm.test(folderName)) return folderName;
  const slug = folderName.toLowerCase().replace(/[^a-z0-9_]+/g, "-");
  return (
    slug
      .replace(/^[-_]+/, "")
      .slice(0, BLUEPRINT_ID_CHARS_MAX)
      .replace(/-+$/, "") || "blueprint"
  );
}
