// What can be said of a package whose JSON files are not what they must be: who it is, and what else is wrong with it, so
// that a person sees every mistake at once.

import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { CONFIG_FILES, MANIFEST_FILE } from "../bundles/layout.ts";
import { merged } from "../bundles/merge.ts";
import type { BundleProblemEntry } from "../bundles/problem.ts";
import { isObject, type JsonObject, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { type DescribedPackage, describePackage } from "./describe-package.ts";

/** A larger file says nothing here. */
const BYTES_MAX = 1024 * 1024;

/**
 * Reads what can be read; files that cannot be say nothing.
 *
 * @param folder its files have been looked at: they are regular ones, inside it
 * @param refused what readDefinition has said
 * @returns a package without a description, with these problems and its own
 */
export async function describeBroken(
  folder: string,
  folderName: string,
  refused: readonly BundleProblemEntry[],
): Promise<DescribedPackage> {
  const files = [MANIFEST_FILE, ...CONFIG_FILES].map((name) => readable(join(folder, name)));
  const [manifest = {}, ...configs] = await Promise.all(files);
  const configuration = configs.reduce<JsonObject>(merged, {});
  const described = describePackage({ manifest, configuration, graph: null }, folderName);
  return { ...described, problems: eachOnce([...refused, ...described.problems]) };
}

/** A few fields are looked at by both. */
function eachOnce(problems: readonly BundleProblemEntry[]): readonly BundleProblemEntry[] {
  return [
    ...new Map(problems.toReversed().map((one) => [`${one.path} ${one.code}`, one])).values(),
  ].reverse();
}

/** Nothing, when the file holds no JSON object. */
async function readable(file: string): Promise<JsonObject> {
  try {
    if ((await stat(file)).size > BYTES_MAX) return {};
    const parsed = parseJson(await readFile(file, "utf8"), limits.jsonDepthMax);
    return isObject(parsed?.value) ? parsed.value : {};
  } catch {
    return {};
  }
}
