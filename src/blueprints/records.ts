// What is kept of blueprints beside the catalog's folders: which are prepared, and what was prepared for them. Ports,
// implemented in src/store.
//
// - A blueprint without a row is only in the catalog: `available`.
// - An asset's row is written before its first byte and removed after its last one, so that nothing on disk is
//   without an owner, whatever moment the process is killed at.

import type { ModelWrites } from "../models/records.ts";
import type { OperationError, OperationWrites } from "../operations/records.ts";

/** Beside these a blueprint is `available` (no row), or `broken` (its folder says nothing that can be used). */
export type PreparedState = "adding" | "added" | "removing" | "failed";

export interface PreparedBlueprint {
  readonly blueprintId: string;
  readonly state: PreparedState;
  /** The snapshot of its package; null until there is one. */
  readonly fingerprint: string | null;
  /** Bytes of the package's files. */
  readonly sizeBytes: number;
  /** The latest operation. */
  readonly operationId: string | null;
  readonly addedAtMs: number | null;
  readonly updatedAtMs: number;
  /** Why the latest operation failed; null otherwise. */
  readonly error: OperationError | null;
}

/** Something that was prepared for a blueprint and belongs to it. */
export interface BlueprintAsset {
  readonly blueprintId: string;
  readonly kind: "resource" | "model";
  /** The name under which the manifest declares it. */
  readonly assetId: string;
  /** Digest of what it is made from; another one means that it has to be made again. */
  readonly recipe: string;
  /** Whether it is complete. */
  readonly ready: boolean;
  readonly bytes: number;
  readonly createdAtMs: number;
}

export interface BlueprintRecords {
  prepared(blueprintId: string): Promise<PreparedBlueprint | null>;
  /** All of them, in the order of their ids; they are few. */
  allPrepared(): Promise<readonly PreparedBlueprint[]>;
  assets(blueprintId: string): Promise<readonly BlueprintAsset[]>;
  /** Of all blueprints. */
  allAssets(): Promise<readonly BlueprintAsset[]>;
  /** The blueprints that have a complete model of this id. */
  modelOwners(modelId: string): Promise<readonly string[]>;
  /** The content of a model that was installed by itself, on whatever node; null when it was not. */
  installedModel(modelId: string): Promise<string | null>;
  /** Whether another blueprint has this model with this recipe, complete, or it is installed by itself: they share its file. */
  hasModelFile(modelId: string, recipe: string, exceptBlueprintId: string): Promise<boolean>;
  /** Whether a bundle, a job, a run or another blueprint has the package with this fingerprint. */
  isPackageUsed(fingerprint: string, exceptBlueprintId: string): Promise<boolean>;
  /** Jobs that are not deleted and were made from the blueprint. */
  jobsOf(blueprintId: string): Promise<number>;
  /** Of those, runs that have not ended. */
  openRunsOf(blueprintId: string): Promise<number>;
}

/** What a transaction may read and write of blueprints. */
export interface BlueprintWrites
  extends Pick<BlueprintRecords, "prepared" | "assets" | "modelOwners" | "installedModel" | "openRunsOf"> {
  save(blueprint: PreparedBlueprint): Promise<void>;
  delete(blueprintId: string): Promise<void>;
  saveAsset(asset: BlueprintAsset): Promise<void>;
  deleteAsset(asset: Pick<BlueprintAsset, "blueprintId" | "kind" | "assetId">): Promise<void>;
  /**
   * What has become of the jobs that wait for this blueprint (status `preparing`): they are ready, made of this
   * package, or cannot be.
   * @returns their ids
   */
  settleJobs(blueprintId: string, outcome: JobsOutcome, nowMs: number): Promise<readonly string[]>;
}

export type JobsOutcome =
  | {
      readonly kind: "ready";
      readonly fingerprint: string;
      readonly graphId: string;
      readonly extensions: readonly string[];
    }
  | { readonly kind: "failed" };

/** The parts of a gateway transaction that additions and removals write. */
export interface AdditionWrites {
  readonly operations: OperationWrites;
  readonly models: ModelWrites;
  readonly blueprints: BlueprintWrites;
}
