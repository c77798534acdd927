// For tests of the gateway's views of runs: the real routes, store and engine in one process; only commands are not
// started, the test says how they end.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { schemaProblem } from "../../src/blueprints/json-schema.ts";
import { Bundles } from "../../src/bundles/bundles.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { noServiceBoard } from "../../src/engine/service-port.ts";
import { defaultTerms } from "../../src/engine/share.ts";
import {
  type ArtifactRecord,
  noActions,
  type TaskOutcome,
  type TaskStart,
} from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { Paging } from "../../src/http/core/paging.ts";
import { EventStreams } from "../../src/http/core/sse.ts";
import type { ResourceParts } from "../../src/http/gateway/resources.ts";
import { gatewayApi } from "../../src/http/resources/api.ts";
import * as artifacts from "../../src/http/resources/artifacts.ts";
import * as deadLetters from "../../src/http/resources/dead-letters.ts";
import * as events from "../../src/http/resources/events.ts";
import * as logs from "../../src/http/resources/logs.ts";
import * as results from "../../src/http/resources/results.ts";
import { findRunSource } from "../../src/http/resources/run-documents.ts";
import { addSharedRoutes } from "../../src/http/resources/shared.ts";
import * as workflowProgress from "../../src/http/resources/workflow-progress.ts";
import type { NewRun } from "../../src/launch/records.ts";
import { RunEnds } from "../../src/launch/run-ends.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { RunStore } from "../../src/runs/store/run-store.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { openSecretKey } from "../../src/security/secret-key.ts";
import { type Blob, FileBlobs } from "../../src/store/blobs.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import { sqlDeadLetterRecords } from "../../src/store/sql/dead-letters.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlJobRecords } from "../../src/store/sql/jobs.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { startApp } from "./api.ts";
import { newDatabase } from "./new-database.ts";
import { until } from "./until.ts";

export type TestGateway = Awaited<ReturnType<typeof startGateway>>;

