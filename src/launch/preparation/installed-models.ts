// The models that a package works with: those that it brings along, and those that it requires of others.
//
// I1. Of several blueprints that have a model, the launch's own comes first; a package that declares what its file
//     must be gets no other one.
// I2. No two models share a name in SVC_MODELS_DIR, and a name is one on every file system.

import type { PackageDescription } from "../../blueprints/package-description.ts";
import type { BlueprintRecords } from "../../blueprints/records.ts";
import { folderName } from "../../execution/runner/paths.ts";

const NAME_CHARS_MAX = 200;

/** What additions have made. */
export type PreparedAssets = Pick<BlueprintRecords, "assets" | "modelOwners">;

export interface ModelPlaces {
  readonly blueprints: PreparedAssets;
  /** Where a model's file of this content is; null when it is not there. */
  readonly modelFile: (modelId: string, sha256: string) => Promise<string | null>;
}

/** @returns the ids of all models that a package declares or requires, each once */
export function modelIdsOf({ models, requirements }: PackageDescription): readonly string[] {
  return [...new Set([...models.map(({ modelId }) => modelId), ...requirements.models])];
}

/**
 * Finds the file of a model.
 *
 * @param blueprintId the launch's own; null for an uploaded bundle
 * @returns null when it is not installed
 */
export async function findModel(
  modelId: string,
  {
    blueprintId,
    description,
  }: { readonly blueprintId: string | null; readonly description: PackageDescription },
  { blueprints, modelFile }: ModelPlaces,
): Promise<string | null> {
  const wanted = description.models.find((one) => one.modelId === modelId)?.sha256 ?? null;
  const owners = await blueprints.modelOwners(modelId);
  const ownFirst = owners.toSorted((a, b) => Number(b === blueprintId) - Number(a === blueprintId));
  for (const owner of ownFirst) {
    const assets = await blueprints.assets(owner);
    const model = assets.find(({ kind, assetId, ready }) => kind === "model" && assetId === modelId && ready);
    if (model === undefined) continue;
    // An addition that goes on, or has failed, may have brought the next package's content beside this one's.
    const sha256 = owner === blueprintId ? (wanted ?? model.recipe) : model.recipe;
    if (wanted !== null && sha256 !== wanted) continue;
    const file = await modelFile(modelId, sha256);
    if (file !== null) return file;
  }
  return null;
}

/**
 * The name of a model in SVC_MODELS_DIR: its id, in which everything but letters, digits and "-_.~" is written as in
 * URLs (%2F), and so is a dot at its beginning (I2).
 */
export function modelName(modelId: string): string {
  const name = encodeURIComponent(modelId.toWellFormed())
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/^\./, "%2E");
  return name.length <= NAME_CHARS_MAX ? name : folderName(modelId);
}
