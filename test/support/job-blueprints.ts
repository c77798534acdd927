// For tests of jobs: real blueprints from a catalog folder of the test's own, and real preparation of launches, which a
// test may hold at one moment.

import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { Blueprints } from "../../src/blueprints/blueprints.ts";
import { Catalog } from "../../src/blueprints/catalog.ts";
import { Resources } from "../../src/blueprints/resources.ts";
import { SharedAssets } from "../../src/blueprints/shared-assets.ts";
import type { Bundles } from "../../src/bundles/bundles.ts";
import { FolderChanges } from "../../src/bundles/folder-changes.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { ProcessTrees } from "../../src/execution/process/process-trees.ts";
import { SideCommands } from "../../src/execution/process/side-command.ts";
import type { PreparationProgress } from "../../src/launch/preparation/payload.ts";
import {
  Preparation,
  type PreparedLaunch,
  type PreparingRun,
} from "../../src/launch/preparation/preparation.ts";
import type { LaunchSubject } from "../../src/launch/preparation/resolved-launch.ts";
import { SharedRuns } from "../../src/launch/preparation/shared-runs.ts";
import type { GatewayRecords } from "../../src/launch/records.ts";
import { ModelFiles } from "../../src/models/model-files.ts";
import type { Ownership } from "../../src/operations/ownership.ts";
import type { EventFeed } from "../../src/runs/feed.ts";
import type { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { sqlBlueprintRecords } from "../../src/store/sql/blueprints.ts";
import type { Database } from "../../src/store/sql/database.ts";
import { sqlModelRecords } from "../../src/store/sql/models.ts";
import { sqlOperationRecords } from "../../src/store/sql/operations.ts";
import { sqlPortRecords } from "../../src/store/sql/ports.ts";
import { WebUiPorts } from "../../src/web/ports.ts";
import { servicesLacking } from "./services.ts";

class TestPreparation extends Preparation {
  /** Holds each preparation at its beginning, when it is set; the run's id is given. */
  hold: ((runId: string, signal: AbortSignal) => Promise<void>) | null = null;
  /** Runs in the order in which their preparations were begun. */
  readonly begun: string[] = [];
  underWay = 0;

  override async prepare(
    run: PreparingRun,
    subject: LaunchSubject,
    progress: PreparationProgress,
  ): Promise<PreparedLaunch> {
    this.begun.push(run.runId);
    this.underWay++;
    try {
      await this.hold?.(run.runId, progress.signal);
      return await super.prepare(run, subject, progress);
    } finally {
      this.underWay--;
    }
  }
}

export interface TestBlueprintsParts {
  readonly home: string;
  readonly database: Database;
  readonly records: GatewayRecords;
  readonly bundles: Bundles;
  readonly feed: EventFeed;
  readonly secrets: ConfigurationSecrets;
  readonly ownership: Ownership;
  readonly node: string;
}

export function openTestBlueprints(parts: TestBlueprintsParts) {
  const { home, database, records, bundles, feed, secrets, ownership, node } = parts;
  const folder = join(home, "catalog");
  const log = { warn: () => {}, error: () => {} };
  const clock = systemClock;
  const newId = systemRandomness.id;
  const trees = new ProcessTrees(home, clock);
  const commands = new SideCommands({ trees, clock, runtimeEnv: process.env });
  const resources = new Resources({ home, runCommand: commands.run });
  const blueprintRecords = sqlBlueprintRecords(database);
  const portRecords = sqlPortRecords(database, node);
  const unmet: { services: readonly { readonly service: string; readonly reason: string }[] } = {
    services: [],
  };
  let aheadMs = 0;
  const models = new ModelFiles(home);
  const modelRecords = sqlModelRecords(database);
  // Its time leaps with each file that the test writes: what it read before is looked at again.
  const nowMs = () => clock.nowMs() + aheadMs;
  const changes = new FolderChanges({ home, bundleBytesMax: 1_000_000, nowMs });
  const catalog = new Catalog({ folders: [folder], nowMs, changes });
  const blueprints = new Blueprints(
    {
      catalog,
      bundles,
      records: blueprintRecords,
      write: (work) => records.write(work),
      resources,
      models,
      modelRecords,
      sharedAssets: new SharedAssets({
        home,
        shared: null,
        records: blueprintRecords,
        models: modelRecords,
        resources,
      }),
      openConfiguration: (configuration) =>
        secrets.decryptForWorker(JSON.stringify(secrets.encrypt(configuration)), {}),
      freeBytes: async () => Number.MAX_SAFE_INTEGER,
      clock,
    },
    { records: sqlOperationRecords(database), ownership, feed, newId, log },
  );
  const preparation = new TestPreparation({
    home,
    sharedRuns: new SharedRuns(home, null),
    snapshotPayload: (fingerprint) => bundles.snapshots.payloads(fingerprint),
    bringAssets: async (blueprintId, progress) => {
      if (ownership.owner() !== null) await blueprints.bringAssets(blueprintId, progress);
    },
    resourceFolders: (blueprintId) => resources.folders(blueprintId),
    modelFile: (modelId, sha256) => models.file(modelId, sha256),
    blueprints: blueprintRecords,
    services: servicesLacking((required) =>
      unmet.services.filter(({ service }) => required.some(({ name }) => name === service)),
    ),
    pools: { default: 4 },
    secrets,
    sideCommand: commands.run,
    workerEnvPrefixes: ["SVC_"],
    runtimeEnv: process.env,
    webUiPlace: { host: "127.0.0.1", publicUrl: "http://127.0.0.1:{port}" },
    feed,
    openRun: (runId) => records.openRun(runId),
    commandsEnded: async () => {},
    newId,
    clock,
    log,
  });
  const webUiPorts = new WebUiPorts({
    records: portRecords,
    start: 1,
    end: 2,
    mode: "prepublished",
    host: "127.0.0.1",
    clock,
  });

  return {
    blueprints,
    blueprintRecords,
    portRecords,
    preparation,
    webUiPorts,
    /** Services that are not there when they are required. */
    unmet,

    /** Puts a blueprint into the catalog, or a new version of it. @param files further ones, by their paths */
    async catalog(
      blueprintId: string,
      manifest: JsonObject,
      files: Readonly<Record<string, JsonObject | string>> = {},
    ): Promise<void> {
      for (const [name, content] of Object.entries({ "manifest.json": manifest, ...files })) {
        const path = join(folder, blueprintId, name);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
      }
      aheadMs += 60_000;
    },

    /** Adds a blueprint of the catalog to the end. @returns the operation, as it has ended */
    async add(blueprintId: string, request = { force: false }) {
      const insert = await blueprints.prepareAddition(blueprintId, request);
      const operation = await records.write(insert);
      blueprints.begin(operation);
      return operation;
    },

    async stop(): Promise<void> {
      await blueprints.stop();
      await commands.close();
    },
  };
}
