// Instances of deployments (src/deployments) as runs: what a version's job is made of, and how its runs are started and stopped.

import { createHash } from "node:crypto";
import type { NodeRecord } from "../cluster/nodes.ts";
import type { InstanceRuns, VersionDraft, VersionRequest } from "../deployments/instance-runs.ts";
import { type Place, placesFor } from "../deployments/places.ts";
import type { Deployment, DeploymentVersion } from "../deployments/records.ts";
import type { NewInstance } from "../deployments/rollout.ts";
import type { Graph } from "../engine/graph.ts";
import { timeId } from "../engine/ids.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { Ownership } from "../operations/ownership.ts";
import type { CreatedJob, Definitions } from "./definitions.ts";
import type { LaunchPlans } from "./launch-plans.ts";
import type { Launcher } from "./launcher.ts";
import type { GatewayWrites } from "./records.ts";
import type { Runs } from "./runs.ts";

export interface DeployedRunsParts {
  readonly definitions: Pick<Definitions, "prepareCreate" | "created">;
  readonly runs: Pick<Runs, "prepare" | "jobOf">;
  readonly plans: Pick<LaunchPlans, "of">;
  readonly launcher: Pick<Launcher, "enqueue" | "reachSoon">;
  readonly ownership: Pick<Ownership, "owner">;
  /** Those that share the records, as their rows say; none of a program that has them to itself. */
  readonly nodes: () => Promise<readonly NodeRecord[]>;
  /** Tells the node at an address of a run that is its own to launch. */
  readonly tell: (address: string, runId: string) => void;
  readonly clock: Pick<Clock, "nowMs">;
}

export class DeployedRuns implements InstanceRuns<GatewayWrites> {
  readonly #parts: DeployedRunsParts;

  constructor(parts: DeployedRunsParts) {
    this.#parts = parts;
  }

  async prepare({ deploymentId }: Deployment, version: DeploymentVersion, instance: NewInstance) {
    const insert = await this.#parts.runs.prepare(version.jobId, {
      runId: runIdOf(deploymentId, version, instance),
      inputs: {},
      configOverrides: null,
      trigger: { kind: "deployment", id: deploymentId },
      trace: null,
    });
    return (writes: GatewayWrites, place: Place | null) => insert(writes, place?.owner);
  }

  async places({ jobId }: DeploymentVersion): Promise<readonly Place[]> {
    const { runs, plans, nodes } = this.#parts;
    const found = await nodes();
    if (found.length === 0) return [];
    const job = await runs.jobOf(jobId);
    // What is prepared first is launched where that is done.
    if (job.status === "preparing") return [];
    return placesFor((await plans.of(job)).graph, found);
  }

  accepted(runId: string, place: Place | null): void {
    const { launcher, ownership, tell } = this.#parts;
    if (place === null || place.owner === ownership.owner()) launcher.enqueue(runId);
    else if (place.address !== null) tell(place.address, runId);
  }

  cancel(writes: GatewayWrites, runId: string): Promise<void> {
    return writes.setDesiredState(runId, "cancelled", this.#parts.clock.nowMs());
  }

  cancelled(jobId: string): void {
    this.#parts.launcher.reachSoon(jobId);
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
