// One line about an event, or about an agent, for people. Pure; what it returns is not yet clean (format.js).

import { isObject, textOf } from "./event.js";
import { duration, plural, size } from "./format.js";

/** @returns what happened, in a few words */
export function eventText(event) {
  const payload = isObject(event.payload) ? event.payload : {};
  const text = sentences.get(event.type)?.(payload, event);
  if (text !== undefined) return text;
  if (typeof payload.message === "string") return payload.message;
  const json = JSON.stringify(event.payload ?? null);
  return json === "{}" || json === "null" ? "" : json;
}

/** What there is to say of an agent beside its state. */
export function nowText({ attempt, percent, label, error, state }) {
  const parts = [];
  if (attempt !== null && attempt > 1) parts.push(`attempt ${attempt}`);
  if (percent !== null) parts.push(`${Math.round(percent)}%`);
  if (label !== null && state === "running") parts.push(label);
  if (error && (state === "failed" || state === "retrying")) parts.push(error);
  return parts.join(" · ");
}

const attempt = ({ attempt: number }) => (Number.isInteger(number) ? `Attempt ${number}` : "The attempt");
const why = ({ error, payload }) => textOf(error?.desc) || textOf(payload?.desc) || textOf(error?.code);
const withReason = (text, reason) => (reason === "" ? text : `${text}: ${reason}`);
const slots = ({ slots: number, pool }) => `${plural(Number(number) || 1, "slot")} of pool ${textOf(pool)}`;
const took = (ms) => (Number.isFinite(ms) ? ` after ${duration(ms)}` : "");
const of = ({ type, from }) =>
  `${textOf(type) || "a message"}${typeof from === "string" ? ` from ${from}` : ""}`;

const sentences = new Map([
  ["job_pending", () => "The run was accepted"],
  ["job_validated", ({ nodes }) => `The graph of ${plural(Number(nodes) || 0, "agent")} is valid`],
  ["job_scheduled", () => "The run was scheduled"],
  ["job_running", () => "The run began"],
  ["job_paused", () => "The run was paused"],
  ["job_resumed", () => "The run goes on"],
  [
    "job_recovered",
    ({ handed_over }) =>
      handed_over === true
        ? "Another node has picked the run up"
        : "The run was picked up again after a restart",
  ],
  ["job_handed_over", () => "The run goes to another node"],
  ["job_completed", ({ duration_ms }) => `The run completed${took(duration_ms)}`],
  ["job_cancelled", ({ duration_ms }) => `The run was cancelled${took(duration_ms)}`],
  ["job_failed", (_payload, event) => withReason("The run failed", why(event))],
  ["agent_started", () => "Started"],
  ["agent_message_received", (payload) => `Received ${of(payload)}`],
  [
    "agent_completed",
    ({ processed_messages: n }) => (n > 0 ? `Done, with ${plural(n, "message")} read` : "Done"),
  ],
  ["agent_failed", (_payload, event) => withReason("Failed", why(event))],
  ["executor_lease_requested", (payload) => `Asks for ${slots(payload)}`],
  ["executor_lease_acquired", (payload) => `Has ${slots(payload)}`],
  ["executor_lease_released", (payload) => `Gave back ${slots(payload)}`],
  [
    "executor_interrupted",
    (payload) => withReason(`${attempt(payload)} was interrupted`, textOf(payload.reason)),
  ],
  ["sandbox_job_started", (payload) => `${attempt(payload)} began`],
  ["sandbox_job_completed", (payload) => `${attempt(payload)} succeeded${took(payload.duration_ms)}`],
  ["sandbox_job_failed", (payload, event) => withReason(`${attempt(payload)} failed`, why(event))],
  ["sandbox_job_retry_scheduled", ({ delay_ms }) => `Tries again in ${duration(Number(delay_ms))}`],
  ["aggregator_received", ({ count: n, ...payload }) => `Collected ${of(payload)}, ${n} so far`],
  ["message_unrouted", (payload) => `Sent ${of(payload)}, which no edge carries on`],
  ["message_dead_lettered", (payload) => withReason(`Dead-lettered ${of(payload)}`, textOf(payload.reason))],
  ["message_retried", () => "A dead letter was sent again"],
  ["artifact_written", (payload) => `Wrote ${textOf(payload.name)}${inBrackets(size(payload.size))}`],
  ["human_input_requested", ({ prompt }) => withReason("Asks a person", textOf(prompt))],
  ["human_input_answered", ({ decision }) => withReason("A person answered", textOf(decision))],
  ["human_input_timed_out", ({ decision }) => withReason("Nobody answered in time", textOf(decision))],
  ["service_registered", ({ name }) => withReason("Registered a service", textOf(name))],
  ["service_passing", ({ name }) => withReason("A service can be reached", textOf(name))],
  ["service_critical", ({ name }) => withReason("A service cannot be reached", textOf(name))],
  ["service_deregistered", ({ name }) => withReason("Took a service back", textOf(name))],
  ["log", ({ message }) => (typeof message === "string" ? message : undefined)],
  ["progress", progress],
  ["metric", metric],
]);

const inBrackets = (text) => (text === "" ? "" : ` (${text})`);

function progress({ percent, done, total, label }) {
  const far = Number.isFinite(percent)
    ? `${Math.round(percent)}%`
    : Number.isFinite(done)
      ? `${done}${Number.isFinite(total) ? ` of ${total}` : ""}`
      : "";
  return [far, textOf(label)].filter((part) => part !== "").join(" · ") || undefined;
}

function metric({ name, value, unit, tokens }) {
  if (typeof name !== "string") return undefined;
  const amount = Number.isFinite(value) ? ` ${value}${typeof unit === "string" ? ` ${unit}` : ""}` : "";
  const used = isObject(tokens)
    ? `, ${plural(Number(tokens.input) || 0, "token")} in, ${Number(tokens.output) || 0} out`
    : "";
  return `${name}${amount}${used}`;
}
