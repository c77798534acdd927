// The resources of the runtime API.

import type { FastifyInstance } from "fastify";
import { type PartsOf, type RuntimeApiParts, runtimeApi } from "../resources/api.ts";
import * as bundles from "../resources/bundles.ts";
import * as events from "../resources/events.ts";
import * as logs from "../resources/logs.ts";
import * as metrics from "../resources/metrics.ts";
import * as results from "../resources/results.ts";
import * as retention from "../resources/retention.ts";
import { addSharedRoutes, type SharedParts } from "../resources/shared.ts";
import * as submissions from "../resources/submissions.ts";
import * as submittedJobs from "../resources/submitted-jobs.ts";
import * as system from "../resources/system.ts";
import * as workflowProgress from "../resources/workflow-progress.ts";

const resources = [
  system,
  retention,
  metrics,
  submittedJobs,
  submissions,
  workflowProgress,
  events,
  results,
  logs,
];

/** What the resources take, all together. */
export type RuntimeParts = SharedParts &
  RuntimeApiParts &
  PartsOf<(typeof resources)[number]["runtimeRoutes"] | typeof bundles.runtimeRoutes>;

export function addResources(app: FastifyInstance, parts: RuntimeParts): void {
  for (const { runtimeRoutes } of resources) runtimeRoutes(app, parts);
  addSharedRoutes(runtimeApi(app, parts), parts);
  // In a scope of its own: only these routes take uploads.
  app.register(async (uploads) => bundles.runtimeRoutes(uploads, parts));
}
