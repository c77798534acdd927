// For tests only: a home with a real store, a real package in it, and the real Preparation over both.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { descriptionOf } from "../../src/blueprints/describe-package.ts";
import { Bundles } from "../../src/bundles/bundles.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { ProcessTrees } from "../../src/execution/process/process-trees.ts";
import { SideCommands } from "../../src/execution/process/side-command.ts";
import {
  Preparation,
  type PreparationParts,
  type PreparingRun,
} from "../../src/launch/preparation/preparation.ts";
import type { LaunchSubject } from "../../src/launch/preparation/resolved-launch.ts";
import { SharedRuns } from "../../src/launch/preparation/shared-runs.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { SecretKey } from "../../src/security/secret-key.ts";
import { sqlBlueprintRecords } from "../../src/store/sql/blueprints.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import { writeFiles } from "./bundles.ts";
import { newDatabase } from "./new-database.ts";
import { servicesLacking } from "./services.ts";

/** A package that reads the folder at documents.folder; its samples lie where a user's folder would go. */
export const folderConfig = {
  documents: { folder: "" },
  local_inputs: {
    folders: [
      {
        config_path: "documents.folder",
        payload_path: "worker/mn_local_inputs/documents",
        runtime_path: "mn_local_inputs/documents",
        allowed_extensions: [".txt", ".md"],
        linked_config_paths: ["reader.input"],
      },
    ],
  },
} as const;

export const manifest = {
  manifest_version: "1.0",
  graph_id: "reader",
  entrypoints: ["read"],
  nodes: [
    {
      node_id: "read",
      agent_type: "executor",
      config: { command: ["true"], upload_path: "worker", workdir: "worker" },
    },
  ],
} as const;

/** Real time, of which a check and its validators have thirty times as much: a machine may stand still for a while. */
const patientClock: Clock = {
  ...systemClock,
  after: (delayMs, run) => systemClock.after(30 * delayMs, run),
};

export interface PackageOptions {
  readonly manifest?: JsonObject;
  readonly config?: JsonObject;
  /** Below payloads/. */
  readonly payload?: Readonly<Record<string, string>>;
}

export interface LaunchPlace extends AsyncDisposable {
  /** A folder beside the home, for what the user has. */
  readonly folder: string;
  readonly home: string;
  readonly feed: EventFeed;
  readonly secrets: ConfigurationSecrets;
  readonly preparation: Preparation;
  /** Runs that have not ended, with their runtime jobs. */
  readonly openRuns: Map<string, string>;
  /** A second program on the same home. */
  again(): Preparation;
  /** Takes a package in. */
  subject(options?: PackageOptions, changes?: Partial<LaunchSubject>): Promise<LaunchSubject>;
  /** What lies in tmp/ and below runs/. */
  leftovers(): Promise<readonly string[]>;
}

export async function makeLaunchPlace(changes: Partial<PreparationParts> = {}): Promise<LaunchPlace> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "launch-")));
  const home = join(folder, "home");
  await mkdir(join(home, "runs"), { recursive: true });
  const database = await newDatabase(join(home, "troupe.db"));
  const bundles = await Bundles.open({
    home,
    records: sqlBundleRecords(database),
    bundleBytesMax: 1024 * 1024,
    bundlesBytesMax: 0,
    nowMs: systemClock.nowMs,
  });
  const trees = new ProcessTrees(home, systemClock);
  const runtimeEnv = changes.runtimeEnv ?? { PATH: process.env.PATH };
  const side = new SideCommands({ trees, clock: changes.clock ?? patientClock, runtimeEnv });
  const feed = new EventFeed();
  const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));
  const openRuns = new Map<string, string>([["run_1", "reader-1"]]);
  const parts: PreparationParts = {
    home,
    sharedRuns: new SharedRuns(home, null),
    snapshotPayload: (fingerprint) => bundles.snapshots.payloads(fingerprint),
    bringAssets: async () => {},
    resourceFolders: async () => new Map(),
    modelFile: async () => null,
    blueprints: sqlBlueprintRecords(database),
    services: servicesLacking(() => []),
    webUiPlace: { host: "127.0.0.1", publicUrl: "http://127.0.0.1:{port}/" },
    pools: { default: 2 },
    secrets,
    sideCommand: side.run,
    workerEnvPrefixes: ["SVC_"],
    runtimeEnv,
    newId: systemRandomness.id,
    clock: patientClock,
    feed,
    openRun: async (runId) => {
      const runtimeJobId = openRuns.get(runId);
      return runtimeJobId === undefined ? null : { runtimeJobId };
    },
    commandsEnded: async () => {},
    log: {
      warn: (fields, message) => assert.fail(`${message} ${JSON.stringify(fields)}`),
      error: (fields, message) => assert.fail(`${message} ${JSON.stringify(fields)}`),
    },
    ...changes,
  };
  let packages = 0;
  return {
    folder,
    home,
    feed,
    secrets,
    openRuns,
    preparation: new Preparation(parts),
    again: () => new Preparation(parts),
    async subject(options = {}, subjectChanges = {}) {
      const path = join(folder, `package-${++packages}`);
      const payload = Object.entries({ "worker/run.py": "print(1)\n", ...options.payload });
      await writeFiles(path, {
        "manifest.json": JSON.stringify({ ...manifest, ...options.manifest }),
        "config/default.json": JSON.stringify(options.config ?? {}),
        ...Object.fromEntries(payload.map(([name, content]) => [`payloads/${name}`, content])),
      });
      const { fingerprint } = await bundles.registerFolder({ path });
      const definition = await bundles.definition(fingerprint);
      const { description, problems } = await descriptionOf(definition);
      assert.deepEqual(problems, []);
      assert.ok(description !== null);
      return {
        blueprintId: null,
        fingerprint,
        definition,
        description,
        jobConfiguration: {},
        configOverrides: null,
        inputs: {},
        ...subjectChanges,
      };
    },
    async leftovers() {
      const inTmp = await readdir(join(home, "tmp")).catch(() => []);
      const runs = await readdir(join(home, "runs"));
      const inRuns = await Promise.all(runs.map((run) => readdir(join(home, "runs", run))));
      return [...inTmp, ...inRuns.flat()];
    },
    async [Symbol.asyncDispose]() {
      await side.close();
      await database.close();
      // A check that ran out of time may still be removing its folder.
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

export const aRun: PreparingRun = { runId: "run_1", jobId: "job_1", ports: new Map(), wasChecked: true };

/** Progress that nobody stops; what was reported is kept. */
export function progress(signal: AbortSignal = new AbortController().signal) {
  const labels: string[] = [];
  return { labels, signal, report: (label: string) => void labels.push(label) };
}
