// How deployments start and stop instances: what does it (src/launch), in transactions of its own kind.

import type { JsonObject } from "../engine/json.ts";
import type { Place } from "./places.ts";
import type {
  Deployment,
  DeploymentRecords,
  DeploymentSource,
  DeploymentVersion,
  DeploymentWrites,
} from "./records.ts";
import type { NewInstance } from "./rollout.ts";

/** What one transaction may write. */
export interface ControllerWrites {
  readonly deployments: DeploymentWrites;
}

export interface ControllerRecords<Writes> {
  readonly deployments: DeploymentRecords;
  write<T>(work: (writes: Writes) => Promise<T>): Promise<T>;
}

export interface StartedInstance {
  readonly runId: string;
  readonly runtimeJobId: string;
}

/** Inserts a run that was checked, in a transaction. @param place where it is launched; null: by this program */
export type InsertInstance<Writes> = (writes: Writes, place: Place | null) => Promise<StartedInstance>;

export interface InstanceRuns<Writes> {
  /** Checks everything about an instance's run; writes nothing. @throws DomainError */
  prepare(
    deployment: Deployment,
    version: DeploymentVersion,
    instance: NewInstance,
  ): Promise<InsertInstance<Writes>>;
  /** The nodes on which instances of a version may run, of a job that was checked; none where there are no others. */
  places(version: DeploymentVersion): Promise<readonly Place[]>;
  /** To be called when it is on disk. */
  accepted(runId: string, place: Place | null): void;
  cancel(writes: Writes, runId: string): Promise<void>;
  /** To be called when that is on disk. */
  cancelled(jobId: string): void;
}

/** What a version is made of. */
export interface VersionRequest {
  readonly name: string;
  readonly source: DeploymentSource;
  /** Secrets in plaintext. */
  readonly config: JsonObject;
}

/** A version that was checked, and whose job is still to be made. */
export interface VersionDraft<Writes> {
  readonly services: number;
  /** As it is kept: secrets encrypted. */
  readonly config: JsonObject;
  /** In the deployment's transaction. @returns the job's id */
  insert(writes: Writes): Promise<string>;
  /** To be called after its commit. */
  created(): void;
}
