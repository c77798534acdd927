// The gateway's HTTP API (spec gateway-api): the resources under /api/v1, and around them the documentation and the
// conventions of src/http/core.

import Fastify, { type FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { gatewayConventions } from "../core/conventions.ts";
import { HttpCounts } from "../core/http-counts.ts";
import { Problem } from "../core/problem.ts";
import type { RunTokens } from "../core/run-token.ts";
import { CONNECTIONS_MAX, commonOptions } from "../core/server-options.ts";
import * as sessions from "../resources/sessions.ts";
import type { SystemSettings } from "../resources/system.ts";
import * as webhookRequests from "../resources/webhook-requests.ts";
import { consoleRoutes } from "./console.ts";
import { docsRoutes, frontPageRoute } from "./docs.ts";
import { jsonSchemaRoutes } from "./json-schemas.ts";
import { describeRoutes } from "./openapi.ts";
import { addResources, type ResourceParts } from "./resources.ts";

/** A connection without traffic for this long is closed. */
const STANDSTILL_MS = 300_000;

/** What the gateway needs; the composition root provides it. */
export interface GatewayParts
  extends Omit<ResourceParts, "httpCounts" | "bundleBytesMax">,
    webhookRequests.Parts {
  readonly config: GatewaySettings;
  readonly runTokens: RunTokens;
  /** Unique among processes; letters and digits. */
  readonly processId: string;
}

export interface GatewaySettings extends SystemSettings {
  readonly apiHost: string;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly console: boolean;
}

export function gatewayServer(given: GatewayParts, logger: Logger): FastifyInstance {
  const { config, version } = given;
  const conventions = gatewayConventions({
    apiTokens: config.apiTokens,
    runTokens: given.runTokens,
    sessions: given.sessions,
    tickets: given.tickets,
    boundHost: config.apiHost,
    allowedHosts: config.allowedHosts,
    corsOrigins: config.corsOrigins,
    requestsPerMinuteMax: config.requestsPerMinuteMax,
    nowMs: given.nowMs,
    processId: given.processId,
  });
  const common = commonOptions(logger, config.bodyBytesMax);
  const app = Fastify({
    ...conventions.serverOptions,
    ...common,
    connectionTimeout: STANDSTILL_MS,
    http: { ...conventions.serverOptions.http, ...common.http },
  }) as unknown as FastifyInstance;
  app.server.maxConnections = CONNECTIONS_MAX;
  conventions.install(app);
  refuseWebSockets(app);
  const httpCounts = new HttpCounts();
  httpCounts.watch(app);
  describeRoutes(app, version);
  docsRoutes(app);
  frontPageRoute(app, version, config.console);
  jsonSchemaRoutes(app);
  const parts = { ...given, httpCounts, bundleBytesMax: config.bundleBytesMax };
  app.register(async (api) => addResources(api, parts), { prefix: "/api/v1" });
  if (config.console) {
    consoleRoutes(app);
    app.register(async (root) => sessions.consoleRoutes(root, { ...parts, apiTokens: config.apiTokens }));
  }
  // In a scope of its own: only these routes take bodies as they are.
  app.register(async (hooks) => webhookRequests.gatewayRoutes(hooks, parts));
  return app;
}

/**
 * There are no WebSockets: a handshake is refused on every path, because a client that got an ordinary answer would wait
 * for frames. To be called after the conventions, so that authentication comes first.
 */
function refuseWebSockets(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const { upgrade } = request.raw.headers;
    if (upgrade === undefined || upgrade.toLowerCase() !== "websocket") done();
    else done(new Problem("not_found", NO_WEB_SOCKETS));
  });
}

const NO_WEB_SOCKETS =
  "There are no WebSockets here. Follow a run with server-sent events: GET /api/v1/runs/{run_id}/events/stream.";
