// What `troupe blueprint validate` looks at: the catalog's own checks, and what only a look into payloads/ can tell.

import { basename, extname, posix } from "node:path";
import { describeBroken } from "../../blueprints/describe-broken.ts";
import { readLocalFolders, readWebUi } from "../../blueprints/describe-configuration.ts";
import { describePackage } from "../../blueprints/describe-package.ts";
import type { PackageDescription, WebUi } from "../../blueprints/package-description.ts";
import { type BundleFile, PAYLOADS_FOLDER } from "../../bundles/layout.ts";
import type { BundleProblemEntry } from "../../bundles/problem.ts";
import type { Config } from "../../config.ts";
import { plural } from "../text.ts";
import { inspectFolder, payloadLookup } from "../validate.ts";

export interface BlueprintInspection {
  /** As far as it could be read. */
  readonly blueprintId: string;
  readonly problems: readonly BundleProblemEntry[];
  readonly warnings: readonly BundleProblemEntry[];
  /** What it is made of, in a few words. */
  readonly summary: string;
}

const VALIDATORS_FOLDER = `${PAYLOADS_FOLDER}/validators`;
const VALIDATOR_KINDS = [".py", ".mjs", ".sh"];

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
    problems: [...problems, ...described.problems, ...inPayloads(files, described.description, webUi)],
    warnings: described.warnings,
    summary: counts.join(", "),
  };
}

function inPayloads(
  files: readonly BundleFile[],
  description: PackageDescription | null,
  webUi: WebUi | null,
): readonly BundleProblemEntry[] {
  const isThere = payloadLookup(files);
  const page = webUi?.page ?? null;
  return [
    ...(description === null ? [] : missingFiles(description, isThere)),
    ...(page === null || isThere(page)
      ? []
      : [notThere("/config/default.json#/web_ui/output/page", "the web interface", page)]),
    ...unknownValidators(files),
  ];
}

/** What resources and models name in payloads/ and is not there. */
function missingFiles(
  { resources, models }: PackageDescription,
  isThere: (name: string) => boolean,
): readonly BundleProblemEntry[] {
  const ofResources = resources.flatMap(({ name, from }, i) =>
    from === null || isThere(from)
      ? []
      : [notThere(`/resources/${i}/from`, `the resource ${JSON.stringify(name)}`, from)],
  );
  const ofModels = models.flatMap(({ modelId, path }, i) =>
    posix.isAbsolute(path) || isThere(path)
      ? []
      : [notThere(`/models/${i}/path`, `the model ${JSON.stringify(modelId)}`, path)],
  );
  return [...ofResources, ...ofModels];
}

function notThere(path: string, what: string, name: string): BundleProblemEntry {
  const message = `${what} needs ${JSON.stringify(name)}, which is not in payloads/`;
  return { path, code: "missing_payload", message };
}

/** Files that somebody takes for validators, and that nobody would start. */
function unknownValidators(files: readonly BundleFile[]): readonly BundleProblemEntry[] {
  return files
    .filter(
      ({ path }) => posix.dirname(path) === VALIDATORS_FOLDER && !VALIDATOR_KINDS.includes(extname(path)),
    )
    .map(({ path }) => {
      const said = `validators end in ${VALIDATOR_KINDS.join(", ")}: move other files into a folder of their own`;
      return {
        path: `/${path}`,
        code: "unknown_validator",
        message: `${path} would never be started: ${said}`,
      };
    });
}
