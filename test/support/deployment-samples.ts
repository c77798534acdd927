// Deployments for tests: complete, and plain.

import { type Deployment, defaultStrategy, type Instance } from "../../src/deployments/records.ts";

/** One that was just made, of version 1. */
export function deployment(given: Partial<Deployment>): Deployment {
  return {
    deploymentId: "deployment_1",
    name: "search",
    count: 1,
    strategy: defaultStrategy,
    version: 1,
    versions: [
      {
        version: 1,
        jobId: "job_0001",
        source: { kind: "bundle", bundleId: "bundle_1" },
        config: { language: "en" },
        services: 1,
        hasSucceeded: false,
        crashes: 0,
        crashedAtMs: null,
        createdAtMs: 1_000,
      },
    ],
    lastVersion: 1,
    status: "pending",
    stable: null,
    isRollingBack: false,
    isPromoted: false,
    progressAtMs: 1_000,
    lastFailure: null,
    instances: [],
    started: 0,
    isDeleted: false,
    eventSeq: 0,
    revision: 1,
    changes: 1,
    createdAtMs: 1_000,
    updatedAtMs: 1_000,
    ...given,
  };
}

export function instance(number: number, given: Partial<Instance> = {}): Instance {
  return {
    runId: `run_${String(number).padStart(4, "0")}`,
    runtimeJobId: `g-${String(number).padStart(4, "0")}`,
    number,
    version: 1,
    phase: "starting",
    health: "unknown",
    healthSinceMs: 1_000 + number,
    node: null,
    startedAtMs: 1_000 + number,
    waitsSinceMs: 1_000 + number,
    servesSinceMs: null,
    stopAtMs: null,
    ...given,
  };
}
