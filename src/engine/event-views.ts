// Which views of the history show which of the engine's events; src/runs/history renders them.

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

/** The level that a worker's log gives itself, as a word or as pino's number; `info` for one that says nothing known. */
export function logLevelOf(given: unknown): LogLevel {
  if (typeof given === "number") return logLevels[Math.floor(given / LEVEL_STEP) - 1] ?? "info";
  if (typeof given !== "string") return "info";
  const level = given.toLowerCase();
  return logLevels.find((one) => one === level) ?? levelAliases.get(level) ?? "info";
}

/** The engine's own events that the log view shows beside the logs of workers, and how urgent they are. */
export const loggedEvents: ReadonlyMap<string, LogLevel> = new Map([
  ["job_recovered", "warn"],
  ["job_failed", "error"],
  ["agent_failed", "error"],
  ["sandbox_job_failed", "warn"],
  ["sandbox_job_retry_scheduled", "warn"],
  ["executor_interrupted", "warn"],
  ["message_dead_lettered", "warn"],
  ["workspace_modified", "warn"],
  ["log_truncated", "warn"],
]);

/** The events that the timeline shows. */
export const timelineEventTypes: ReadonlySet<string> = new Set([
  "job_pending",
  "job_validated",
  "job_scheduled",
  "job_running",
  "job_paused",
  "job_resumed",
  "job_recovered",
  "job_completed",
  "job_failed",
  "job_cancelled",
  "agent_started",
  "agent_completed",
  "agent_failed",
  "executor_lease_requested",
  "executor_lease_acquired",
  "executor_lease_released",
  "executor_interrupted",
  "sandbox_job_started",
  "sandbox_job_completed",
  "sandbox_job_failed",
  "sandbox_job_retry_scheduled",
  "artifact_written",
  "message_dead_lettered",
  "message_retried",
  "human_input_requested",
  "human_input_answered",
  "human_input_timed_out",
]);
