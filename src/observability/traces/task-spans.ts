// The spans of one task: itself, the lease that it waits for and holds, and the attempt that runs.

import type { JsonObject } from "../../engine/json.ts";
import { type AttemptName, attemptSpan, leaseSpan, taskSpan } from "../../engine/trace.ts";
import { attemptOf, type ParsedEvent, textField, wholeField } from "../../runs/history/line.ts";
import type { OpenSpan, OpenSpans } from "./span.ts";

/** An event, with what is asked of it most. */
export interface SeenEvent {
  readonly event: ParsedEvent;
  readonly fields: JsonObject;
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** Whether an event ends its task. */
export type TaskChange = "continues" | "may_have_failed" | { readonly endedAs: string };

export class TaskSpans {
  readonly number: number;
  readonly span: OpenSpan | null;
  readonly #agentId: string;
  readonly #spans: OpenSpans;
  #lease: OpenSpan | null = null;
  /** The attempt that the lease is for; null without one. */
  #leasedFor: number | null = null;
  #attempt: OpenSpan | null = null;
  /** The time of its last event. */
  #lastMs: number;
  #hasFailed = false;

  constructor(spans: OpenSpans, agentId: string, number: number, atMs: number) {
    this.#spans = spans;
    this.#agentId = agentId;
    this.number = number;
    this.#lastMs = atMs;
    this.span = spans.open(taskSpan(spans.run.runId, agentId, number), `task ${agentId}`, atMs, {
      "troupe.agent_id": agentId,
      "troupe.task": number,
    });
  }

  /** The attempt that runs; null when none does. */
  get attempt(): OpenSpan | null {
    return this.#attempt;
  }

  apply(seen: SeenEvent): TaskChange {
    const { event, fields, atMs } = seen;
    this.#lastMs = atMs;
    switch (event.type) {
      case "executor_lease_requested":
        this.#hasFailed = false;
        this.#askForSlots(seen);
        return "continues";
      case "executor_lease_acquired":
        this.#lease?.happened({ name: "acquired", atMs, attributes: {} });
        this.#lease?.set({
          "troupe.lease_id": textField(fields, "lease_id"),
          "troupe.wait_ms": wholeField(fields, "wait_ms"),
        });
        return "continues";
      case "sandbox_job_started":
        this.#startAttempt(seen);
        return "continues";
      case "sandbox_job_completed":
        this.#endAttempt(seen, "completed");
        return "continues";
      case "sandbox_job_failed":
        this.#endAttempt(seen, "failed");
        return "continues";
      case "sandbox_job_retry_scheduled":
        this.#hasFailed = false;
        return "continues";
      case "executor_lease_released":
        return this.#released(textField(fields, "reason") ?? "succeeded", atMs);
      default:
        return "continues";
    }
  }

  /** Ends what is open of it. @param atMs by default the time of its last event */
  end(status: string, atMs = this.#lastMs): void {
    this.#cutOff(atMs, status);
    const endedAs = this.#hasFailed ? "failed" : status;
    this.#spans.end(this.span, atMs, endedAs, endedAs === "failed" ? "No attempt succeeded." : null);
  }

  #askForSlots({ fields, atMs }: SeenEvent): void {
    const name = attemptOf(fields);
    // Asked again after a pause or a restart: it is the same lease that it waits for.
    if (name === null || this.#leasedFor === name.attempt) return;
    this.#endLease(atMs, "cancelled");
    const pool = textField(fields, "pool") ?? "";
    this.#leasedFor = name.attempt;
    this.#lease = this.#spans.open(leaseSpan(this.#spans.run.runId, name), `lease ${pool}`, atMs, {
      ...this.#attributes(name),
      "troupe.pool": pool,
      "troupe.slots": wholeField(fields, "slots") ?? 1,
    });
  }

  #startAttempt({ fields, atMs }: SeenEvent): void {
    const name = attemptOf(fields);
    if (name === null) return;
    const pool = textField(fields, "pool");
    this.#attempt = this.#spans.open(
      attemptSpan(this.#spans.run.runId, name),
      `attempt ${this.#agentId}`,
      atMs,
      { ...this.#attributes(name), ...(pool !== null && { "troupe.pool": pool }) },
    );
  }

  #attributes({ task, attempt }: AttemptName) {
    return { "troupe.agent_id": this.#agentId, "troupe.task": task, "troupe.attempt": attempt };
  }

  #endAttempt({ event, fields, atMs }: SeenEvent, status: string): void {
    this.#attempt?.set({
      "troupe.exit_code": wholeField(fields, "exit_code"),
      "troupe.cpu_ms": wholeField(fields, "cpu_ms"),
      "troupe.max_rss_bytes": wholeField(fields, "max_rss_bytes"),
    });
    if (event.failure !== null) this.#attempt?.failed(event.failure, atMs);
    this.#spans.end(this.#attempt, atMs, status, status === "failed" ? "The attempt failed." : null);
    this.#attempt = null;
  }

  /** Slots were released; the reason tells how the attempt ended, and mostly whether the task has ended too. */
  #released(reason: string, atMs: number): TaskChange {
    const status = reason === "succeeded" ? "completed" : reason;
    this.#cutOff(atMs, status);
    if (reason === "interrupted") return "continues";
    if (reason !== "failed") return { endedAs: status };
    this.#hasFailed = true;
    return "may_have_failed";
  }

  /** Ends an attempt that has no event for its end, and the lease. */
  #cutOff(atMs: number, status: string): void {
    const error = status === "interrupted" ? "The attempt was interrupted." : null;
    this.#spans.end(this.#attempt, atMs, status, error);
    this.#attempt = null;
    this.#endLease(atMs, status);
  }

  #endLease(atMs: number, status: string): void {
    this.#spans.end(this.#lease, atMs, status);
    this.#lease = null;
    this.#leasedFor = null;
  }
}
