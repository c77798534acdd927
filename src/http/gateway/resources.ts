// The gateway's resources: their routes, and the schemas that have a name in the OpenAPI document.

import type { FastifyInstance } from "fastify";
import * as artifacts from "../resources/artifacts.ts";
import * as blueprintActions from "../resources/blueprint-actions.ts";
import * as blueprints from "../resources/blueprints.ts";
import * as bundles from "../resources/bundles.ts";
import * as deadLetters from "../resources/dead-letters.ts";
import * as doctor from "../resources/doctor.ts";
import * as events from "../resources/events.ts";
import * as humanRequests from "../resources/human-requests.ts";
import * as jobs from "../resources/jobs.ts";
import * as logs from "../resources/logs.ts";
import * as metrics from "../resources/metrics.ts";
import * as operations from "../resources/operations.ts";
import * as results from "../resources/results.ts";
import * as retention from "../resources/retention.ts";
import * as runDashboard from "../resources/run-dashboard.ts";
import * as runStarts from "../resources/run-starts.ts";
import * as runs from "../resources/runs.ts";
import { ProblemSchema } from "../resources/schemas.ts";
import * as services from "../resources/services.ts";
import * as system from "../resources/system.ts";
import * as workflowProgress from "../resources/workflow-progress.ts";

const resources = [
  system,
  doctor,
  retention,
  metrics,
  blueprints,
  blueprintActions,
  operations,
  jobs,
  workflowProgress,
  runs,
  runStarts,
  events,
  results,
  artifacts,
  runDashboard,
  humanRequests,
  deadLetters,
  logs,
  services,
];

type Parts<Resource extends { gatewayRoutes: (api: FastifyInstance, parts: never) => void }> = Parameters<
  Resource["gatewayRoutes"]
>[1];

/** What the resources take, all together. */
export type ResourceParts = Parts<typeof system> &
  Parts<typeof doctor> &
  Parts<typeof retention> &
  Parts<typeof metrics> &
  Parts<typeof blueprints> &
  Parts<typeof blueprintActions> &
  Parts<typeof operations> &
  Parts<typeof jobs> &
  Parts<typeof workflowProgress> &
  Parts<typeof runs> &
  Parts<typeof runStarts> &
  Parts<typeof events> &
  Parts<typeof results> &
  Parts<typeof artifacts> &
  Parts<typeof runDashboard> &
  Parts<typeof humanRequests> &
  Parts<typeof deadLetters> &
  Parts<typeof logs> &
  Parts<typeof services> &
  Parts<typeof bundles>;

export function addResources(api: FastifyInstance, parts: ResourceParts): void {
  for (const { gatewayRoutes } of resources) gatewayRoutes(api, parts);
  // In a scope of its own: only these routes take uploads.
  api.register(async (uploads) => bundles.gatewayRoutes(uploads, parts));
}

/** Schemas by the names that clients see. */
export const namedSchemas: Readonly<Record<string, object>> = Object.assign(
  { Problem: ProblemSchema },
  bundles.schemas,
  ...resources.map((resource) => ("schemas" in resource ? resource.schemas : {})),
);
