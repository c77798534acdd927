// Models in a running program: what is registered, and what of it is installed on this machine.

import { memoryTotal } from "../execution/machine-resources.ts";
import { ContentFetcher } from "../models/fetch-content.ts";
import { Models } from "../models/models.ts";
import type { openBlueprints } from "./blueprints.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Core } from "./core.ts";

/** Of the machine, or of the control group that the program runs in. */
export function machineMemory() {
  const totalBytes = memoryTotal();
  return { totalBytes, freeBytes: Math.min(totalBytes, process.availableMemory()) };
}

export function openModels(core: Core, opened: ReturnType<typeof openBlueprints>): Models {
  const { bundles, feed, secrets, ownership, workersEnv, gatewayRecords, engineLog: log } = core;
  const { modelFiles: files, modelRecords, blueprintRecords, sharedAssets, isBrought } = opened;
  const clock = systemClock;
  const fetcher = new ContentFetcher({
    files,
    freeBytes: opened.freeBytes,
    memory: machineMemory,
    async payloadOf(blueprintId) {
      const fingerprint = (await blueprintRecords.prepared(blueprintId))?.fingerprint ?? null;
      return fingerprint === null ? null : bundles.snapshots.payloads(fingerprint);
    },
    clock,
  });
  return new Models(
    {
      records: modelRecords,
      write: (work) => gatewayRecords.write(work),
      files,
      fetcher,
      secrets,
      nodeId: core.ownNode.nodeId,
      // Who cannot have it from another node gets it from its source.
      bring: (modelId, sha256) => sharedAssets.ensureModel(modelId, sha256).catch(() => {}),
      share: (modelId, sha256) => sharedAssets.shareModel(modelId, sha256),
      isBrought,
      runsReading: () => opened.preparation.modelsRead(),
      isServed: async (modelId) => (await gatewayRecords.servedModels.served(modelId)) !== null,
      openSource: async (source) =>
        JSON.parse((await secrets.decryptForWorker(JSON.stringify(source), workersEnv)).json),
      memory: machineMemory,
      clock,
      newId: systemRandomness.id,
      log,
    },
    { records: opened.operationRecords, ownership, feed },
  );
}
