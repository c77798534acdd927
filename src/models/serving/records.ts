// What is kept of models that are served: how. The process of one is each node's own, and starts again when it is asked for.

import type { OperationWrites } from "../../operations/records.ts";
import type { ServeSettings } from "./model-backend.ts";

export interface ServedModel {
  readonly modelId: string;
  readonly settings: ServeSettings;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface ServedModelRecords {
  /** Null: it is not served. */
  served(modelId: string): Promise<ServedModel | null>;
  /** In the order of their ids. */
  allServed(): Promise<readonly ServedModel[]>;
}

/** What a gateway transaction may write of them. */
export interface ServedModelWrites {
  save(model: ServedModel): Promise<void>;
  /** @returns false when it was not served */
  remove(modelId: string): Promise<boolean>;
}

/** What was asked of models under a budget. */
export interface LlmUsage {
  readonly requests: number;
  /** Of the requests that have ended. */
  readonly tokens: number;
}

export interface LlmUsageWrites {
  /** @param scope an agent's id; empty for the run's own budget */
  used(runId: string, scope: string): Promise<LlmUsage>;
  add(runId: string, scope: string, more: LlmUsage): Promise<void>;
}

/** The parts of a gateway transaction that serving writes. */
export interface ServingWrites {
  readonly operations: OperationWrites;
  readonly servedModels: ServedModelWrites;
}
