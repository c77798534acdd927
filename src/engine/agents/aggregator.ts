// aggregator: collects bodies and forms {messages, count, last_message} of them: after a number of messages, at
// each message, or at quiescence. What is formed is emitted, and the aggregator starts afresh; or it
// completes the run; or, with neither, the last ones stay collected.

import type { AggregatorConfig } from "../graph.ts";
import { isObject, type JsonValue } from "../json.ts";
import { limits } from "../limits.ts";
import type { Message } from "../message.ts";
import type { Action, Step } from "./step.ts";

/** `received` counts every message since the job began; `count` what is collected now. */
interface AggregatorState {
  readonly received: number;
  readonly count: number;
}

function read(state: JsonValue): AggregatorState {
  const given = isObject(state) ? state : {};
  return { received: Number(given.received ?? 0), count: Number(given.count ?? 0) };
}

/** @param collected the bodies kept so far, without this one */
export function stepAggregator(
  config: AggregatorConfig,
  state: JsonValue,
  message: Message,
  collected: readonly JsonValue[],
): Step {
  const received = read(state).received + 1;
  const count = collected.length + 1;
  const actions: Action[] = [
    { kind: "collect", body: message.body },
    {
      kind: "event",
      type: "aggregator_received",
      payload: { from: message.from, type: message.type, count },
    },
  ];
  const keeps = config.outputMessageType === null && !config.completeRun;
  if (keeps) return { state: { received, count: trim(actions, collected, message.body) }, actions };
  const forms = config.completeOnMessage || (config.completeAfter !== null && count >= config.completeAfter);
  if (!forms) return { state: { received, count }, actions };
  const formed = form([...collected, message.body]);
  if (config.outputMessageType === null) {
    actions.push({ kind: "complete_run", result: formed });
    return { state: { received, count }, actions };
  }
  actions.push({ kind: "clear" }, { kind: "emit", type: config.outputMessageType, body: formed, to: null });
  return { state: { received, count: 0 }, actions };
}

/**
 * An aggregator that neither emits nor completes would collect for ever: it keeps the last ones. Half is dropped
 * at a time, so that the cost per message stays constant.
 * @returns how many bodies are collected afterwards
 */
function trim(actions: Action[], collected: readonly JsonValue[], body: JsonValue): number {
  const count = collected.length + 1;
  if (count <= limits.keptMessagesMax) return count;
  const kept = [...collected.slice(-Math.floor(limits.keptMessagesMax / 2)), body];
  actions.push({ kind: "clear" });
  for (const one of kept) actions.push({ kind: "collect", body: one });
  return kept.length;
}

/**
 * The job is quiescent: an aggregator that emits, and has no other moment to form its result, does so now.
 * @returns null when it has nothing to emit
 */
export function stepQuiescentAggregator(
  config: AggregatorConfig,
  state: JsonValue,
  collected: readonly JsonValue[],
): Step | null {
  if (config.outputMessageType === null || collected.length === 0) return null;
  if (config.completeOnMessage || config.completeAfter !== null) return null;
  return {
    state: { received: read(state).received, count: 0 },
    actions: [
      { kind: "clear" },
      { kind: "emit", type: config.outputMessageType, body: form(collected), to: null },
    ],
  };
}

export function form(messages: readonly JsonValue[]): JsonValue {
  return { messages, count: messages.length, last_message: messages[messages.length - 1] ?? null };
}
