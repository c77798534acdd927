// An event as this page reads it: how urgent it is, and values that are what they should be. Pure.

export const levelNames = ["trace", "debug", "info", "warn", "error", "fatal"];

const levels = new Map([
  ...levelNames.map((name, level) => [name, level]),
  ["verbose", 0],
  ["notice", 2],
  ["information", 2],
  ["warning", 3],
  ["err", 4],
  ["critical", 5],
]);

/** How urgent the runtime's own events are; those that are not here are of the level info. */
const eventLevels = new Map([
  ["job_failed", 4],
  ["agent_failed", 4],
  ["sandbox_job_failed", 3],
  ["sandbox_job_retry_scheduled", 3],
  ["executor_interrupted", 3],
  ["message_dead_lettered", 3],
  ["human_input_timed_out", 3],
  ["workspace_modified", 3],
  ["log_truncated", 3],
  ["job_recovered", 3],
  ["service_critical", 3],
  ["human_input_requested", 3],
  ["job_validated", 1],
  ["job_scheduled", 1],
  ["agent_message_received", 1],
  ["aggregator_received", 1],
  ["executor_lease_requested", 1],
  ["executor_lease_acquired", 1],
  ["executor_lease_released", 1],
  ["message_unrouted", 1],
  ["beacon", 1],
]);

/** @returns 0 (trace) to 5 (fatal), as `levelNames` has them */
export function levelOf({ type, payload }) {
  if (type !== "log") return eventLevels.get(type) ?? 2;
  const given = isObject(payload) ? payload.level : null;
  return typeof given === "string" ? (levels.get(given.toLowerCase()) ?? 2) : 2;
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const textOf = (value) => (typeof value === "string" ? value : "");
