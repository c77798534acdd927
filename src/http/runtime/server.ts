// The runtime's HTTP API (spec runtime-api-and-packaging): the resources under /api/v1.

import Fastify, { type FastifyInstance, LogController } from "fastify";
import type { Logger } from "pino";
import { acceptJsonBodies } from "../core/json-body.ts";
import { continueWhenAllowed } from "../core/read-rest.ts";
import { type DoorSettings, guardDoor } from "./door.ts";
import { answerErrors, answerOutsideRoutes } from "./errors.ts";
import { addResources, type RuntimeParts } from "./resources.ts";

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

export function runtimeServer(
  parts: Omit<RuntimeParts, "bundleBytesMax">,
  options: ServerOptions,
): FastifyInstance {
  const { bundleBytesMax } = options;
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
  app.register(async (api) => addResources(api, { ...parts, bundleBytesMax }), { prefix: "/api/v1" });
  return app;
}
