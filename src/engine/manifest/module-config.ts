// What a module may be told: in a thread little, in a process what commands in sandboxes are told, too.

import type { ExecutorConfig, ModuleConfig } from "../graph.ts";
import { sandboxLabels } from "../sandbox.ts";
import { attemptsRange, executionDefaults, millisecondsRange, secondsRange } from "./agent-config.ts";
import { nodeLabels, SLOTS_MAX, sandboxing, uploads } from "./executor-config.ts";
import type { Fields } from "./fields.ts";

/**
 * A module: in a thread, or, with `isolation: "process"`, a command of ours in a sandbox.
 *
 * Uploads choose what of the payload it sees beside its own file; without any it sees all.
 */
export function moduleConfig(config: Fields): ModuleConfig | ExecutorConfig {
  config.isGiven("module", "an ES module inside the bundle's payloads");
  const path = config.relativePath("module") ?? "";
  const attempts = {
    timeoutSeconds: config.number("timeout_seconds", secondsRange, executionDefaults.timeoutSeconds),
    maxAttempts: config.integer("max_attempts", attemptsRange, executionDefaults.maxAttempts),
    retryBackoffMs: config.number("retry_backoff_ms", millisecondsRange, executionDefaults.retryBackoffMs),
  };
  if (config.choice("isolation", ["thread", "process"], "thread") === "thread") {
    const text = 'is for sandboxes: set isolation to "process" to run the module in one';
    if (config.raw("sandbox") !== undefined) config.report("sandbox", "no_sandbox", text);
    return { kind: "module", module: path, ...attempts, config: config.source };
  }
  const chosen = uploads(config, config, config);
  return {
    kind: "executor",
    ...attempts,
    ...sandboxing(config),
    command: [path],
    module: { path, config: config.source },
    uploadPaths: chosen.length === 0 ? [{ path: ".", as: "." }] : [{ path, as: path }, ...chosen],
    pool: config.name("pool", "default"),
    poolSlots: config.integer("pool_slots", { min: 1, max: SLOTS_MAX }, 1),
    nodeLabels: { ...nodeLabels(config), ...sandboxLabels },
    runnerModule: "Sandbox",
    ...{ demand: null, ports: [], volumes: [], environment: {}, workdir: null, sandboxUploadPath: null },
    ...{
      outputMessageType: null,
      longLived: false,
      safeToRetry: true,
      runEvents: false,
      llm: null,
      optional: false,
    },
  };
}
