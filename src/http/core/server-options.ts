// What the servers of both APIs have in common: their limits, and how little they log.

import type { Server } from "node:http";
import { type FastifyHttpOptions, LogController } from "fastify";
import type { Logger } from "pino";

const HEAD_BYTES_MAX = 16 * 1024;
const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 300_000;
export const CONNECTIONS_MAX = 10_000;

export const commonOptions = (logger: Logger, bodyBytesMax: number) =>
  ({
    loggerInstance: logger,
    // A logger of its own for each request would cost more than the few lines that requests ever log.
    childLoggerFactory: (given) => given,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyBytesMax,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
    // No shorter than a request's head may be: an id of any length is looked for, and not found.
    routerOptions: { maxParamLength: HEAD_BYTES_MAX },
    http: {
      maxHeaderSize: HEAD_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: 5_000,
    },
    // Schemas are compiled by strict-validation.ts. The framework's own compilers, which nobody asks, would be loaded
    // otherwise, at each start.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
  }) satisfies FastifyHttpOptions<Server, Logger>;

function noCompiler(): never {
  throw new Error("A route has a schema, and its server no compiler: see strict-validation.ts.");
}
