// What is kept of deployments: so many instances of a service graph, of one version or on the way from one to another. Ports,
// implemented in src/store.
//
// - A deployment and its instances are read and changed in one transaction, and a change that was prepared for an older state
//   is not made. So an instance is started once, also when two programs come to it.
// - An instance is a run. Others find what it offers while its row says that it serves, and at no other time.

import type { JsonObject } from "../engine/json.ts";
import type { Page } from "../lib/page.ts";

export const strategyKinds = ["rolling", "canary", "blue_green"] as const;

/** How instances of one version are replaced by those of another. */
export interface Strategy {
  readonly kind: (typeof strategyKinds)[number];
  /** Instances beyond `count`, at most; blue_green has a whole second set. */
  readonly maxParallel: number;
  /** Instances of the new version that serve before the others are replaced (canary). */
  readonly canaries: number;
  /** How long an instance is healthy before it serves. */
  readonly minHealthySeconds: number;
  /** An instance that does not serve by then has failed. */
  readonly healthyDeadlineSeconds: number;
  /** So long without an instance more that serves, and the rollout has failed. */
  readonly progressDeadlineSeconds: number;
  /** Goes on without a promotion once the canaries, or all instances of the second set, are healthy. */
  readonly autoPromote: boolean;
  /** A rollout that has failed goes back to the last version that had succeeded. */
  readonly autoRollback: boolean;
  /** How long an instance that others do not find any more goes on. */
  readonly drainSeconds: number;
}

export const defaultStrategy: Strategy = {
  kind: "rolling",
  maxParallel: 1,
  canaries: 1,
  minHealthySeconds: 10,
  healthyDeadlineSeconds: 300,
  progressDeadlineSeconds: 600,
  autoPromote: false,
  autoRollback: true,
  drainSeconds: 10,
};

export type DeploymentSource =
  | { readonly kind: "bundle"; readonly bundleId: string }
  | { readonly kind: "blueprint"; readonly blueprintId: string };

export const VERSIONS_MAX = 20;

export interface DeploymentVersion {
  /** From 1. */
  readonly version: number;
  /** Whose runs its instances are. */
  readonly jobId: string;
  readonly source: DeploymentSource;
  /** Of the job; secrets encrypted. */
  readonly config: JsonObject;
  /** How many services an instance offers. */
  readonly services: number;
  /** Whether all instances were of it once. */
  readonly hasSucceeded: boolean;
  /** Instances that ended or did not start, in a row. */
  readonly crashes: number;
  readonly crashedAtMs: number | null;
  readonly createdAtMs: number;
}

export type Health = "passing" | "critical" | "unknown";

/** starting: not found by others yet; serving: found; draining: not any more; stopping: asked to end. */
export type InstancePhase = "starting" | "serving" | "draining" | "stopping";

export interface Instance {
  /** Follows from the deployment, the version and the number. */
  readonly runId: string;
  readonly runtimeJobId: string;
  /** Of all that the deployment has ever started, from 1. */
  readonly number: number;
  readonly version: number;
  readonly phase: InstancePhase;
  readonly health: Health;
  readonly healthSinceMs: number;
  /** The name of the node that it was given to, or that its services are on; null while that is not known. */
  readonly node: string | null;
  readonly startedAtMs: number;
  /** From when its deadline counts: from its start, or from when the program was started again. */
  readonly waitsSinceMs: number;
  /** When it began to serve. */
  readonly servesSinceMs: number | null;
  /** When it is stopped (draining). */
  readonly stopAtMs: number | null;
}

export const deploymentStatuses = [
  "pending",
  "running",
  "paused",
  "awaiting_promotion",
  "succeeded",
  "failed",
  "rolled_back",
] as const;
/** Of the rollout; the instances are looked after in each of them. */
export type DeploymentStatus = (typeof deploymentStatuses)[number];

export interface DeploymentFailure {
  readonly atMs: number;
  readonly version: number;
  readonly reason: string;
}

/** What the owner says. */
export interface DeploymentSettings {
  readonly name: string;
  readonly count: number;
  readonly strategy: Strategy;
}

export interface Deployment extends DeploymentSettings {
  /** `deployment_` and a time-ordered id. */
  readonly deploymentId: string;
  /** The version that all instances are to be of. */
  readonly version: number;
  /** Oldest first: at most VERSIONS_MAX. */
  readonly versions: readonly DeploymentVersion[];
  /** The number that the last new version was given. */
  readonly lastVersion: number;
  readonly status: DeploymentStatus;
  /** The version that all instances were of last, and how many; null: none yet. */
  readonly stable: { readonly version: number; readonly count: number } | null;
  readonly isRollingBack: boolean;
  /** Whether the rollout goes on behind its canaries, or its second set. */
  readonly isPromoted: boolean;
  /** When the rollout began, went on, or came further last. */
  readonly progressAtMs: number;
  readonly lastFailure: DeploymentFailure | null;
  /** In the order of their numbers. */
  readonly instances: readonly Instance[];
  /** How many it has started. */
  readonly started: number;
  /** Shown to nobody any more; its instances are being stopped. */
  readonly isDeleted: boolean;
  /** The number of its last event. */
  readonly eventSeq: number;
  /** From 1; each change that its owner has made adds one. */
  readonly revision: number;
  /** From 1; each change of anything adds one. */
  readonly changes: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** How the run of an instance is now. */
export interface InstanceRun {
  readonly runId: string;
  /** Null: the run was deleted. */
  readonly status: string | null;
  readonly hasEnded: boolean;
  /** As JSON, of a run that failed. */
  readonly failureJson: string | null;
}

export interface DeploymentRecords {
  /** Deleted ones that still have instances, too. */
  deployment(deploymentId: string): Promise<Deployment | null>;
  /** Newest first, without deleted ones. */
  deployments(page: {
    readonly status: DeploymentStatus | null;
    readonly limit: number;
    readonly after: string | null;
  }): Promise<Page<Deployment>>;
  /** In the order of their ids, deleted ones too. */
  deploymentChanges(
    after: string,
    limit: number,
  ): Promise<readonly Pick<Deployment, "deploymentId" | "changes" | "eventSeq">[]>;
  instanceRuns(deploymentId: string): Promise<readonly InstanceRun[]>;
  /** Runs of all deployments that offer nothing to others now. */
  outOfService(): Promise<ReadonlySet<string>>;
  /** Events behind `afterSeq`; older ones are gone. */
  deploymentEvents(
    deploymentId: string,
    afterSeq: number,
    limit: number,
  ): Promise<{ readonly firstSeq: number; readonly lines: readonly string[] }>;
}

/** The writes of one transaction, beside which there is no other. */
export interface DeploymentWrites extends Pick<DeploymentRecords, "deployment"> {
  insert(deployment: Deployment): Promise<void>;
  /** Writes what has changed of it and of its instances since `before`. */
  save(deployment: Deployment, before: Deployment): Promise<void>;
  remove(deploymentId: string): Promise<void>;
  addEvents(deploymentId: string, firstSeq: number, lines: readonly string[]): Promise<void>;
}
