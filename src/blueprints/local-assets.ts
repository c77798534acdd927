// What additions have made beside packages, on a node where they did not: of several programs that share the records one
// works on an addition, and its resources and models are folders in that one's home.
//
// - A run of an added blueprint that is prepared here gets its resources and models fetched first (shared-assets.ts), or made
//   here where no store has them, from the package as the blueprint has it now. They stay, for the next one.
// - The records say what there is: a model that has another content here is not installed.
// - What the records do not have any more is removed (`sweep`): a row is there before its first byte, on whatever node.

import { KeyedMutex } from "../lib/async.ts";
import { opened, recipeOf } from "./addition-assets.ts";
import { fileOfModel } from "./declared-model.ts";
import { descriptionOf } from "./describe-package.ts";
import type { DeclaredModel, DeclaredResource } from "./package-description.ts";
import type { BlueprintsParts } from "./parts.ts";
import type { BlueprintAsset } from "./records.ts";
import { versionOf } from "./resources.ts";

export interface BringingProgress {
  readonly signal: AbortSignal;
  /** For people. */
  readonly report: (label: string) => void;
}

export class LocalAssets {
  readonly #parts: BlueprintsParts;
  readonly #turns = new KeyedMutex();

  constructor(parts: BlueprintsParts) {
    this.#parts = parts;
  }

  /**
   * Sees to it that the resources and models of an added blueprint are here. To be called while a run of it is open, so that
   * it is not removed meanwhile.
   *
   * @throws OperationFailed when one cannot be made here; BundleProblem when the package is not here; the signal's reason
   */
  bring(blueprintId: string, progress: BringingProgress): Promise<void> {
    return this.#turns.run(blueprintId, async () => {
      const { records, bundles } = this.#parts;
      const assets = (await records.assets(blueprintId)).filter(({ ready }) => ready);
      if (assets.length === 0) return;
      const fingerprint = (await records.prepared(blueprintId))?.fingerprint ?? null;
      if (fingerprint === null) return;
      const definition = await bundles.definition(fingerprint);
      const { description } = await descriptionOf(definition, blueprintId);
      if (description === null) return;
      const from = {
        blueprintId,
        fingerprint,
        payload: bundles.snapshots.payloads(fingerprint),
        packageConfiguration: definition.configuration ?? {},
        ...progress,
      };
      await this.#parts.sharedAssets.ensureResources(blueprintId);
      for (const resource of description.resources) await this.#bringResource(resource, from);
      for (const model of description.models) {
        const asset = assets.find(({ kind, assetId }) => kind === "model" && assetId === model.modelId);
        if (asset !== undefined) await this.#bringModel(model, asset, from);
      }
    });
  }

  async #bringResource(resource: DeclaredResource, from: From): Promise<void> {
    const { resources, openConfiguration } = this.#parts;
    const { blueprintId, fingerprint, payload, packageConfiguration, signal, report } = from;
    const version = versionOf(recipeOf(fingerprint, resource));
    const current = await resources.current(blueprintId, resource.name);
    if (current !== null && (current === version || current.startsWith(`${version}-`))) return;
    report(`Making ${resource.title ?? resource.name}`);
    const configuration = await opened(() => openConfiguration(packageConfiguration));
    await resources.make({ blueprintId, resource, version, payload, configuration, signal });
    await resources.show(blueprintId, resource.name, version);
  }

  async #bringModel(model: DeclaredModel, { recipe: sha256 }: BlueprintAsset, from: From): Promise<void> {
    const { models, sharedAssets } = this.#parts;
    const { payload, signal, report } = from;
    await sharedAssets.ensureModel(model.modelId, sha256);
    if ((await models.bytes(model.modelId, sha256)) !== null) return;
    report(`Installing the model ${model.modelId}`);
    const path = await fileOfModel(model, payload);
    const { modelId } = model;
    const asked = { modelId, path, sha256, knownSha256: sha256, signal, progress: () => {} };
    // Its owners are in the records already.
    await models.install(asked, async () => {});
  }

  /** Removes what blueprints have let go of, on whatever node. */
  async sweep(): Promise<void> {
    const { records, resources, models, modelRecords } = this.#parts;
    await resources.sweepUnowned(() => records.allAssets());
    await models.sweepUnowned(async () => [
      ...(await records.allAssets()).filter(({ kind }) => kind === "model").map(({ assetId }) => assetId),
      ...(await modelRecords.allInstallations()).map(({ modelId }) => modelId),
    ]);
  }
}

interface From extends BringingProgress {
  readonly blueprintId: string;
  readonly fingerprint: string;
  readonly payload: string;
  readonly packageConfiguration: Parameters<BlueprintsParts["openConfiguration"]>[0];
}
