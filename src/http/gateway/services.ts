// What the routes of the gateway call; made by src/app/gateway.ts.

import type { Blueprints } from "../../blueprints/blueprints.ts";
import type { Catalog } from "../../blueprints/catalog.ts";
import type { FolderDifferences } from "../../blueprints/folder-differences.ts";
import type { BlueprintRecords } from "../../blueprints/records.ts";
import type { Bundles } from "../../bundles/bundles.ts";
import type { Engine } from "../../engine/engine.ts";
import type { PoolSnapshot } from "../../execution/pools.ts";
import type { BlueprintLaunches } from "../../launch/blueprint-launches.ts";
import type { Definitions } from "../../launch/definitions.ts";
import type { Launcher } from "../../launch/launcher.ts";
import type { GatewayRecords, RecordCounter } from "../../launch/records.ts";
import type { Runs } from "../../launch/runs.ts";
import type { MetricsSource } from "../../observability/metrics/metrics-source.ts";
import type { OperationRecords } from "../../operations/records.ts";
import type { DeadLetterRecords, DeadLetters } from "../../runs/dead-letters.ts";
import type { HumanAnswers, HumanRequestRecords } from "../../runs/human-answers.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import type { Retention } from "../../runs/retention.ts";
import type { RunStore } from "../../runs/store/run-store.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import type { ServiceRegistry } from "../../services/registry.ts";
import type { IdempotentRequests } from "../core/idempotency.ts";
import type { Paging } from "../core/paging.ts";
import type { RunTokens } from "../core/run-token.ts";
import type { EventStreams } from "../core/sse.ts";
import type { Waits } from "../core/waits.ts";

/** What of the configuration routes apply or show. */
export interface GatewaySettings {
  readonly environment: string;
  readonly apiTokens: readonly string[];
  readonly apiHost: string;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly requestsPerMinuteMax: number;
  readonly bodyBytesMax: number;
  readonly bundleBytesMax: number;
  readonly executorPools: Readonly<Record<string, number>>;
  readonly retentionDays: number;
  readonly retentionBytesMax: number;
}

export interface GatewayServices {
  readonly records: GatewayRecords;
  readonly counter: RecordCounter;
  /** Why the gateway's own writes fail; null while they succeed. */
  readonly storeProblem: () => Promise<string | null>;
  readonly definitions: Definitions;
  readonly runs: Runs;
  readonly launches: BlueprintLaunches;
  readonly launcher: Launcher;
  readonly bundles: Bundles;
  /** The folders of SVC_BLUEPRINT_CATALOG. */
  readonly catalog: Catalog;
  /** What was prepared of them. */
  readonly blueprintRecords: BlueprintRecords;
  /** Between the two. */
  readonly folderDifferences: FolderDifferences;
  readonly blueprints: Blueprints;
  readonly operationRecords: OperationRecords;
  readonly secrets: ConfigurationSecrets;
  readonly engine: Engine;
  /** The runtime's own records: histories, artifacts, what a runtime job looks like. */
  readonly journal: JobRecords;
  /** What runs ask people, and their dead letters. */
  readonly humanRequests: HumanRequestRecords;
  readonly deadLetterRecords: DeadLetterRecords;
  readonly humanAnswers: HumanAnswers;
  readonly deadLetters: DeadLetters;
  readonly retention: Retention;
  readonly streams: EventStreams;
  readonly waits: Waits;
  readonly metrics: MetricsSource;
  readonly idempotency: IdempotentRequests;
  readonly paging: Paging;
  readonly runTokens: RunTokens;
  readonly pools: { snapshot(): Readonly<Record<string, PoolSnapshot>> };
  readonly config: GatewaySettings;
  readonly home: string;
  readonly nodeName: string;
  /** Sets this process apart from others; letters and digits. */
  readonly processId: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly runStore: RunStore;
  /** Long-lived processes that open runs offer. */
  readonly services: ServiceRegistry;
  /** The key that a run's dashboard asks browsers for; null when it asks for none. Absent: there are no dashboards. */
  readonly dashboardKey?: (runId: string) => string | null;
  readonly nowMs: () => number;
  /** Aborted when the server shuts down: open streams end. */
  readonly stopping: AbortSignal;
}
