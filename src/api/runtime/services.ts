// What the routes of the runtime API call; made by src/app.ts.

import type { Bundles } from "../../bundles/bundles.ts";
import type { Engine } from "../../engine/engine.ts";
import type { PoolSnapshot } from "../../execution/pools.ts";
import type { Cleanup } from "../../runs/cleanup.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import type { ConfigurationSecrets } from "../../secrets/configuration.ts";
import type { EventStreams } from "../shared/sse.ts";

export interface RuntimeServices {
  readonly engine: Engine;
  readonly records: JobRecords;
  readonly streams: EventStreams;
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
  readonly cleanup: Cleanup;
  readonly pools: PoolView;
  /** Path of a stored artifact's bytes, or null when they are gone. */
  readonly blobPath: (sha256: string) => Promise<string | null>;
  readonly home: string;
  readonly nodeName: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly nowMs: () => number;
}

export interface PoolView {
  snapshot(): Readonly<Record<string, PoolSnapshot>>;
}
