// @ts-check
// What each agent spent its time with: a fold over the events of a run, with no clock and no document.

import { isObject, textOf } from "../../dashboard/event.js";

/**
 * @typedef {"queued" | "running" | "failed" | "backoff" | "waiting"} SpanKind
 * @typedef {{ agent: string, kind: SpanKind, fromMs: number, toMs: number | null, attempt: number | null, usage: Usage }} Span toMs null: it goes on
 * @typedef {{ cpuMs: number | null, rssBytes: number | null, fileBytes: number }} Usage of an attempt: what its command took, null where nothing
 *   tells, and the files that it left
 */

const AGENTS_MAX = 2_000;
const SPANS_MAX = 20_000;

export class Spans {
  /** @type {Map<string, Span[]>} by agent, in the order of their beginnings */
  byAgent = new Map();
  firstMs = Number.POSITIVE_INFINITY;
  lastMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  /** @type {Map<string, Span>} questions that are open */
  #asked = new Map();

  /** @param {any} event */
  add({ type, agent_id: agent, timestamp, payload }) {
    const ms = Date.parse(timestamp);
    if (Number.isNaN(ms)) return;
    this.firstMs = Math.min(this.firstMs, ms);
    this.lastMs = Math.max(this.lastMs, ms);
    if (/^job_(?:completed|failed|cancelled)$/.test(type)) this.#endAll(ms);
    if (typeof agent !== "string") return;
    const given = isObject(payload) ? payload : {};
    switch (type) {
      case "executor_lease_requested":
        return this.#turn(agent, "queued", ms, null);
      case "sandbox_job_started":
        return this.#turn(agent, "running", ms, Number.isInteger(given.attempt) ? given.attempt : null);
      case "artifact_written": {
        const span = this.#attemptOf(agent);
        if (span !== undefined) span.usage.fileBytes += numberOf(given.size) ?? 0;
        return;
      }
      case "sandbox_job_completed":
      case "sandbox_job_failed": {
        const { usage } = this.#attemptOf(agent) ?? {};
        if (usage !== undefined)
          [usage.cpuMs, usage.rssBytes] = [numberOf(given.cpu_ms), numberOf(given.max_rss_bytes)];
        return this.#end(agent, ms, type === "sandbox_job_failed" ? "failed" : null);
      }
      case "executor_interrupted":
        return this.#end(agent, ms, null);
      case "sandbox_job_retry_scheduled":
        return this.#turn(agent, "backoff", ms, null);
      case "human_input_requested": {
        const span = this.#begin(agent, "waiting", ms, null);
        if (span !== null) this.#asked.set(textOf(given.request_id), span);
        return;
      }
      case "human_input_answered":
      case "human_input_timed_out": {
        const span = this.#asked.get(textOf(given.request_id));
        if (span !== undefined) span.toMs ??= ms;
        this.#asked.delete(textOf(given.request_id));
      }
    }
  }

  /** What the agent was at ends, and this begins. @param {string} agent @param {SpanKind} kind @param {number} ms @param {number | null} attempt */
  #turn(agent, kind, ms, attempt) {
    this.#end(agent, ms, null);
    this.#begin(agent, kind, ms, attempt);
  }

  /** @param {string} agent @param {SpanKind} kind @param {number} ms @param {number | null} attempt */
  #begin(agent, kind, ms, attempt) {
    const known = this.byAgent.get(agent);
    if (this.#count >= SPANS_MAX || (known === undefined && this.byAgent.size >= AGENTS_MAX)) return null;
    this.#count++;
    const usage = { cpuMs: null, rssBytes: null, fileBytes: 0 };
    /** @type {Span} */
    const span = { agent, kind, fromMs: ms, toMs: null, attempt, usage };
    if (known === undefined) this.byAgent.set(agent, [span]);
    else known.push(span);
    return span;
  }

  /** The one that goes on. @param {string} agent */
  #attemptOf(agent) {
    return this.byAgent.get(agent)?.findLast(({ kind, toMs }) => kind === "running" && toMs === null);
  }

  /** A question may stay open while its worker does something else. @param {string} agent @param {number} ms @param {"failed" | null} kind */
  #end(agent, ms, kind) {
    for (const span of this.byAgent.get(agent) ?? []) {
      if (span.toMs !== null || span.kind === "waiting") continue;
      span.toMs = ms;
      if (kind !== null && span.kind === "running") span.kind = kind;
    }
  }

  /** @param {number} ms */
  #endAll(ms) {
    for (const spans of this.byAgent.values()) for (const span of spans) span.toMs ??= ms;
  }
}

/** The longest time of each kind that adds up for an agent. @param {readonly Span[]} spans @param {number} nowMs */
export function totalsOf(spans, nowMs) {
  /** @type {Partial<Record<SpanKind, number>>} */
  const totals = {};
  for (const { kind, fromMs, toMs } of spans) totals[kind] = (totals[kind] ?? 0) + (toMs ?? nowMs) - fromMs;
  return totals;
}

/** @param {unknown} value */
const numberOf = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** Attempts of commands among spans. @param {readonly Span[]} spans */
export const attemptsOf = (spans) => spans.filter(({ kind }) => kind === "running" || kind === "failed");

/**
 * What attempts took together: processor time and files add up, of memory the most counts.
 *
 * @param {readonly Span[]} attempts @returns {Usage}
 */
export function usageOf(attempts) {
  const told = (/** @type {"cpuMs" | "rssBytes"} */ name) =>
    attempts.flatMap(({ usage }) => usage[name] ?? []);
  const [cpu, rss] = [told("cpuMs"), told("rssBytes")];
  return {
    cpuMs: cpu.length === 0 ? null : cpu.reduce((sum, ms) => sum + ms, 0),
    rssBytes: rss.length === 0 ? null : rss.reduce((most, bytes) => Math.max(most, bytes), 0),
    fileBytes: attempts.reduce((sum, { usage }) => sum + usage.fileBytes, 0),
  };
}