export async function startGateway() {
  const home = await mkdtemp(join(tmpdir(), "gateway-evidence-"));
  const database = await newDatabase(join(home, "db.sqlite"));
  const records = sqlGatewayRecords(database, systemClock.soon);
  const journal = sqlJobRecords(database);
  const feed = new EventFeed();
  const blobs = new FileBlobs(join(home, "blobs"));
  const bundles = await Bundles.open({
    home,
    records: sqlBundleRecords(database),
    bundleBytesMax: 1_000_000,
    bundlesBytesMax: 0,
    nowMs: systemClock.nowMs,
  });
  const starts: TaskStart[] = [];
  const slots = new PoolSlots({ default: 4 }, systemRandomness.id, () => 0);
  const engine = new Engine({
    owner: "test",
    clock: systemClock,
    randomness: systemRandomness,
    journal: new SqliteJournal(database),
    runner: {
      start: (task) => void starts.push(task),
      stop: () => {},
      send: () => {},
      respond: () => {},
    },
    slots,
    feed,
    schemaProblem,
    services: noServiceBoard,
    log: { warn: () => {}, error: () => {} },
  });
  const stopping = new AbortController();
  const secrets = new ConfigurationSecrets(await openSecretKey({ home, given: [] }));
  const runStore = new RunStore({
    home,
    records: journal,
    openBlob: (blob: Blob, first: number, last: number) => blobs.read(blob, first, last),
    findRun: (runId) => findRunSource({ records, journal, secrets }, runId),
  });
  const services = {
    deadLetterRecords: sqlDeadLetterRecords(database),
    records,
    journal,
    streams: new EventStreams({ feed, stopping: stopping.signal, log: { warn: () => {} } }),
    bundles,
    engine,
    paging: new Paging({ key: Buffer.alloc(32, 7), nowMs: systemClock.nowMs }),
    runStore,
    nowMs: systemClock.nowMs,
    stopping: stopping.signal,
  } as unknown as ResourceParts;
  const app = await startApp({}, (api) => {
    for (const { gatewayRoutes } of [events, results, artifacts, logs, deadLetters, workflowProgress]) {
      gatewayRoutes(api, services);
    }
    addSharedRoutes(gatewayApi(api, services), services);
  });
  const api = app.url;
  const get = (path: string, headers: Record<string, string> = {}) => fetch(`${api}${path}`, { headers });
  return {
    url: api,
    records,
    engine,
    starts,
    ends: new RunEnds({ records, feed, clock: systemClock }),
    get,
    async json<Body>(path: string): Promise<Body> {
      const answer = await get(path);
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`);
      return JSON.parse(text) as Body;
    },

    /** Makes a job of a manifest. */
    async createJob(manifest: JsonObject): Promise<string> {
      const folder = join(home, `source-${systemRandomness.id()}`);
      await mkdir(folder);
      await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
      const bundle = await bundles.registerFolder({ path: folder });
      const jobId = `job_${systemRandomness.id()}`;
      const nowMs = systemClock.nowMs();
      await records.write((writes) =>
        writes.insertJob({
          jobId,
          name: "test",
          status: "ready",
          source: { kind: "bundle", bundleId: bundle.bundleId },
          bundleFingerprint: bundle.fingerprint,
          graphId: bundle.graphId,
          configurationJson: "{}",
          weight: 1,
          extensions: [],
          revision: 1,
          createdAtMs: nowMs,
          updatedAtMs: nowMs,
        }),
      );
      return jobId;
    },

    /** Accepts a run of a job; it waits. */
    async createRun(jobId: string): Promise<NewRun> {
      const run: NewRun = {
        runId: `run_${systemRandomness.id()}`,
        jobId,
        jobName: "",
        blueprintId: null,
        rerunOf: null,
        runtimeJobId: `secret-${systemRandomness.id()}`,
        inputsJson: "{}",
        configOverridesJson: null,
        priority: "normal",
        trigger: { kind: "api", id: null },
        parentSpanId: null,
        traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
        agentsTotal: (await this.graphOf(jobId)).nodes.length,
        label: null,
        owner: null,
        createdAtMs: systemClock.nowMs(),
      };
      await records.write((writes) => writes.insertRun(run));
      return run;
    },

    async graphOf(jobId: string) {
      const job = await records.job(jobId);
      return (await bundles.definition(job?.bundleFingerprint ?? "")).graph;
    },

    async launch({ jobId, runId, runtimeJobId }: NewRun): Promise<void> {
      const job = await records.job(jobId);
      const { graph, manifestJson } = await bundles.definition(job?.bundleFingerprint ?? "");
      await engine.submit({
        graph,
        identity: { jobId: runtimeJobId, runId, definitionId: jobId },
        manifestJson,
        bundleFingerprint: null,
        hasOwnPayload: false,
        configurationJson: null,
        trace: null,
        ...defaultTerms,
      });
    },

    /** Waits until the n-th attempt of an agent was begun. */
    started: (agentId: string, count = 1) =>
      until(
        `attempt ${count} of ${agentId}`,
        () => starts.filter((one) => one.agentId === agentId)[count - 1] ?? null,
      ),

    /** Waits until a run has ended. */
    ended: (runId: string) =>
      until(`the end of ${runId}`, async () => {
        const run = await records.run(runId);
        return run?.finishedAtMs === null ? null : run;
      }),

    /** Keeps bytes as an artifact of a task that is to end. */
    async artifact(name: string, bytes: Buffer, more: Partial<ArtifactRecord> = {}): Promise<ArtifactRecord> {
      const { sha256, size } = await blobs.putBytes(bytes);
      return {
        artifactId: `art_${systemRandomness.id()}`,
        agentId: "work",
        name,
        kind: "artifact",
        title: null,
        primary: false,
        size,
        sha256,
        contentType: "text/plain; charset=utf-8",
        createdAtMs: systemClock.nowMs(),
        ...more,
      };
    },

    async [Symbol.asyncDispose]() {
      stopping.abort();
      await app[Symbol.asyncDispose]();
      engine.stop("the test is over");
      await engine.settledWithin(5_000);
      await database.close();
      await rm(home, { recursive: true });
    },
  };
}

const command = { exitCode: 0, signal: null, stdout: "", stderr: "", durationMs: 1, usage: null };

export function succeeded(artifacts: readonly ArtifactRecord[] = []): TaskOutcome {
  return { kind: "succeeded", actions: noActions, command, artifacts, observation: null };
}

export const failed: TaskOutcome = {
  kind: "failed",
  code: "executor.exit_nonzero",
  message: "it failed",
  command: { ...command, exitCode: 3 },
  artifacts: [],
};
