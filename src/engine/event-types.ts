// The types of events, and which views of the history show them; src/runs/history renders the views.

import { limits } from "./limits.ts";

/** From the least to the most urgent. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

/** How loggers of other languages spell the levels. */
const levelAliases: ReadonlyMap<string, LogLevel> = new Map([
  ["verbose", "trace"],
  ["notice", "info"],
  ["information", "info"],
  ["warning", "warn"],
  ["err", "error"],
  ["severe", "error"],
  ["critical", "fatal"],
  ["alert", "fatal"],
  ["emergency", "fatal"],
  ["emerg", "fatal"],
  ["panic", "fatal"],
]);
/** pino and bunyan number their levels from 10 (trace) to 60 (fatal). */
const LEVEL_STEP = 10;

/** The level that a worker's log gives itself, as a word or as pino's number; `info` when it is unknown or absent. */
export function logLevelOf(given: unknown): LogLevel {
  if (typeof given === "number") return logLevels[Math.floor(given / LEVEL_STEP) - 1] ?? "info";
  if (typeof given !== "string") return "info";
  const level = given.toLowerCase();
  return logLevels.find((one) => one === level) ?? levelAliases.get(level) ?? "info";
}

interface Shown {
  readonly timeline?: true;
  /** Its urgency in the log view, beside the logs of workers. */
  readonly log?: LogLevel;
  /** It is the job's last. */
  readonly terminal?: true;
}

/** The engine's own events (CONTRACTS §4). Workers may add types of their own, but not these. */
const engineEvents = {
  job_pending: { timeline: true },
  job_validated: { timeline: true },
  job_scheduled: { timeline: true },
  job_running: { timeline: true },
  job_paused: { timeline: true },
  job_resumed: { timeline: true },
  job_completed: { timeline: true, terminal: true },
  job_failed: { timeline: true, log: "error", terminal: true },
  job_cancelled: { timeline: true, terminal: true },
  job_recovered: { timeline: true, log: "warn" },
  job_handed_over: { timeline: true },
  agent_started: { timeline: true },
  agent_message_received: {},
  agent_completed: { timeline: true },
  agent_failed: { timeline: true, log: "error" },
  executor_lease_requested: { timeline: true },
  executor_lease_acquired: { timeline: true },
  executor_lease_released: { timeline: true },
  executor_interrupted: { timeline: true, log: "warn" },
  sandbox_job_started: { timeline: true },
  sandbox_job_completed: { timeline: true },
  sandbox_job_failed: { timeline: true, log: "warn" },
  sandbox_job_retry_scheduled: { timeline: true, log: "warn" },
  sandbox_connection: { timeline: true },
  sandbox_network_denied: { timeline: true, log: "warn" },
  llm_call: { timeline: true },
  workspace_modified: { log: "warn" },
  aggregator_received: {},
  sensor_observed: {},
  message_unrouted: {},
  message_dead_lettered: { timeline: true, log: "warn" },
  message_retried: { timeline: true },
  human_input_answered: { timeline: true },
  human_input_timed_out: { timeline: true },
  service_registered: {},
  service_passing: {},
  service_critical: {},
  service_deregistered: {},
  log_truncated: { log: "warn" },
  artifact_written: { timeline: true },
} as const satisfies Readonly<Record<string, Shown>>;

/** What a worker reports through its event stream without colliding with the engine's own types. */
const workerEvents = {
  log: {},
  progress: {},
  metric: {},
  beacon: {},
  human_input_requested: { timeline: true },
} as const satisfies Readonly<Record<string, Shown>>;

export type EngineEventType = keyof typeof engineEvents | keyof typeof workerEvents;

const shownEvents: readonly (readonly [string, Shown])[] = Object.entries({
  ...engineEvents,
  ...workerEvents,
});

const typesThat = (isIncluded: (shown: Shown) => boolean | undefined): ReadonlySet<string> =>
  new Set(shownEvents.filter(([, shown]) => isIncluded(shown)).map(([type]) => type));

export const engineEventTypes: ReadonlySet<string> = new Set(Object.keys(engineEvents));
export const workerEventTypes: ReadonlySet<string> = new Set(Object.keys(workerEvents));
export const terminalEventTypes = typesThat(({ terminal }) => terminal);
export const timelineEventTypes = typesThat(({ timeline }) => timeline);
/** How urgent those are that the log view shows. */
export const loggedEvents: ReadonlyMap<string, LogLevel> = new Map(
  shownEvents.flatMap(([type, { log }]) => (log === undefined ? [] : [[type, log]])),
);

/** Whether a worker may use this event type: a word of its own (letters, digits, _ . : -), log, progress, … */
export function isWorkerEventType(type: string): boolean {
  return type.length <= limits.nameCharsMax && /^[A-Za-z0-9_.:-]+$/.test(type) && !engineEventTypes.has(type);
}
