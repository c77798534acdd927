// The client of one gateway.
//
// - It runs wherever fetch does, in Node and in browsers, and depends on nothing else.
// - Every method takes a `signal`; what it throws is TroupeProblem, TroupeUnreachable or the signal's reason.

import { BlueprintsResource } from "./blueprints.ts";
import { BundlesResource } from "./bundles.ts";
import { DeploymentsResource } from "./deployments.ts";
import { JobsResource } from "./jobs.ts";
import { ModelsResource } from "./models.ts";
import { OperationsResource } from "./operations.ts";
import { RunsResource } from "./runs.ts";
import { SchedulesResource } from "./schedules.ts";
import { ServicesResource } from "./services.ts";
import { SessionsResource } from "./sessions.ts";
import { SystemResource } from "./system.ts";
import { openTransport, type TroupeClientOptions } from "./transport.ts";
import { TriggerEventsResource } from "./trigger-events.ts";

/**
 * @example
 * const client = new TroupeClient({ baseUrl: "http://127.0.0.1:54001" });
 * const run = await client.runs.startAndWait(jobId, { inputs: { topic: "bees" } });
 */
export class TroupeClient {
  /** Where the gateway is, ending with /api/v1. */
  readonly baseUrl: string;
  readonly blueprints: BlueprintsResource;
  readonly bundles: BundlesResource;
  readonly deployments: DeploymentsResource;
  readonly events: TriggerEventsResource;
  readonly jobs: JobsResource;
  readonly models: ModelsResource;
  readonly operations: OperationsResource;
  readonly runs: RunsResource;
  readonly schedules: SchedulesResource;
  readonly services: ServicesResource;
  readonly sessions: SessionsResource;
  readonly system: SystemResource;

  constructor(options: TroupeClientOptions) {
    const transport = openTransport("gateway", options);
    this.baseUrl = transport.settings.baseUrl;
    this.bundles = new BundlesResource(transport);
    this.deployments = new DeploymentsResource(transport);
    this.events = new TriggerEventsResource(transport);
    this.jobs = new JobsResource(transport);
    this.models = new ModelsResource(transport);
    this.operations = new OperationsResource(transport);
    this.runs = new RunsResource(transport);
    this.blueprints = new BlueprintsResource(transport, this.runs);
    this.schedules = new SchedulesResource(transport);
    this.services = new ServicesResource(transport);
    this.sessions = new SessionsResource(transport);
    this.system = new SystemResource(transport);
  }
}
