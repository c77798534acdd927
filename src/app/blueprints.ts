// Blueprints in a running program: the catalog, what was prepared of it, and the preparation of launches.

import { statfs } from "node:fs/promises";
import { Blueprints } from "../blueprints/blueprints.ts";
import { Catalog } from "../blueprints/catalog.ts";
import { Resources } from "../blueprints/resources.ts";
import { SharedAssets } from "../blueprints/shared-assets.ts";
import { FolderChanges } from "../bundles/folder-changes.ts";
import { Preparation } from "../launch/preparation/preparation.ts";
import { ModelFiles } from "../models/model-files.ts";
import { sqlBlueprintRecords } from "../store/sql/blueprints.ts";
import { sqlModelRecords } from "../store/sql/models.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Core } from "./core.ts";

export function openBlueprints(config: Config, core: Core) {
  const {
    bundles,
    feed,
    runner,
    secrets,
    services,
    ownership,
    gatewayRecords: records,
    operationRecords,
    engineLog: log,
    home,
    workersEnv,
    sharedRuns,
  } = core;
  const { database } = core.store;
  const clock = systemClock;
  const newId = systemRandomness.id;
  const { nowMs } = clock;
  const changes = new FolderChanges({ home, bundleBytesMax: config.bundleBytesMax, nowMs });
  const catalog = new Catalog({ folders: config.blueprintCatalog, nowMs, changes });
  const blueprintRecords = sqlBlueprintRecords(database);
  const resources = new Resources({ home, runCommand: runner.sideCommands.run });
  const models = new ModelFiles(home);
  const modelRecords = sqlModelRecords(database);
  const freeBytes = async () => {
    const { bavail, bsize } = await statfs(home);
    return bavail * bsize;
  };
  const sharedAssets = new SharedAssets({
    home,
    shared: core.shared,
    records: blueprintRecords,
    models: modelRecords,
    resources,
  });
  const blueprints = new Blueprints(
    {
      catalog,
      bundles,
      records: blueprintRecords,
      write: (work) => records.write(work),
      resources,
      models,
      modelRecords,
      sharedAssets,
      openConfiguration: (configuration) =>
        secrets.decryptForWorker(JSON.stringify(secrets.encrypt(configuration)), workersEnv),
      freeBytes,
      clock,
    },
    { records: operationRecords, ownership, feed, newId, log },
  );
  const preparation = new Preparation({
    home,
    snapshotPayload: (fingerprint) => bundles.snapshots.payloads(fingerprint),
    // Of a program that shares its records with nobody, everything that was added is here.
    bringAssets: async (blueprintId, progress) => {
      if (ownership.owner() !== null) await blueprints.bringAssets(blueprintId, progress);
    },
    resourceFolders: async (blueprintId) => {
      await sharedAssets.ensureResources(blueprintId);
      return resources.folders(blueprintId);
    },
    modelFile: async (modelId, sha256) => {
      await sharedAssets.ensureModel(modelId, sha256);
      return models.file(modelId, sha256);
    },
    blueprints: blueprintRecords,
    services,
    pools: config.executorPools,
    secrets,
    sideCommand: runner.sideCommands.run,
    workerEnvPrefixes: config.workerEnvPrefixes,
    runtimeEnv: workersEnv,
    webUiPlace: core.webUiPlace,
    feed,
    openRun: (runId) => records.openRun(runId),
    commandsEnded: (runId) => runner.commandsEnded(runId),
    sharedRuns,
    newId,
    clock,
    log,
  });
  core.sharedSweeps.push((request) => sharedAssets.removeUnused(request));
  // What is from before there was a shared store; the start does not wait for it.
  const notShared = (error: unknown) =>
    log.warn(
      { error: String(error) },
      "a resource or model is not in the store of files yet; the next start tries again",
    );
  sharedAssets.shareAll(notShared).catch(notShared);
  sharedRuns.onFetched = (runId) => {
    preparation.keepUntilEnded(runId).catch((error: unknown) => {
      const fields = { run_id: runId, error: String(error) };
      log.warn(fields, "what was fetched for a run goes at the next start");
    });
  };
  const isBrought = async (modelId: string, sha256: string) => {
    for (const owner of await blueprintRecords.modelOwners(modelId)) {
      const assets = await blueprintRecords.assets(owner);
      if (assets.some((one) => one.kind === "model" && one.assetId === modelId && one.recipe === sha256))
        return true;
    }
    return false;
  };
  return {
    modelFiles: models,
    modelRecords,
    isBrought,
    sharedAssets,
    freeBytes,
    catalog,
    blueprintRecords,
    operationRecords,
    blueprints,
    preparation,
  };
}
