// sensor: waits for something outside the graph — a message sent to it, a moment, a file — and tells the graph.
// The `init` message of an entrypoint only arms it; it is no observation.

import type { SensorConfig } from "../graph.ts";
import { isObject, type JsonValue } from "../json.ts";
import type { Message } from "../message.ts";
import { type Clocks, toSteady } from "../ports.ts";
import type { Action, Step } from "./step.ts";

interface SensorState {
  readonly observed: number;
  /** When the sensor's timer is due, on the steady clock; null without one. */
  readonly due_at_ms: number | null;
}

function read(state: JsonValue): SensorState {
  const given = isObject(state) ? state : {};
  return {
    observed: Number(given.observed ?? 0),
    due_at_ms: (given.due_at_ms as number | undefined) ?? null,
  };
}

/** The job starts: sets the timer, and has the file watched. */
export function startSensor(config: SensorConfig, clock: Clocks): Step {
  const { runAtMs, intervalMs } = config;
  const first = () => (intervalMs === null ? null : clock.steadyMs() + intervalMs);
  const dueAtMs = runAtMs === null ? first() : toSteady(clock, runAtMs);
  const actions: Action[] = [];
  if (dueAtMs !== null) actions.push({ kind: "timer", dueAtMs });
  if (config.file !== null) actions.push({ kind: "task", task: "file" });
  return { state: { observed: 0, due_at_ms: dueAtMs }, actions };
}

/** When the sensor's timer is due, on the clock that the state speaks of; null without one. */
export function sensorDueAtMs(state: JsonValue): number | null {
  return read(state).due_at_ms;
}

/** The state with its timer on another clock. */
export function movedSensor(state: JsonValue, moved: (dueAtMs: number) => number): JsonValue {
  const dueAtMs = sensorDueAtMs(state);
  return dueAtMs === null ? state : { ...read(state), due_at_ms: moved(dueAtMs) };
}

export function stepSensor(config: SensorConfig, state: JsonValue, message: Message): Step {
  if (message.from === null && message.type === "init") return { state, actions: [] };
  return observe(config, read(state), message.body, { from: message.from, type: message.type });
}

/** A watched file has appeared. */
export function stepSensorFile(config: SensorConfig, state: JsonValue, observation: JsonValue): Step {
  return observe(config, read(state), observation, { file: observation });
}

export function stepSensorTimer(config: SensorConfig, state: JsonValue, clock: Clocks): Step {
  const before = read(state);
  const dueAtMs = before.due_at_ms;
  // A timer that was missed while the runtime was down fires once, not once per interval.
  const nextMs =
    config.intervalMs === null || dueAtMs === null
      ? null
      : Math.max(dueAtMs + config.intervalMs, clock.steadyMs() + 1);
  const body = { fired_at: new Date(clock.nowMs()).toISOString(), observed: before.observed + 1 };
  const step = observe(config, { ...before, due_at_ms: nextMs }, body, { timer: body.fired_at });
  const isDone = step.actions.some((action) => action.kind === "done");
  return nextMs === null || isDone
    ? step
    : { state: step.state, actions: [...step.actions, { kind: "timer", dueAtMs: nextMs }] };
}

function observe(config: SensorConfig, before: SensorState, body: JsonValue, seen: JsonValue): Step {
  const observed = before.observed + 1;
  const actions: Action[] = [
    { kind: "event", type: "sensor_observed", payload: { observed, seen } },
    { kind: "emit", type: config.outputMessageType, body, to: null },
  ];
  if (config.completeAfter !== null && observed >= config.completeAfter) actions.push({ kind: "done" });
  return { state: { observed, due_at_ms: before.due_at_ms }, actions };
}
