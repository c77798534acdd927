// Spans as plain data, read from the history, in a shape that is sent to the exporter's thread and depends on
// no library; and the open ones of a run, counted against the limit of all runs together.

import type { Failure } from "../../engine/failure.ts";
import type { Span, TraceContext } from "../../engine/trace.ts";

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Something that happened during a span. */
export interface SpanEvent {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly attributes: Attributes;
}

/** A span that has ended. */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  /** Whether the parent is the caller's. */
  readonly isParentRemote: boolean;
  /** Whether the trace was started by a caller. */
  readonly isCallersTrace: boolean;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** What went wrong, for people; null when nothing did. */
  readonly error: string | null;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Events beyond what a span keeps. */
  readonly droppedEvents: number;
}

/** What one span keeps of what happens during it; an agent may leave thousands of files. */
const EVENTS_PER_SPAN_MAX = 32;

/** A span that has not ended yet. */
export class OpenSpan {
  readonly startMs: number;
  readonly #trace: TraceContext;
  readonly #span: Span;
  readonly #name: string;
  readonly #attributes: Record<string, string | number | boolean>;
  readonly #events: SpanEvent[] = [];
  #droppedEvents = 0;
  #error: string | null = null;

  constructor(
    trace: TraceContext,
    given: {
      readonly span: Span;
      readonly name: string;
      readonly startMs: number;
      readonly attributes: Attributes;
    },
  ) {
    this.#trace = trace;
    this.#span = given.span;
    this.#name = given.name;
    this.startMs = given.startMs;
    this.#attributes = { ...given.attributes };
  }

  get hasFailed(): boolean {
    return this.#error !== null;
  }

  /** Adds what is known now; null is nothing. */
  set(attributes: Readonly<Record<string, string | number | boolean | null>>): void {
    for (const [name, value] of Object.entries(attributes))
      if (value !== null) this.#attributes[name] = value;
  }

  happened(event: SpanEvent): void {
    if (this.#events.length < EVENTS_PER_SPAN_MAX) this.#events.push(event);
    else this.#droppedEvents++;
  }

  /** Notes a failure, in the way that OpenTelemetry notes exceptions. */
  failed(failure: Failure, atMs: number): void {
    const { code, desc, details } = failure;
    this.#error = desc;
    this.set({ "error.type": code });
    this.happened({
      name: "exception",
      atMs,
      attributes: {
        "exception.type": code,
        "exception.message": details.message,
        ...(details.stderr_tail !== undefined && { "exception.stacktrace": details.stderr_tail }),
      },
    });
  }

  /**
   * @param status what became of it, in the words of the timeline
   * @param error what went wrong, unless a failure was noted already; null when nothing did
   */
  finish(endMs: number, status: string, error: string | null): FinishedSpan {
    const parentSpanId = this.#span.parentId ?? this.#trace.parentSpanId;
    return {
      traceId: this.#trace.traceId,
      spanId: this.#span.id,
      parentSpanId,
      isParentRemote: this.#span.parentId === null && parentSpanId !== null,
      isCallersTrace: this.#trace.parentSpanId !== null,
      name: this.#name,
      startMs: this.startMs,
      // Clocks can be set back; a span cannot end before it begins.
      endMs: Math.max(this.startMs, endMs),
      error: this.#error ?? error,
      attributes: { ...this.#attributes, "troupe.status": status },
      events: this.#events,
      droppedEvents: this.#droppedEvents,
    };
  }
}

/** The run that the spans are of. */
export interface TracedRun {
  readonly runId: string;
  /** The job's id as people know it. */
  readonly jobId: string;
  readonly graphId: string;
  readonly jobName: string | null;
  readonly trace: TraceContext;
  /** Milliseconds since 1970. */
  readonly submittedAtMs: number;
}

/** How many spans may be open, of all runs together. */
export interface SpanBudget {
  readonly max: number;
  open: number;
  /** Spans that were not started because of the limit. */
  refused: number;
}

export class OpenSpans {
  readonly run: TracedRun;
  readonly #budget: SpanBudget;
  readonly #emit: (span: FinishedSpan) => void;
  #open = 0;

  constructor(run: TracedRun, budget: SpanBudget, emit: (span: FinishedSpan) => void) {
    this.run = run;
    this.#budget = budget;
    this.#emit = emit;
  }

  /** @returns null when the limit is reached */
  open(span: Span, name: string, startMs: number, attributes: Attributes): OpenSpan | null {
    const budget = this.#budget;
    if (budget.open >= budget.max) {
      budget.refused++;
      return null;
    }
    budget.open++;
    this.#open++;
    const { runId, jobId, trace } = this.run;
    const all = { "troupe.run_id": runId, "troupe.job_id": jobId, ...attributes };
    return new OpenSpan(trace, { span, name, startMs, attributes: all });
  }

  /**
   * Ends a span, if there is one, and emits it.
   * @param error what went wrong, where no failure was noted; null when nothing did
   */
  end(span: OpenSpan | null, atMs: number, status: string, error: string | null = null): void {
    if (span === null) return;
    this.#budget.open--;
    this.#open--;
    this.#emit(span.finish(atMs, status, error));
  }

  /** Drops the open spans. */
  discard(): void {
    this.#budget.open -= this.#open;
    this.#open = 0;
  }
}
