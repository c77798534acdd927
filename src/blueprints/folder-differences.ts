// How a blueprint's folder in the catalog differs from the package that was added of it.

import type { FolderChanges } from "../bundles/folder-changes.ts";
import { BundleProblem, type BundleProblemEntry } from "../bundles/problem.ts";
import { quoted } from "../engine/manifest/problems.ts";
import type { CatalogEntry } from "./catalog-entry.ts";

const FILES_NAMED = 3;

/**
 * @param entry what the catalog has; null when it has the folder no longer
 * @param fingerprint of the package that was added
 * @param changes compares the content of folders with that of packages
 * @returns a warning `folder_changed`, `folder_broken` or `folder_gone`; null while both are the same
 */
export async function folderDifference(
  entry: CatalogEntry | null,
  fingerprint: string,
  changes: Pick<FolderChanges, "of">,
): Promise<BundleProblemEntry | null> {
  if (entry === null) {
    const message = "the catalog has its folder no more: it cannot be added again once it is removed";
    return warning("folder_gone", message);
  }
  const [problem] = entry.problems;
  if (problem !== undefined) return broken(problem.message);
  try {
    const paths = await changes.of(entry.folder, fingerprint);
    return paths.length === 0 ? null : changed(paths);
  } catch (error) {
    if (!(error instanceof BundleProblem)) throw error;
    const [first] = error.problems;
    return broken((first?.message ?? "").replaceAll(entry.folder, "its folder"));
  }
}

function broken(problem: string): BundleProblemEntry {
  const message = `its folder in the catalog is broken now (${problem}): runs go on with what was added`;
  return warning("folder_broken", message);
}

function changed(paths: readonly string[]): BundleProblemEntry {
  const more = paths.length - FILES_NAMED;
  const named = paths.slice(0, FILES_NAMED).map(quoted).join(", ") + (more > 0 ? ` and ${more} more` : "");
  const message = `its folder in the catalog has changed (${named}): runs go on with what was added until it is added again`;
  return warning("folder_changed", message);
}

function warning(code: string, message: string): BundleProblemEntry {
  return { path: "", code, message };
}
