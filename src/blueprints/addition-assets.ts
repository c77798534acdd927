// What an addition makes beside the package's snapshot: resources and models.
//
// - Every asset has a row before its first byte (records.ts).
// - What is there and has not changed is not made again; what an addition that was cut off has made is found.
// - What a killed process left incomplete is gone before the first addition of the next one looks at its blueprint: that
//   may fail, or come to make something else.

import { createHash } from "node:crypto";
import type { Definition } from "../bundles/definition.ts";
import { forgetBrought, registerBrought } from "../models/brought-models.ts";
import type { Content } from "../models/copy-content.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { Operation } from "../operations/records.ts";
import { bytesOfModel, fileOfModel } from "./declared-model.ts";
import type { DeclaredModel, DeclaredResource, PackageDescription } from "./package-description.ts";
import type { BlueprintsParts } from "./parts.ts";
import type { AdditionWrites, BlueprintAsset } from "./records.ts";
import { versionOf } from "./resources.ts";

/** What is being added. */
export interface Package {
  readonly blueprintId: string;
  readonly fingerprint: string;
  readonly sizeBytes: number;
  readonly definition: Definition;
  readonly description: PackageDescription;
  readonly takenAtMs: number;
}

/** A resource as it has to be. */
export interface WantedResource {
  readonly resource: DeclaredResource;
  readonly recipe: string;
  readonly version: string;
}

export class AdditionAssets {
  readonly #parts: BlueprintsParts;

  #sweep: Promise<void> | null = null;

  constructor(parts: BlueprintsParts) {
    this.#parts = parts;
  }

