// For tests of additions and removals: the real features, store, files and commands in one process, which can be made to
// die at a chosen write and be started again on what it has left.

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { Blueprints, type WriteOperation } from "../../src/blueprints/blueprints.ts";
import { Catalog } from "../../src/blueprints/catalog.ts";
import type { AdditionWrites } from "../../src/blueprints/records.ts";
import { Resources } from "../../src/blueprints/resources.ts";
import { SharedAssets } from "../../src/blueprints/shared-assets.ts";
import { Bundles } from "../../src/bundles/bundles.ts";
import { ProcessTrees } from "../../src/execution/process/process-trees.ts";
import { SideCommands } from "../../src/execution/process/side-command.ts";
import { ModelFiles } from "../../src/models/model-files.ts";
import { isOpen } from "../../src/operations/operation-change.ts";
import { alone } from "../../src/operations/ownership.ts";
import type { Operation } from "../../src/operations/records.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { sqlBlueprintRecords } from "../../src/store/sql/blueprints.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlModelRecords } from "../../src/store/sql/models.ts";
import { sqlOperationRecords } from "../../src/store/sql/operations.ts";
import { type Files, writeFolder } from "./bundle-files.ts";
import { newDatabase } from "./new-database.ts";
import { until } from "./until.ts";

/** Where a process dies: at its n-th write, counted from 0, before or right after its commit. */
export interface Death {
  readonly atWrite: number;
  readonly isCommitted: boolean;
}

export type TestHome = Awaited<ReturnType<typeof testHome>>;

/** A home with a catalog, a database, and any number of processes one after the other. */
export async function testHome() {
  const root = await mkdtemp(join(tmpdir(), "troupe-blueprints-"));
  const home = join(root, "home");
  const folder = join(root, "catalog");
  await mkdir(home);
  await mkdir(folder);
  const database = await newDatabase(join(home, "troupe.db"));
  const records = sqlGatewayRecords(database, systemClock.soon);
  const operationRecords = sqlOperationRecords(database);
  const blueprintRecords = sqlBlueprintRecords(database);
  const feed = new EventFeed();
  const unforeseen: unknown[] = [];
  const log = { warn: () => {}, error: (fields: object) => void unforeseen.push(fields) };
  const commands = new SideCommands({
    trees: new ProcessTrees(home, systemClock),
    clock: systemClock,
    runtimeEnv: process.env,
  });
  const releases: Promise<unknown>[] = [];
  let before: { readonly blueprints: Blueprints; readonly died: Promise<void> } | null = null;
  /** A process that is gone does nothing any more: what the last one began ends first, if it has not died. */
  const gone = async () => {
    await Promise.race([before?.died, before?.blueprints.stop()]);
    await Promise.allSettled(releases);
  };

  return {
    home,
    records,
    operationRecords,
    blueprintRecords,
    feed,
    /** What the log was told of as an error. */
    unforeseen,

    writeBlueprint: (blueprintId: string, files: Files) => writeFolder(join(folder, blueprintId), files),

    /** Starts a process. @param death null: it lives */
    async start(death: Death | null = null) {
      const died = Promise.withResolvers<void>();
      const never = new Promise<never>(() => {});
      let writes = 0;
      const write = async <T>(work: (writes: AdditionWrites) => Promise<T>): Promise<T> => {
        const isLast = death !== null && writes === death.atWrite;
        if (death !== null && writes > death.atWrite) return never;
        writes++;
        if (isLast && !death.isCommitted) {
          died.resolve();
          return never;
        }
        const value = await records.write(work);
        if (!isLast) return value;
        died.resolve();
        return never;
      };
      await gone();
      const bundles = await Bundles.open({
        home,
        records: sqlBundleRecords(database),
        bundleBytesMax: 1_000_000,
        bundlesBytesMax: 0,
        nowMs: systemClock.nowMs,
      });
      const release = bundles.snapshots.release.bind(bundles.snapshots);
      bundles.snapshots.release = (fingerprint) => {
        const released = release(fingerprint);
        releases.push(released);
        return released;
      };
      const resources = new Resources({ home, runCommand: commands.run });
      const blueprints = new Blueprints(
        {
          catalog: new Catalog({
            folders: [folder],
            nowMs: systemClock.nowMs,
            changes: { of: async () => [] },
          }),
          bundles,
          records: blueprintRecords,
          write,
          resources,
          models: new ModelFiles(home),
          modelRecords: sqlModelRecords(database),
          sharedAssets: new SharedAssets({
            home,
            shared: null,
            records: blueprintRecords,
            models: sqlModelRecords(database),
            resources,
          }),
          openConfiguration: async (configuration) => ({ json: JSON.stringify(configuration), secrets: [] }),
          freeBytes: async () => 1e12,
          // No reports of progress: nobody waits for them, so a process that died at one would go on.
          clock: { ...systemClock, after: () => () => {} },
        },
        { records: operationRecords, ownership: alone, feed, newId: systemRandomness.id, log },
      );
      before = { blueprints, died: died.promise };
      return before;
    },

    /** Writes an operation down, as a request does. */
    request: async (prepared: Promise<WriteOperation>): Promise<Operation> => records.write(await prepared),

    ended: ({ operationId }: Operation): Promise<Operation> =>
      until(`the end of ${operationId}`, async () => {
        const found = await operationRecords.operation(operationId);
        return found !== null && !isOpen(found) && found;
      }),

    async [Symbol.asyncDispose]() {
      await gone();
      await commands.close();
      await database.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
