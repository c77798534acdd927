// Instances of deployments (src/deployments) as runs: what a version's job is made of, and how its runs are started and stopped.

import { createHash } from "node:crypto";
import type { InstanceRuns, VersionDraft, VersionRequest } from "../deployments/instance-runs.ts";
import type { NewInstance } from "../deployments/placement.ts";
import type { Deployment, DeploymentVersion } from "../deployments/records.ts";
import type { Graph } from "../engine/graph.ts";
import { timeId } from "../engine/ids.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { CreatedJob, Definitions } from "./definitions.ts";
import type { Launcher } from "./launcher.ts";
import type { GatewayWrites } from "./records.ts";
import type { Runs } from "./runs.ts";

export interface DeployedRunsParts {
  readonly definitions: Pick<Definitions, "prepareCreate" | "created">;
  readonly runs: Pick<Runs, "prepare">;
  readonly launcher: Pick<Launcher, "enqueue" | "settleSoon">;
  readonly clock: Pick<Clock, "nowMs">;
}

export class DeployedRuns implements InstanceRuns<GatewayWrites> {
  readonly #parts: DeployedRunsParts;

  constructor(parts: DeployedRunsParts) {
    this.#parts = parts;
  }

  prepare({ deploymentId }: Deployment, version: DeploymentVersion, instance: NewInstance) {
    return this.#parts.runs.prepare(version.jobId, {
      runId: runIdOf(deploymentId, version, instance),
      inputs: {},
      configOverrides: null,
      trigger: { kind: "deployment", id: deploymentId },
      trace: null,
    });
  }

  accepted(runId: string): void {
    this.#parts.launcher.enqueue(runId);
  }

  cancel(writes: GatewayWrites, runId: string): Promise<void> {
    return writes.setDesiredState(runId, "cancelled", this.#parts.clock.nowMs());
  }

  cancelled(jobId: string): void {
    this.#parts.launcher.settleSoon(jobId);
  }

  /** @throws DomainError `validation_failed` for a graph that ends by itself, and what Definitions.prepareCreate throws */
  async draftVersion({ name, source, config }: VersionRequest): Promise<VersionDraft<GatewayWrites>> {
    const { definitions } = this.#parts;
    const draft = await definitions
      .prepareCreate({ source, name, configuration: config })
      .catch((error: unknown) => {
        throw error instanceof DomainError ? ofDeployment(error) : error;
      });
    if (draft.graph.type !== "service") throw isBatch();
    const made: { job?: CreatedJob } = {};
    return {
      services: servicesOf(draft.graph),
      config: JSON.parse(draft.job.configurationJson) as JsonObject,
      async insert(writes) {
        made.job = await draft.insert(writes);
        return made.job.job.jobId;
      },
      created() {
        if (made.job !== undefined) definitions.created(made.job);
      },
    };
  }
}

/** The id of an instance's run: no second one can be started for it. */
function runIdOf(
  deploymentId: string,
  { version, createdAtMs }: DeploymentVersion,
  { number }: NewInstance,
): string {
  const digest = createHash("sha256").update(`${deploymentId} ${version} ${number}`).digest();
  return `run_${timeId(createdAtMs, digest)}`;
}

const servicesOf = ({ services, nodes }: Graph) =>
  nodes.reduce((count, node) => count + node.services.length, services.length);

/** What is wrong with the job of a version, in the words and at the places of the deployment. */
function ofDeployment({ code, message, errors }: DomainError): DomainError {
  const entries = errors.map((entry) => ({
    ...entry,
    path: entry.path
      .replace(/^\/(?=(bundle|blueprint)_id$)/, "/source/")
      .replace(/^\/resolved_configuration/, "/config"),
  }));
  return new DomainError(code, message.replace(/^Invalid job:/, "Invalid deployment:"), entries);
}

function isBatch(): DomainError {
  const message =
    'a deployment keeps its instances running, and this graph ends by itself; write "type": "service" into its manifest';
  return new DomainError("validation_failed", `Invalid deployment: ${message}.`, [
    { path: "/source", code: "not_a_service", message },
  ]);
}