  /** Removes, once, what a killed process has left half-made, of any blueprint. */
  sweep(): Promise<void> {
    const { resources, models } = this.#parts;
    // What cannot be removed matters only if it is in the way of what is made: then that fails.
    this.#sweep ??= Promise.all([resources.sweep(), models.sweep()]).then(
      () => {},
      () => {},
    );
    return this.#sweep;
  }

  /** @returns the resources as they have to be, all of them there */
  async makeResources(context: OperationContext, taken: Package): Promise<readonly WantedResource[]> {
    const { records, resources, bundles, openConfiguration } = this.#parts;
    const { blueprintId, definition, description, fingerprint } = taken;
    const known = await this.#assetsByName(blueprintId, "resource");
    const wanted: WantedResource[] = [];
    const missing: WantedResource[] = [];
    const isIdle = (await records.openRunsOf(blueprintId)) === 0;
    for (const resource of description.resources) {
      const want = await this.#wanted(context.operation, taken, resource);
      wanted.push(want);
      if (isIdle) await resources.tidy(blueprintId, resource.name, want.version);
      if (!(await resources.has(blueprintId, resource.name, want.version))) missing.push(want);
    }
    if (missing.length === 0) {
      await context.skip("resources");
      await this.#share(blueprintId, wanted);
      return wanted;
    }
    await context.step("resources");
    const configuration = await opened(() => openConfiguration(definition.configuration ?? {}));
    for (const [i, { resource, recipe, version }] of missing.entries()) {
      const { name, title } = resource;
      const place = missing.length === 1 ? "" : ` (${i + 1} of ${missing.length})`;
      context.progress(i / missing.length, `Making ${title ?? name}${place}`);
      if (!known.has(name)) await this.#claim({ blueprintId, kind: "resource", assetId: name, recipe });
      const { signal } = context;
      const payload = bundles.snapshots.payloads(fingerprint);
      await resources.make({ blueprintId, resource, version, payload, configuration, signal });
    }
    await this.#share(blueprintId, wanted);
    return wanted;
  }

  async #share(blueprintId: string, wanted: readonly WantedResource[]): Promise<void> {
    const { sharedAssets } = this.#parts;
    for (const { resource, version } of wanted)
      await sharedAssets.shareResource(blueprintId, resource.name, version);
  }

  /**
   * The version of a resource that this addition is about: named after its recipe, so that the next addition finds what
   * one that failed has made; a forced one has versions of its own.
   */
  async #wanted(
    { operationId, request }: Operation,
    { blueprintId, fingerprint }: Package,
    resource: DeclaredResource,
  ): Promise<WantedResource> {
    // Its command may read any file of the package.
    const recipe = recipeOf(fingerprint, resource);
    const version = versionOf(recipe);
    if (request.force === true) return { resource, recipe, version: `${version}-${operationId}` };
    const current = await this.#parts.resources.current(blueprintId, resource.name);
    // A version says itself what it was made from; the row may be older than what runs find.
    const isOfRecipe = current !== null && (current === version || current.startsWith(`${version}-`));
    return { resource, recipe, version: isOfRecipe ? current : version };
  }

  async installModels(context: OperationContext, taken: Package): Promise<void> {
    const { models, bundles, sharedAssets } = this.#parts;
    const { signal } = context;
    const { blueprintId, description, fingerprint } = taken;
    const payload = bundles.snapshots.payloads(fingerprint);
    const known = await this.#assetsByName(blueprintId, "model");
    const force = context.operation.request.force === true;
    const missing: DeclaredModel[] = [];
    for (const model of description.models) {
      const asset = known.get(model.modelId);
      if (force || asset === undefined || !(await this.#isInstalled(asset, model))) missing.push(model);
    }
    if (missing.length === 0) return context.skip("models");
    await context.step("models");
    const sizes = await Promise.all(missing.map((model) => bytesOfModel(model, payload)));
    const totalBytes = Math.max(1, sumOf(sizes));
    for (const [i, model] of missing.entries()) {
      const { modelId: assetId } = model;
      const doneBytes = sumOf(sizes.slice(0, i));
      const label = `Installing the model ${assetId}`;
      if (!known.has(assetId)) await this.#claim({ blueprintId, kind: "model", assetId, recipe: "" });
      const progress = (bytes: number) => context.progress((doneBytes + bytes) / totalBytes, label);
      progress(0);
      const knownSha256 = force ? null : (known.get(assetId)?.recipe ?? "");
      const path = await fileOfModel(model, payload);
      const asked = { modelId: assetId, path, sha256: model.sha256, knownSha256, signal, progress };
      await models.install(asked, async (content) => {
        await sharedAssets.shareModel(assetId, content.sha256);
        await this.#ownModel(blueprintId, model, content);
      });
    }
  }

  /** A model without a declared content is checked again: its file may be another one by now. */
  async #isInstalled(asset: BlueprintAsset, { modelId, sha256 }: DeclaredModel): Promise<boolean> {
    if (!asset.ready || sha256 === null || sha256 !== asset.recipe) return false;
    return (await this.#parts.models.bytes(modelId, sha256)) !== null;
  }

  /** Removes what the package as it is now does not need, while no run is open that might. */
  async tidy(blueprintId: string, description: PackageDescription): Promise<void> {
    const { records, resources, models, write } = this.#parts;
    const isIdle = await write(async ({ blueprints }) => {
      if ((await blueprints.openRunsOf(blueprintId)) > 0) return false;
      // From here on no run is accepted that needs what goes.
      for (const asset of await blueprints.assets(blueprintId)) {
        if (!isDeclaredIn(description, asset)) await blueprints.saveAsset({ ...asset, ready: false });
      }
      return true;
    });
    if (!isIdle) return;
    for (const asset of await records.assets(blueprintId)) {
      const { kind, assetId } = asset;
      const isDeclared = isDeclaredIn(description, asset);
      const letGo = () => write((writes) => letGoOf(writes, asset));
      if (kind === "model") {
        const except = isDeclared ? "" : blueprintId;
        const isRead = await this.#isReadByOthers(blueprintId, assetId);
        const hasOwner = async (sha256: string) =>
          isRead || (await records.hasModelFile(assetId, sha256, except));
        await models.removeUnowned(assetId, hasOwner, isDeclared ? undefined : letGo);
      } else if (isDeclared) await resources.tidy(blueprintId, assetId, null);
      else {
        await resources.remove(blueprintId, assetId);
        await letGo();
      }
    }
  }

  /** Whether runs of other blueprints are open that may read any content of a model, also one without an owner. */
  async #isReadByOthers(blueprintId: string, modelId: string): Promise<boolean> {
    const { records } = this.#parts;
    for (const owner of await records.modelOwners(modelId)) {
      if (owner !== blueprintId && (await records.openRunsOf(owner)) > 0) return true;
    }
    return false;
  }

  async #assetsByName(blueprintId: string, kind: BlueprintAsset["kind"]) {
    const assets = await this.#parts.records.assets(blueprintId);
    return new Map(assets.filter((one) => one.kind === kind).map((one) => [one.assetId, one]));
  }

  /** Writes down that something is about to be made. */
  #claim(asset: Pick<BlueprintAsset, "blueprintId" | "kind" | "assetId" | "recipe">): Promise<void> {
    const { write, clock } = this.#parts;
    const row = { ...asset, ready: false, bytes: 0, createdAtMs: clock.nowMs() };
    return write((writes) => writes.blueprints.saveAsset(row));
  }

  /** Writes down that a model is whole. */
  #ownModel(blueprintId: string, { modelId, path }: DeclaredModel, content: Content): Promise<void> {
    const { write, clock } = this.#parts;
    const createdAtMs = clock.nowMs();
    const { sha256: recipe, bytes } = content;
    const row = {
      blueprintId,
      kind: "model",
      assetId: modelId,
      recipe,
      ready: true,
      bytes,
      createdAtMs,
    } as const;
    const source = { payload: path, blueprint_id: blueprintId };
    return write(async ({ blueprints, models }) => {
      await blueprints.saveAsset(row);
      await registerBrought(models, { modelId, source, content }, createdAtMs);
    });
  }
}

/** Writes down that a blueprint does not have something any more. */
export async function letGoOf(
  { blueprints, models }: AdditionWrites,
  asset: Pick<BlueprintAsset, "blueprintId" | "kind" | "assetId">,
): Promise<void> {
  await blueprints.deleteAsset(asset);
  if (asset.kind === "model") await forgetBrought(models, asset.assetId);
}

function isDeclaredIn({ resources, models }: PackageDescription, { kind, assetId }: BlueprintAsset): boolean {
  if (kind === "resource") return resources.some(({ name }) => name === assetId);
  return models.some(({ modelId }) => modelId === assetId);
}

/** @throws OperationFailed when a variable of the configuration is not set */
export async function opened<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof Error && error.name === "ConfigurationUnreadable")) throw error;
    throw new OperationFailed("configuration_unreadable", error.message);
  }
}

/** Digest of what a resource is made from. */
export function recipeOf(fingerprint: string, resource: DeclaredResource): string {
  const madeFrom = { fingerprint, resource: { ...resource } };
  return createHash("sha256").update(JSON.stringify(madeFrom)).digest("hex");
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}
