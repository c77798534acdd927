// The open spans of one run, counted against what all runs together may have open.

import type { Span, TraceContext } from "../../engine/trace.ts";
import { type Attributes, type FinishedSpan, OpenSpan } from "./span.ts";

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
  /** Spans that were not begun for want of room. */
  refused: number;
}

export class OpenSpans {
  readonly run: TracedRun;
  readonly #budget: SpanBudget;
  readonly #handOn: (span: FinishedSpan) => void;
  #open = 0;

  constructor(run: TracedRun, budget: SpanBudget, handOn: (span: FinishedSpan) => void) {
    this.run = run;
    this.#budget = budget;
    this.#handOn = handOn;
  }

  /** @returns null when there is no room for it */
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
   * Ends a span, if there is one, and hands it on.
   * @param error why that is no good end, where no failure says so; null when it is one
   */
  end(span: OpenSpan | null, atMs: number, status: string, error: string | null = null): void {
    if (span === null) return;
    this.#budget.open--;
    this.#open--;
    this.#handOn(span.finish(atMs, status, error));
  }

  /** Gives up what is open. */
  discard(): void {
    this.#budget.open -= this.#open;
    this.#open = 0;
  }
}
