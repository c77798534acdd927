// The checks of `troupe blueprint validate`: the catalog's own, and those that need the files in payloads/.

import { basename, extname, posix } from "node:path";
import type { Config } from "../app/config.ts";
import { describeBroken } from "../blueprints/catalog-entry.ts";
import { readLocalFolders, readWebUi } from "../blueprints/describe-configuration.ts";
import { readModels, readResources } from "../blueprints/describe-manifest.ts";
import { describePackage } from "../blueprints/describe-package.ts";
import { Reading } from "../blueprints/describe-reading.ts";
import type { WebUi } from "../blueprints/package-description.ts";
import { type BundleFile, PAYLOADS_FOLDER, VALIDATORS_FOLDER, validatorKinds } from "../bundles/layout.ts";
import type { BundleProblemEntry } from "../bundles/problem.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { plural } from "./text.ts";
import { type CheckResult, inspectFolder, missingPayload, payloadLookup } from "./validate.ts";

export interface BlueprintInspection extends CheckResult {
  /** As far as it could be read. */
  readonly blueprintId: string;
  /** What it is made of, in a few words. */
  readonly summary: string;
}

const VALIDATORS = `${PAYLOADS_FOLDER}/${VALIDATORS_FOLDER}`;

/** @param folder absolute, without symlinks */
export async function inspectBlueprint(folder: string, config: Config): Promise<BlueprintInspection> {
  const { definition, files, problems } = await inspectFolder(folder, config);
  // A folder that cannot be taken as it is may hold links and pipes: nothing more of it is read.
  if (files === null) return { blueprintId: basename(folder), problems, warnings: [], summary: "" };
  if (definition === null) {
    const { identity, ...found } = await describeBroken(folder, basename(folder), problems);
    return { blueprintId: identity.blueprintId, ...found, summary: "" };
  }
  const described = describePackage(definition, basename(folder));
  const configuration = definition.configuration ?? {};
  const { folders } = readLocalFolders(configuration, definition.graph);
  const { webUi } = readWebUi(configuration, described.identity);
  const counts = [
    plural(definition.graph.nodes.length, "node"),
    plural(folders.length, "local folder"),
    webUi === null ? "no web interface" : "a web interface",
  ];
  return {
    blueprintId: described.identity.blueprintId,
    problems: [...problems, ...described.problems, ...inPayloads(files, definition.manifest, webUi)],
    warnings: described.warnings,
    summary: counts.join(", "),
  };
}

function inPayloads(
  files: readonly BundleFile[],
  manifest: JsonObject,
  webUi: WebUi | null,
): readonly BundleProblemEntry[] {
  const isThere = payloadLookup(files);
  const page = webUi?.page ?? null;
  return [
    ...missingFiles(manifest, isThere),
    ...(page === null || isThere(page)
      ? []
      : [missingPayload("/config/default.json#/web_ui/output/page", "the web interface", page)]),
    ...unknownValidators(files),
  ];
}

/**
 * What resources and models name in payloads/ and is not there. They are read here, because a package with another
 * mistake has no description.
 */
function missingFiles(
  manifest: JsonObject,
  isThere: (name: string) => boolean,
): readonly BundleProblemEntry[] {
  const ofResources = readResources(new Reading(manifest)).flatMap(({ name, from }) => {
    if (from === null || isThere(from)) return [];
    const place = placeOf(manifest.resources, "name", name);
    return [missingPayload(`/resources/${place}/from`, `the resource ${JSON.stringify(name)}`, from)];
  });
  const ofModels = readModels(new Reading(manifest)).flatMap(({ modelId, path }) => {
    if (posix.isAbsolute(path) || isThere(path)) return [];
    const place = placeOf(manifest.models, "model_id", modelId);
    return [missingPayload(`/models/${place}/path`, `the model ${JSON.stringify(modelId)}`, path)];
  });
  return [...ofResources, ...ofModels];
}

/** What is read of a list leaves out the items that are wrong, and of one name all but the first. */
function placeOf(list: JsonValue | undefined, field: string, name: string): number {
  return Array.isArray(list) ? list.findIndex((item) => isObject(item) && item[field] === name) : -1;
}

/** Files that look like validators, but would never be started. */
function unknownValidators(files: readonly BundleFile[]): readonly BundleProblemEntry[] {
  return files
    .filter(
      ({ path }) =>
        posix.dirname(path) === VALIDATORS && !validatorKinds.some((one) => one === extname(path)),
    )
    .map(({ path }) => {
      const text = `validators end in ${validatorKinds.join(", ")}: move other files into a folder of their own`;
      return {
        path: `/${path}`,
        code: "unknown_validator",
        message: `${path} would never be started: ${text}`,
      };
    });
}
