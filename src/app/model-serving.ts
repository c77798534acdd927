// Models that are served, in a running program.

import type { FastifyRequest } from "fastify";
import { LLM_BASE } from "../http/core/openai-answers.ts";
import { madeOnce } from "../lib/async.ts";
import { DeclaredModels } from "../models/serving/declared-models.ts";
import { ModelServers } from "../models/serving/model-servers.ts";
import type { Servables } from "../models/serving/servable.ts";
import { ModelServing } from "../models/serving/serving.ts";
import { Servings } from "../models/serving/servings.ts";
import { LlmCounts } from "../observability/metrics/llm-counts.ts";
import { reachable } from "../web/run-events.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Core } from "./core.ts";

export function openModelServing({ bodyBytesMax }: Config, core: Core, servables: Servables) {
  const { gatewayRecords, operationRecords, ownership, feed, runner, workersEnv, home, engineLog } = core;
  const clock = systemClock;
  let api: string | null = null;
  const llmBaseUrl = () => (api === null ? null : `${new URL(api).origin}${LLM_BASE}`);
  const records = gatewayRecords.servedModels;
  const modelServers = new ModelServers({
    servables,
    records,
    startDaemon: (spec) => runner.daemons.start(spec),
    environment: workersEnv,
    folder: home,
    clock,
    log: core.log,
  });
  const servings = new Servings({
    records,
    servables,
    servers: modelServers,
    baseUrl: llmBaseUrl,
    operationRecords,
    write: (work) => gatewayRecords.write(work),
    ownership,
    feed,
    clock,
    newId: systemRandomness.id,
    log: engineLog,
  });
  const llmCounts = new LlmCounts();
  const modelServing = new ModelServing({
    meter: llmCounts,
    backendOf: (modelId) => modelServers.backendOf(modelId),
    clock,
    fraction: systemRandomness.fraction,
  });
  const llmCaller = ({ headers: { authorization = "" } }: FastifyRequest) =>
    core.runLlms.callerOf(/^bearer +(\S+)$/i.exec(authorization)?.[1] ?? null);
  const routes = { records: { servedModels: records }, modelServing, llmCaller };
  let door: { close(): PromiseLike<unknown> } | null = null;
  core.runLlms.servedBy(
    madeOnce(async () => {
      // Loaded here because few runs need it.
      const { openLlmDoor } = await import("./llm-door.ts");
      const { runTokens, log } = core;
      const processId = systemRandomness.id().slice(-8);
      const opened = await openLlmDoor({
        ...routes,
        runTokens,
        bodyBytesMax,
        processId,
        nowMs: clock.nowMs,
        log,
      });
      door = opened.server;
      return opened.baseUrl;
    }),
  );
  return {
    declaredModels: new DeclaredModels(records, servables),
    modelServers,
    servings,
    modelServing,
    llmCounts,
    llmBaseUrl,
    llmCaller,
    /** To be called when no worker asks any more. */
    async closeLlm(): Promise<void> {
      await door?.close();
      await modelServers.close();
    },
    /** @param url the gateway's with /api/v1; null when this program serves none */
    llmServedAt(url: string | null): void {
      api = url === null ? null : reachable(url);
    },
  };
}
