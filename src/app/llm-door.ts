// The door by which workers of this machine ask models: a port of the loopback with nothing else behind it, for keys of runs
// alone. A sandbox is let through to it, which must not reach the gateway.

import Fastify, { type FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { gatewayConventions } from "../http/core/conventions.ts";
import { LLM_BASE } from "../http/core/openai-answers.ts";
import type { RunTokens } from "../http/core/run-token.ts";
import { commonOptions } from "../http/core/server-options.ts";
import * as llm from "../http/resources/llm.ts";
import { LlmError } from "../models/serving/llm-error.ts";

/** A sandbox's own loopback, at which its worker may serve something itself, is another address: it is reached as before. */
const HOST = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1";

export interface LlmDoorParts extends llm.Parts {
  /** Of no use here. */
  readonly runTokens: RunTokens;
  readonly bodyBytesMax: number;
  readonly processId: string;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** @returns what listens, and where clients find it */
export async function openLlmDoor(
  parts: LlmDoorParts,
): Promise<{ readonly baseUrl: string; readonly server: FastifyInstance }> {
  const conventions = gatewayConventions({
    apiTokens: [],
    runTokens: parts.runTokens,
    sessions: { find: async () => ({ kind: "none" }), isGood: async () => false, onEnd: () => {} },
    tickets: { take: () => null },
    boundHost: HOST,
    allowedHosts: [],
    corsOrigins: [],
    requestsPerMinuteMax: 0,
    nowMs: parts.nowMs,
    processId: parts.processId,
  });
  const common = commonOptions(parts.log, parts.bodyBytesMax);
  const server = Fastify({
    ...conventions.serverOptions,
    ...common,
    http: { ...conventions.serverOptions.http, ...common.http },
  }) as unknown as FastifyInstance;
  conventions.install(server);
  const routes: llm.Parts = {
    ...parts,
    llmCaller: (request) => {
      const caller = parts.llmCaller(request);
      if (caller !== null) return caller;
      throw new LlmError(
        401,
        "run_key_missing",
        "This address is for workers of runs: send Authorization: Bearer and the value of SVC_LLM_API_KEY.",
      );
    },
  };
  server.register(async (api) => llm.gatewayRoutes(api, routes), { prefix: "/api/v1" });
  const url = await server.listen({ host: HOST, port: 0 });
  return { baseUrl: `${url}${LLM_BASE}`, server };
}
