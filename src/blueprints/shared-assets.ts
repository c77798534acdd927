// Resources and models of blueprints for other machines, in the shared store under the paths that they have in SVC_HOME:
// from before their row says that they are whole, until no row and no open run needs them.
//
// - A machine that lacks one fetches it when a launch, or a run that it continues, needs it.
// - Of the versions of one recipe the newest counts: a forced addition makes one that replaces the others.
// Without a shared store nothing of this happens.

import { join } from "node:path";
import { FilesUnavailable, type SharedFolders, type Unused } from "../bundles/shared-folders.ts";
import { exists } from "../lib/files.ts";
import { folderName } from "../lib/paths.ts";
import type { ModelRecords } from "../models/records.ts";
import type { BlueprintAsset, BlueprintRecords } from "./records.ts";
import type { Resources } from "./resources.ts";
import { versionOf } from "./resources.ts";

export interface SharedAssetsParts {
  /** SVC_HOME. */
  readonly home: string;
  /** Null: this machine is the only one. */
  readonly shared: SharedFolders | null;
  readonly records: Pick<BlueprintRecords, "allPrepared" | "assets" | "openRunsOf">;
  readonly models: Pick<ModelRecords, "allInstallations">;
  readonly resources: Resources;
}

export class SharedAssets {
  readonly #parts: SharedAssetsParts;

  constructor(parts: SharedAssetsParts) {
    this.#parts = parts;
  }

  shareResource(blueprintId: string, name: string, version: string): Promise<void> {
    return this.#share(`resources/${folderName(blueprintId)}/${name}~${version}`);
  }

  shareModel(modelId: string, sha256: string): Promise<void> {
    return this.#share(`models/${folderName(modelId)}/${sha256}`);
  }

  /**
   * Stores what this machine has and the store lacks, as what is from before there was one.
   *
   * @param told is called with the error of one that cannot be stored
   */
  async shareAll(told: (error: unknown) => void): Promise<void> {
    const { shared, records, resources } = this.#parts;
    if (shared === null) return;
    for (const { blueprintId } of await records.allPrepared()) {
      for (const { kind, assetId, recipe } of await records.assets(blueprintId)) {
        try {
          if (kind === "model") await this.shareModel(assetId, recipe);
          else {
            const version = await resources.current(blueprintId, assetId);
            if (version !== null) await this.shareResource(blueprintId, assetId, version);
          }
        } catch (error) {
          told(error);
        }
      }
    }
  }

  async #share(path: string): Promise<void> {
    const { home, shared } = this.#parts;
    const place = join(home, path);
    if (shared === null || !(await exists(place)) || (await shared.has(path))) return;
    await shared.store(path, place, { isFixed: true });
  }

  /** Sees to it that the resources of a blueprint that are whole are here, each in its newest version. */
  async ensureResources(blueprintId: string): Promise<void> {
    const { home, shared, records, resources } = this.#parts;
    if (shared === null) return;
    const below = `resources/${folderName(blueprintId)}`;
    const whole = (await records.assets(blueprintId)).filter(
      ({ kind, ready }) => kind === "resource" && ready,
    );
    if (whole.length === 0) return;
    let stored: readonly string[];
    try {
      stored = await shared.names(below);
    } catch (error) {
      // What is here does, also when a node that is away may have a newer version.
      if (error instanceof FilesUnavailable && (await this.#areHere(blueprintId, whole))) return;
      throw error;
    }
    for (const { assetId, recipe } of whole) {
      const prefix = `${assetId}~`;
      const version = stored.findLast((name) => isOfRecipe(name, assetId, recipe))?.slice(prefix.length);
      if (version === undefined || version === (await resources.current(blueprintId, assetId))) continue;
      if (await shared.fetch(`${below}/${prefix}${version}`, join(home, below, `${prefix}${version}`)))
        await resources.show(blueprintId, assetId, version);
    }
  }

  async #areHere(blueprintId: string, whole: readonly BlueprintAsset[]): Promise<boolean> {
    for (const { assetId, recipe } of whole) {
      const version = await this.#parts.resources.current(blueprintId, assetId);
      if (version === null || !isOfRecipe(`${assetId}~${version}`, assetId, recipe)) return false;
    }
    return true;
  }

  async ensureModel(modelId: string, sha256: string): Promise<void> {
    const path = `models/${folderName(modelId)}/${sha256}`;
    await this.#parts.shared?.fetch(path, join(this.#parts.home, path));
  }

  /** Removes from the store what no row and no open run needs. @param request without `isNamed` */
  async removeUnused(request: Omit<Unused, "isNamed">): Promise<void> {
    const { shared, records, models } = this.#parts;
    if (shared === null) return;
    const named: BlueprintAsset[] = [];
    /** Folders of what runs may still read, in any version. */
    const inUse = new Set<string>();
    for (const { blueprintId } of await records.allPrepared()) {
      const assets = await records.assets(blueprintId);
      named.push(...assets);
      if ((await records.openRunsOf(blueprintId)) === 0) continue;
      inUse.add(folderName(blueprintId));
      for (const { kind, assetId } of assets) if (kind === "model") inUse.add(folderName(assetId));
    }
    const installed = new Set(
      (await models.allInstallations()).map(({ modelId, sha256 }) => `${folderName(modelId)}/${sha256}`),
    );
    const isNeeded = (kind: BlueprintAsset["kind"]) => async (path: string) => {
      const [folder = "", name = ""] = path.split("/");
      const isAsked = (asset: BlueprintAsset) =>
        asset.kind === "resource"
          ? folder === folderName(asset.blueprintId) && isOfRecipe(name, asset.assetId, asset.recipe)
          : folder === folderName(asset.assetId) && name === asset.recipe;
      return (
        inUse.has(folder) ||
        installed.has(path) ||
        named.some((asset) => asset.kind === kind && isAsked(asset))
      );
    };
    await shared.removeUnused("resources", { ...request, isNamed: isNeeded("resource") });
    await shared.removeUnused("models", { ...request, isNamed: isNeeded("model") });
  }
}

function isOfRecipe(name: string, assetId: string, recipe: string): boolean {
  const version = `${assetId}~${versionOf(recipe)}`;
  return name === version || name.startsWith(`${version}-`);
}
