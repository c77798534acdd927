// The runtime's HTTP API (spec runtime-api-and-packaging): routes under /api/v1, one file per resource. A route
// parses, calls one function and renders; nothing else.

import Fastify, { type FastifyInstance, LogController } from "fastify";
import type { Logger } from "pino";
import { acceptJsonBodies } from "../core/json-body.ts";
import { continueWhenAllowed } from "../core/read-rest.ts";
import { agentGraphRoutes } from "./agent-graph.ts";
import { bundleRoutes } from "./bundles.ts";
import { type DoorSettings, guardDoor } from "./door.ts";
import { answerErrors, answerOutsideRoutes } from "./errors.ts";
import { jobControlRoutes } from "./job-control.ts";
import { jobEventRoutes } from "./job-events.ts";
import { jobSubmissionRoutes } from "./job-submissions.ts";
import { jobRoutes } from "./jobs.ts";
import { metricsRoutes } from "./metrics.ts";
import { retentionRoutes } from "./retention.ts";
import { runDeadLetterRoutes } from "./run-dead-letters.ts";
import { runEvidenceRoutes } from "./run-evidence.ts";
import { runHumanRoutes } from "./run-human.ts";
import { runLogRoutes } from "./run-logs.ts";
import { runRoutes } from "./runs.ts";
import { serviceRoutes } from "./service-routes.ts";
import type { RuntimeServices } from "./services.ts";
import { systemRoutes } from "./system.ts";
import { workflowProgressRoutes } from "./workflow-progress.ts";

export interface ServerOptions {
  readonly bodyBytesMax: number;
  readonly bundleBytesMax: number;
  readonly door: DoorSettings;
  readonly logger: Logger;
}

const HEAD_BYTES_MAX = 16 * 1024;
const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 300_000;
const CONNECTIONS_MAX = 10_000;

export function runtimeServer(services: RuntimeServices, options: ServerOptions): FastifyInstance {
  const app = Fastify({
    loggerInstance: options.logger,
    // A logger of its own for each request would cost more than the few lines that requests ever log.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.bodyBytesMax,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
    // No shorter than a request's head may be: an id of any length is looked for, and not found.
    routerOptions: { maxParamLength: HEAD_BYTES_MAX },
    ...answerOutsideRoutes,
    http: {
      maxHeaderSize: HEAD_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: 5_000,
    },
  }) as unknown as FastifyInstance;
  app.server.maxConnections = CONNECTIONS_MAX;
  guardDoor(app, options.door);
  continueWhenAllowed(app);
  acceptJsonBodies(app);
  answerErrors(app);
  app.register(
    async (api) => {
      systemRoutes(api, services);
      retentionRoutes(api, services);
      metricsRoutes(api, services);
      jobRoutes(api, services);
      jobSubmissionRoutes(api, services);
      jobControlRoutes(api, services);
      jobEventRoutes(api, services);
      workflowProgressRoutes(api, services);
      agentGraphRoutes(api, services);
      runRoutes(api, services);
      runHumanRoutes(api, services);
      runDeadLetterRoutes(api, services);
      runEvidenceRoutes(api, services);
      runLogRoutes(api, services);
      serviceRoutes(api, services);
      // In a scope of its own: only these routes take uploads.
      api.register(async (uploads) => bundleRoutes(uploads, services, options.bundleBytesMax));
    },
    { prefix: "/api/v1" },
  );
  return app;
}
