// The resources of the runtime API.

import type { FastifyInstance } from "fastify";
import * as artifacts from "../resources/artifacts.ts";
import * as bundles from "../resources/bundles.ts";
import * as deadLetters from "../resources/dead-letters.ts";
import * as events from "../resources/events.ts";
import * as humanRequests from "../resources/human-requests.ts";
import * as logs from "../resources/logs.ts";
import * as metrics from "../resources/metrics.ts";
import * as results from "../resources/results.ts";
import * as retention from "../resources/retention.ts";
import * as services from "../resources/services.ts";
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
  artifacts,
  humanRequests,
  deadLetters,
  logs,
  services,
];

type Parts<Resource extends { runtimeRoutes: (api: FastifyInstance, parts: never) => void }> = Parameters<
  Resource["runtimeRoutes"]
>[1];

/** What the resources take, all together. */
export type RuntimeParts = Parts<typeof system> &
  Parts<typeof retention> &
  Parts<typeof metrics> &
  Parts<typeof submittedJobs> &
  Parts<typeof submissions> &
  Parts<typeof workflowProgress> &
  Parts<typeof events> &
  Parts<typeof results> &
  Parts<typeof artifacts> &
  Parts<typeof humanRequests> &
  Parts<typeof deadLetters> &
  Parts<typeof logs> &
  Parts<typeof services> &
  Parts<typeof bundles>;

export function addResources(api: FastifyInstance, parts: RuntimeParts): void {
  for (const { runtimeRoutes } of resources) runtimeRoutes(api, parts);
  // In a scope of its own: only these routes take uploads.
  api.register(async (uploads) => bundles.runtimeRoutes(uploads, parts));
}
