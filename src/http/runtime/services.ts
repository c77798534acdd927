// What the routes of the runtime API call; made by src/app/app.ts.

import type { Bundles } from "../../bundles/bundles.ts";
import type { Engine } from "../../engine/engine.ts";
import type { PoolSnapshot } from "../../execution/pools.ts";
import type { MetricsSource } from "../../observability/metrics/metrics-source.ts";
import type { Cleanup } from "../../runs/cleanup.ts";
import type { DeadLetterRecords, DeadLetters } from "../../runs/dead-letters.ts";
import type { HumanAnswers, HumanRequestRecords } from "../../runs/human-answers.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import type { Retention } from "../../runs/retention.ts";
import type { RunStore } from "../../runs/store/run-store.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import type { ServiceRegistry } from "../../services/registry.ts";
import type { EventStreams } from "../core/sse.ts";
import type { Waits } from "../core/waits.ts";

export interface RuntimeServices {
  readonly engine: Engine;
  readonly records: JobRecords;
  /** What runs ask people, and their dead letters. */
  readonly humanRequests: HumanRequestRecords;
  readonly deadLetterRecords: DeadLetterRecords;
  readonly humanAnswers: HumanAnswers;
  readonly deadLetters: DeadLetters;
  readonly streams: EventStreams;
  readonly waits: Waits;
  readonly metrics: MetricsSource;
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
  readonly cleanup: Cleanup;
  readonly retention: Retention;
  readonly pools: PoolView;
  readonly runStore: RunStore;
  /** Long-lived processes that open jobs offer. */
  readonly services: ServiceRegistry;
  readonly home: string;
  readonly nodeName: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly nowMs: () => number;
}

export interface PoolView {
  snapshot(): Readonly<Record<string, PoolSnapshot>>;
}
