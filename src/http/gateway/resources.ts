// The gateway's resources: their routes, and the schemas that have a name in the OpenAPI document.

import type { FastifyInstance } from "fastify";
import { gatewayApi, type PartsOf } from "../resources/api.ts";
import * as artifacts from "../resources/artifacts.ts";
import * as blueprintActions from "../resources/blueprint-actions.ts";
import * as blueprints from "../resources/blueprints.ts";
import * as bundles from "../resources/bundles.ts";
import * as deadLetters from "../resources/dead-letters.ts";
import * as deployments from "../resources/deployments.ts";
import * as doctor from "../resources/doctor.ts";
import * as events from "../resources/events.ts";
import type { RunParts } from "../resources/find-run.ts";
import * as humanRequests from "../resources/human-requests.ts";
import * as jobGrid from "../resources/job-grid.ts";
import * as jobTools from "../resources/job-tools.ts";
import * as jobs from "../resources/jobs.ts";
import * as listStream from "../resources/list-stream.ts";
import * as llm from "../resources/llm.ts";
import * as logs from "../resources/logs.ts";
import * as metrics from "../resources/metrics.ts";
import * as modelActions from "../resources/model-actions.ts";
import * as modelServing from "../resources/model-serving.ts";
import * as models from "../resources/models.ts";
import * as nodeChanges from "../resources/node-changes.ts";
import * as nodeDrain from "../resources/node-drain.ts";
import * as nodes from "../resources/nodes.ts";
import * as operations from "../resources/operations.ts";
import * as reconcile from "../resources/reconcile.ts";
import * as results from "../resources/results.ts";
import * as retention from "../resources/retention.ts";
import * as runDashboard from "../resources/run-dashboard.ts";
import * as runStarts from "../resources/run-starts.ts";
import * as runs from "../resources/runs.ts";
import { ProblemSchema } from "../resources/schemas.ts";
import * as sessions from "../resources/sessions.ts";
import * as settings from "../resources/settings.ts";
import { addSharedRoutes, type SharedParts, sharedResources } from "../resources/shared.ts";
import * as system from "../resources/system.ts";
import * as webhookRequests from "../resources/webhook-requests.ts";
import * as workflowProgress from "../resources/workflow-progress.ts";

const resources = [
  system,
  nodeDrain,
  nodeChanges,
  reconcile,
  doctor,
  settings,
  retention,
  metrics,
  nodes,
  blueprints,
  blueprintActions,
  models,
  modelActions,
  modelServing,
  llm,
  operations,
  jobs,
  jobGrid,
  jobTools,
  workflowProgress,
  runs,
  runStarts,
  events,
  results,
  artifacts,
  runDashboard,
  humanRequests,
  deadLetters,
  deployments,
  logs,
  listStream,
  sessions,
];

/** What the resources take, all together. */
export type ResourceParts = SharedParts &
  RunParts &
  PartsOf<(typeof resources)[number]["gatewayRoutes"] | typeof bundles.gatewayRoutes>;

export function addResources(app: FastifyInstance, parts: ResourceParts): void {
  for (const { gatewayRoutes } of resources) gatewayRoutes(app, parts);
  addSharedRoutes(gatewayApi(app, parts), parts);
  // In a scope of its own: only these routes take uploads.
  app.register(async (uploads) => bundles.gatewayRoutes(uploads, parts));
}

/** Schemas by the names that clients see. */
export const namedSchemas: Readonly<Record<string, object>> = Object.assign(
  { Problem: ProblemSchema },
  ...[bundles, webhookRequests, ...sharedResources, ...resources].map((one) =>
    "schemas" in one ? one.schemas : {},
  ),
);
