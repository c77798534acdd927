// Deployments: instances of a service graph, kept running and replaced without an outage.

import type { FollowOptions } from "./follow.ts";
import { operations } from "./generated.ts";
import { type Pages, pagesOf } from "./pages.ts";
import type {
  Deployment,
  DeploymentEvent,
  DeploymentPatch,
  DeploymentsQuery,
  DeploymentVersionTag,
  NewDeployment,
  TaggedDeployment,
} from "./records.ts";
import { tagged } from "./tagged.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

/** The types of the events that nothing follows. */
const terminalTypes: ReadonlySet<string> = new Set(["deployment_deleted"]);

export class DeploymentsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Starts instances of a bundle or a blueprint, and keeps them running. Keep what comes back: changes need it.
   *
   * @throws TroupeProblem `validation_failed` when the graph is no service
   *
   * @example await client.deployments.create({ name: "search", source: { bundle_id: bundleId }, count: 3 });
   */
  async create(deployment: NewDeployment, options: KeyedOptions = {}): Promise<TaggedDeployment> {
    return tagged(await this.#transport.json("createDeployment", { body: deployment }, options));
  }

  /** Newest first. */
  list(query: DeploymentsQuery = {}, options: CallOptions = {}): Pages<Deployment> {
    return pagesOf(this.#transport, "listDeployments", { query }, options);
  }

  async get(deploymentId: string, options: CallOptions = {}): Promise<TaggedDeployment> {
    return tagged(await this.#transport.json("getDeployment", pathOf(deploymentId), options));
  }

  /**
   * Changes what it is to be: a JSON merge patch. Another source or config is a new version, and is rolled out.
   *
   * @param deployment as it was read: nothing is changed when it was changed elsewhere since
   * @throws TroupeProblem `precondition_failed` when it has changed: get it again, then decide
   */
  async update(
    deployment: DeploymentVersionTag,
    patch: DeploymentPatch,
    options: CallOptions = {},
  ): Promise<TaggedDeployment> {
    const headers = { "if-match": deployment.etag };
    const request = { ...pathOf(deployment.deployment_id), headers, body: patch };
    return tagged(await this.#transport.json("updateDeployment", request, options));
  }

  /** Drains and stops its instances. @throws TroupeProblem `precondition_failed` when it has changed */
  async delete(deployment: DeploymentVersionTag, options: CallOptions = {}): Promise<void> {
    const request = { ...pathOf(deployment.deployment_id), headers: { "if-match": deployment.etag } };
    await this.#transport.json("deleteDeployment", request, options);
  }

  /** Goes on behind the canaries, or the second set. @throws TroupeProblem `invalid_transition` when it does not wait for that */
  promote(deploymentId: string, options: KeyedOptions = {}): Promise<Deployment> {
    return this.#transport.value("promoteDeployment", pathOf(deploymentId), options);
  }

  /** @param version one that is kept; the last one before that had succeeded when absent */
  rollback(deploymentId: string, version?: number, options: KeyedOptions = {}): Promise<Deployment> {
    const body = version === undefined ? {} : { version };
    return this.#transport.value("rollbackDeployment", { ...pathOf(deploymentId), body }, options);
  }

  pause(deploymentId: string, options: KeyedOptions = {}): Promise<Deployment> {
    return this.#transport.value("pauseDeployment", pathOf(deploymentId), options);
  }

  resume(deploymentId: string, options: KeyedOptions = {}): Promise<Deployment> {
    return this.#transport.value("resumeDeployment", pathOf(deploymentId), options);
  }

  /** Stops a rollout as failed. @param rollback whether it goes back to the version before */
  fail(deploymentId: string, rollback = false, options: KeyedOptions = {}): Promise<Deployment> {
    return this.#transport.value("failDeployment", { ...pathOf(deploymentId), body: { rollback } }, options);
  }

  /**
   * Yields what happens in a deployment, each event once and in order, until it is deleted. A lost connection is reopened
   * after the last event; a gateway that is unreachable for more than a minute is an error.
   *
   * @param options.after the id of the last event that you have processed, to continue from there
   */
  follow(deploymentId: string, options: FollowOptions = {}): AsyncGenerator<DeploymentEvent, undefined> {
    return this.#transport.follow(operations.streamDeploymentEvents, pathOf(deploymentId), options, {
      // Old events are removed.
      isGapless: false,
      terminalTypes,
      read: (data) => data as DeploymentEvent,
    });
  }
}

const pathOf = (deploymentId: string) => ({ path: { deployment_id: deploymentId } });
