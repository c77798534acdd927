// One program of the simulated world of deployments: the real controller and the real requests of owners, as the program wires
// them. What is made up: the checks of a version and of a run, the nodes' services, and that runs are launched.

import { DeploymentController } from "../../src/deployments/controller.ts";
import { Deployments } from "../../src/deployments/deployments.ts";
import type { Deployment, DeploymentVersion } from "../../src/deployments/records.ts";
import type { NewInstance } from "../../src/deployments/rollout.ts";
import type { GatewayRecords, GatewayWrites } from "../../src/launch/records.ts";
import { DomainError } from "../../src/lib/domain-error.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { SecretKey } from "../../src/security/secret-key.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { job, run } from "../support/gateway-samples.ts";
import type { DeploymentWorld } from "./deployments.ts";
import type { WorldProgram } from "./programs-world.ts";

const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));

export class DeploymentProgram implements WorldProgram {
  isAlive = true;
  readonly name: string;
  readonly records: GatewayRecords;
  readonly controller: DeploymentController<GatewayWrites>;
  readonly deployments: Deployments<GatewayWrites>;
  readonly feed = new EventFeed();

  constructor(world: DeploymentWorld, name: string) {
    this.name = name;
    const clock = world.clockOf(this);
    const stored = sqlGatewayRecords(world.database, clock.soon);
    const reads = stored.deployments;
    this.records = {
      ...stored,
      deployments: {
        ...reads,
        deployment: async (id) => this.#read(world, reads.deployment(id)),
        instanceRuns: async (id) => this.#read(world, reads.instanceRuns(id)),
        deploymentChanges: async (after, limit) => this.#read(world, reads.deploymentChanges(after, limit)),
      },
      write: async (work) => {
        await world.pause(this, world.random.below(20));
        world.mayFail();
        const written = await stored.write(work);
        world.hasWritten = true;
        await world.mayCrash(this);
        return written;
      },
    };
    this.controller = new DeploymentController<GatewayWrites>({
      records: this.records,
      runs: {
        prepare: async (deployment, version, instance) => {
          await world.pause(this, world.random.below(50));
          world.mayRefuse();
          return this.#insert(world, deployment, version, instance);
        },
        places: async () => world.places(),
        accepted: () => {},
        cancel: (writes, runId) => writes.setDesiredState(runId, "cancelled", world.nowMs),
        cancelled: () => {},
      },
      services: {
        list: async ({ definitionId = null }) => {
          await world.pause(this, world.random.below(20));
          return { services: world.servicesOf(definitionId ?? ""), unreachable: [] };
        },
      },
      feed: this.feed,
      meter: { stepped: () => {} },
      closed: () => null,
      takeDuty: async (forMs) => world.takeDuty(name, forMs),
      clock,
      log: {
        warn: ({ error }) => world.unexpected(String(error ?? "JournalUnavailable")),
        error: ({ error }) => world.unexpected(String(error)),
      },
    });
    this.deployments = new Deployments<GatewayWrites>({
      records: this.records,
      draftVersion: async ({ config }) => ({
        services: 1,
        config,
        insert: async (writes) => {
          const made = job(1, { jobId: `job_${world.newId()}` });
          await writes.insertJob(made);
          return made.jobId;
        },
        created: () => {},
      }),
      secrets,
      nowMs: () => this.controller.nowMs(),
      clock,
      newId: () => world.newId(),
    });
  }

  start(): void {
    this.controller.start();
  }

  /** Every start has a number of its own, which its run is named after. */
  #insert(world: DeploymentWorld, deployment: Deployment, version: DeploymentVersion, instance: NewInstance) {
    const id = `${deployment.deploymentId}-${instance.number}`;
    const made = run(1, version.jobId, {
      runId: `run_${id}`,
      runtimeJobId: `g-${id}`,
      trigger: { kind: "deployment", id: deployment.deploymentId },
      traceId: String(version.version),
      createdAtMs: world.nowMs,
    });
    return async (writes: GatewayWrites) => {
      if (!(await writes.insertRun(made))) throw new DomainError("job_not_found", "The job is gone.");
      return made;
    };
  }

  /** Nothing settles for a program that has died. */
  async #read<T>(world: DeploymentWorld, reading: Promise<T>): Promise<T> {
    await world.pause(this, world.random.below(5));
    world.mayFail();
    return reading;
  }
}
