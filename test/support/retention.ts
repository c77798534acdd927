// For tests of retention: a home with real SQLite and real files, and a clock that the test moves.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { systemClock } from "../../src/app/clock.ts";
import { Bundles } from "../../src/bundles/bundles.ts";
import { newTally } from "../../src/engine/tally.ts";
import type { ArtifactRecord } from "../../src/engine/task-port.ts";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { Cleanup } from "../../src/runs/cleanup.ts";
import { Retention, type RetentionLimits } from "../../src/runs/retention.ts";
import { FileBlobs } from "../../src/store/blobs.ts";
import { homeLeftovers } from "../../src/store/home-leftovers.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlJobRecords } from "../../src/store/sql/jobs.ts";
import { sqlRetentionRecords } from "../../src/store/sql/retention.ts";
import { SqliteFreeSpace } from "../../src/store/sqlite/free-space.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { EngineHarness } from "./engine-harness.ts";
import { artifact, changes, progress } from "./journal-records.ts";
import { newDatabase } from "./new-database.ts";

export const keepAll: RetentionLimits = { olderThanDays: 0, bytesMax: 0 };

export type RetentionScene = Awaited<ReturnType<typeof retentionScene>>;

/**
 * @param given.limits those of the program
 * @param given.mustRemove asked before a folder of this name is removed; throws what the system would
 */
export async function retentionScene(
  given: {
    readonly limits?: RetentionLimits;
    readonly filesAreShared?: boolean;
    readonly mustRemove?: (name: string) => void;
  } = {},
) {
  const mustRemove = given.mustRemove ?? (() => {});
  const home = await mkdtemp(join(tmpdir(), "troupe-retention-"));
  const database = await newDatabase(join(home, "troupe.db"));
  const blobs = new FileBlobs(join(home, "blobs"));
  const journal = new SqliteJournal(database);
  const records = sqlJobRecords(database);
  const gateway = sqlGatewayRecords(database, systemClock.soon);
  const retentionRecords = sqlRetentionRecords(database);
  let aheadMs = 0;
  const timers = new Map<() => void, number>();
  const clock = {
    nowMs: () => Date.now() + aheadMs,
    steadyMs: systemClock.steadyMs,
    soon: systemClock.soon,
    /** What comes soon comes by itself; what comes later, when the test decides. */
    after: (delayMs: number, then: () => void) => {
      if (delayMs < 1_000) return systemClock.after(delayMs, then);
      timers.set(then, delayMs);
      return () => void timers.delete(then);
    },
  };
  const bundles = await Bundles.open({
    home,
    records: sqlBundleRecords(database),
    bundleBytesMax: 100_000,
    bundlesBytesMax: 0,
    nowMs: clock.nowMs,
  });
  const removedRuns: string[] = [];
  const warned: string[] = [];
  const { engine } = new EngineHarness();
  const cleanup = new Cleanup({
    records,
    retention: retentionRecords,
    engine,
    control: engine,
    clock,
    removeBlob: (sha256, sinceMs, options) => blobs.removeUnlessPutSince(sha256, sinceMs, options),
    removeRunFiles: async (runId) => {
      mustRemove(runId);
      removedRuns.push(runId);
    },
    commandsEnded: async () => {},
  });
  const freeSpace = new SqliteFreeSpace(database);
  const duty = { isOwn: true };
  const retention = new Retention({
    records: retentionRecords,
    cleanup,
    limits: given.limits ?? keepAll,
    filesAreShared: given.filesAreShared ?? false,
    blobPages: () => blobs.pages(),
    leftovers: homeLeftovers({
      home,
      isRunThere: (runId) => retentionRecords.isRunThere(runId),
      remove: async (path) => {
        mustRemove(basename(path));
        await removeTree(path);
      },
    }),
    removeSnapshots: (request) => bundles.snapshots.removeUnused(request),
    takeDuty: async () => duty.isOwn,
    shrinkDatabase: () => freeSpace.shrink(),
    clock,
    log: { warn: (_fields, message) => void warned.push(message), error: () => {} },
  });
  return {
    home,
    database,
    blobs,
    journal,
    records,
    gateway,
    bundles,
    retentionRecords,
    retention,
    duty,
    cleanup,
    removedRuns,
    warned,
    timers,
    clock,
    pass: (ms: number) => {
      aheadMs += ms;
    },
    fire() {
      for (const [then] of [...timers]) {
        timers.delete(then);
        then();
      }
    },

    /** A job of the runtime's own API that ended so long ago, with a history and an artifact of so many bytes. */
    async ended(jobId: string, agoMs: number, bytes: { history: number; artifact?: string }) {
      const artifacts = bytes.artifact === undefined ? [] : [await this.artifact(bytes.artifact)];
      const artifactBytes = artifacts.reduce((sum, { size }) => sum + size, 0);
      const tally = { ...newTally(), historyChars: bytes.history, artifactBytes };
      const updatedAtMs = Math.floor(clock.nowMs() - agoMs);
      const end = progress({ status: "completed", updatedAtMs, tally });
      await journal.commit([changes({ jobId, progress: end, artifacts })]);
    },

    async artifact(text: string): Promise<ArtifactRecord> {
      const { sha256, size } = await blobs.putBytes(Buffer.from(text));
      return artifact(sha256, { artifactId: "art_1", size });
    },

    async left(): Promise<readonly string[]> {
      const { rows } = await records.page({ includeTerminal: true, limit: 1_000, after: null });
      return rows.map(({ jobId }) => jobId).sort();
    },

    async [Symbol.asyncDispose]() {
      await retention.stop();
      await cleanup.stop();
      await database.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}
