// The runtime's HTTP API (spec runtime-api-and-packaging): the resources under /api/v1.

import Fastify, { type FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { acceptJsonBodies } from "../core/json-body.ts";
import { continueWhenAllowed } from "../core/read-rest.ts";
import { CONNECTIONS_MAX, commonOptions } from "../core/server-options.ts";
import { type DoorSettings, guardDoor } from "./door.ts";
import { answerErrors, answerOutsideRoutes } from "./errors.ts";
import { addResources, type RuntimeParts } from "./resources.ts";

export interface ServerOptions {
  readonly bodyBytesMax: number;
  readonly bundleBytesMax: number;
  readonly door: DoorSettings;
  readonly logger: Logger;
}

export function runtimeServer(
  parts: Omit<RuntimeParts, "bundleBytesMax">,
  options: ServerOptions,
): FastifyInstance {
  const { bundleBytesMax } = options;
  const app = Fastify({
    ...commonOptions(options.logger, options.bodyBytesMax),
    ...answerOutsideRoutes,
  }) as unknown as FastifyInstance;
  app.server.maxConnections = CONNECTIONS_MAX;
  guardDoor(app, options.door);
  continueWhenAllowed(app);
  acceptJsonBodies(app);
  answerErrors(app);
  app.register(async (api) => addResources(api, { ...parts, bundleBytesMax }), { prefix: "/api/v1" });
  return app;
}
