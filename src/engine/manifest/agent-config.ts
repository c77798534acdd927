// What each agent type may be told, read from a node into its typed configuration. The executor, which has the
// most to say, and the module, which may be run as one, have files of their own.

import type { AggregatorConfig, RouterConfig, SensorConfig } from "../graph.ts";
import { limits } from "../limits.ts";
import { type Fields, type Range, shown } from "./fields.ts";

const WHOLE_FROM_ONE: Range = { min: 1, max: Number.MAX_SAFE_INTEGER };
/** 0 has no limit; the upper end is some 30 years, so that no sum of times leaves what a date can hold. */
export const secondsRange: Range = { min: 0, max: 1_000_000_000 };
export const millisecondsRange: Range = { min: 0, max: 1_000_000_000_000 };
export const attemptsRange: Range = { min: 1, max: 1_000_000 };

export const executionDefaults = { timeoutSeconds: 300, maxAttempts: 1, retryBackoffMs: 500 } as const;

export function routerConfig(config: Fields): RouterConfig {
  return { kind: "router", emitType: config.name("emit_type", null) };
}

export function aggregatorConfig(config: Fields): AggregatorConfig {
  return {
    kind: "aggregator",
    completeAfter: config.integer("complete_after", { min: 1, max: limits.collectedMessagesMax }, null),
    completeOnMessage: config.boolean("complete_on_message", false),
    outputMessageType: config.name("output_message_type", null),
    completeRun: config.boolean("complete_run", true),
  };
}

export function sensorConfig(config: Fields): SensorConfig {
  return {
    kind: "sensor",
    outputMessageType: config.name("output_message_type", "sensor_ready"),
    completeAfter: config.isNull("complete_after")
      ? null
      : config.integer("complete_after", WHOLE_FROM_ONE, 1),
    intervalMs: config.number("interval_ms", { ...millisecondsRange, min: 1 }, null),
    runAtMs: instantMs(config, "run_at"),
    file: watchedFile(config),
  };
}

/** A file anywhere on the machine by its absolute name, or one of the payload. */
function watchedFile(config: Fields): string | null {
  const value = config.raw("file");
  return typeof value === "string" && value.startsWith("/")
    ? config.path("file")
    : config.relativePath("file");
}

const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

function instantMs(config: Fields, name: string): number | null {
  const value = config.raw(name);
  if (value === undefined) return null;
  const ms = typeof value === "string" && ISO_INSTANT.test(value) ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  const allowed = 'must be an ISO 8601 time with a zone, such as "2030-01-31T09:00:00Z"';
  config.report(name, "invalid_time", `is ${shown(value)}: it ${allowed}`);
  return null;
}
