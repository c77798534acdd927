// The gateway's HTTP API (spec gateway-api): routes under /api/v1, one file per resource. A route parses, calls one
// function and renders; what all of them do alike is in src/http/core.

import Fastify, { type FastifyInstance, LogController } from "fastify";
import type { Logger } from "pino";
import { gatewayConventions } from "../core/conventions.ts";
import { blueprintLaunchRoutes } from "./blueprint-launches.ts";
import { blueprintOperationRoutes } from "./blueprint-operations.ts";
import { blueprintRoutes } from "./blueprints.ts";
import { bundleRoutes } from "./bundles.ts";
import { docsRoutes } from "./docs.ts";
import { frontPageRoute } from "./front-page.ts";
import { HttpCounts } from "./http-counts.ts";
import { jobControlRoutes } from "./job-control.ts";
import { jobEvidenceRoutes } from "./job-evidence.ts";
import { jobRoutes } from "./jobs.ts";
import { jsonSchemaRoutes } from "./json-schemas.ts";
import { metricsRoutes } from "./metrics.ts";
import { refuseWebSockets } from "./no-websockets.ts";
import { describeRoutes } from "./openapi.ts";
import { operationRoutes } from "./operations.ts";
import { retentionRoutes } from "./retention.ts";
import { runBatchRoutes } from "./run-batches.ts";
import { runDashboardRoutes } from "./run-dashboard.ts";
import { runDeadLetterRoutes } from "./run-dead-letters.ts";
import { runEventRoutes } from "./run-events.ts";
import { runEvidenceRoutes } from "./run-evidence.ts";
import { runFileRoutes } from "./run-files.ts";
import { runHumanRoutes } from "./run-human.ts";
import { runLogRoutes } from "./run-logs.ts";
import { runSummaryRoutes } from "./run-summary.ts";
import { runRoutes } from "./runs.ts";
import { runtimeViewRoutes } from "./runtime-views.ts";
import { serviceRoutes } from "./service-routes.ts";
import type { GatewayServices } from "./services.ts";
import { systemRoutes } from "./system.ts";
import { workflowProgressRoutes } from "./workflow-progress.ts";

const HEAD_BYTES_MAX = 16 * 1024;
const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 300_000;
/** A connection that moves nothing for this long is closed: its client does not read what it has asked for. */
const STANDSTILL_MS = 300_000;
const CONNECTIONS_MAX = 10_000;

export function gatewayServer(services: GatewayServices, logger: Logger): FastifyInstance {
  const { config } = services;
  const conventions = gatewayConventions({
    apiTokens: config.apiTokens,
    runTokens: services.runTokens,
    boundHost: config.apiHost,
    allowedHosts: config.allowedHosts,
    corsOrigins: config.corsOrigins,
    requestsPerMinuteMax: config.requestsPerMinuteMax,
    nowMs: services.nowMs,
    processId: services.processId,
  });
  const app = Fastify({
    ...conventions.serverOptions,
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: config.bodyBytesMax,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: STANDSTILL_MS,
    forceCloseConnections: true,
    // No shorter than a request's head may be: an id of any length is looked for, and not found.
    routerOptions: { maxParamLength: HEAD_BYTES_MAX },
    http: {
      ...conventions.serverOptions.http,
      maxHeaderSize: HEAD_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: 5_000,
    },
  }) as unknown as FastifyInstance;
  app.server.maxConnections = CONNECTIONS_MAX;
  // One logger for all requests: what is logged of one names its id.
  app.setChildLoggerFactory((given) => given);
  conventions.install(app);
  refuseWebSockets(app);
  const http = new HttpCounts();
  http.watch(app);
  describeRoutes(app, services.version);
  docsRoutes(app);
  frontPageRoute(app, services.version);
  jsonSchemaRoutes(app);
  app.register(
    async (api) => {
      systemRoutes(api, services);
      retentionRoutes(api, services);
      runtimeViewRoutes(api, services);
      metricsRoutes(api, services, http);
      blueprintRoutes(api, services);
      blueprintOperationRoutes(api, services);
      operationRoutes(api, services);
      blueprintLaunchRoutes(api, services);
      jobRoutes(api, services);
      jobControlRoutes(api, services);
      jobEvidenceRoutes(api, services);
      workflowProgressRoutes(api, services);
      runRoutes(api, services);
      runBatchRoutes(api, services);
      runEventRoutes(api, services);
      runEvidenceRoutes(api, services);
      runSummaryRoutes(api, services);
      runFileRoutes(api, services);
      runDashboardRoutes(api, services);
      runHumanRoutes(api, services);
      runDeadLetterRoutes(api, services);
      runLogRoutes(api, services);
      serviceRoutes(api, services);
      // In a scope of its own: only these routes take uploads.
      api.register(async (uploads) => bundleRoutes(uploads, services, config.bundleBytesMax));
    },
    { prefix: "/api/v1" },
  );
  return app;
}
