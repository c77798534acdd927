// Published events become spans: pages of events are taken from the feed as they come, and processed later.
//
// - Publishing only checks the types of the events; everything else happens later, in slices.
// - What waits is bounded. Beyond it pages are dropped, and with them the spans that they would have ended; the
//   run's later spans are right again, from its history.
// - The runs that are followed are open ones. A run that is met in its middle (after a restart, or after a dropped
//   page) is made up from a bounded look at its history; what ended in there is not sent again.

import { eventType } from "../../engine/event.ts";
import { terminalEventTypes } from "../../engine/event-types.ts";
import { Fifo } from "../../engine/fifo.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { EngineLog } from "../../engine/ports.ts";
import { Slices } from "../../lib/slices.ts";
import type { FeedObserver } from "../../runs/feed.ts";
import type { JobRecord, JobRecords } from "../../runs/job-records.ts";
import { concernsSpans, RunSpans } from "./run-spans.ts";
import { type FinishedSpan, OpenSpans, type SpanBudget, type TracedRun } from "./span.ts";

/** Open spans of all runs together. */
const OPEN_SPANS_MAX = 100_000;
/** Characters of events that wait. */
const WAITING_CHARS_MAX = 16 * 1024 * 1024;
/** How far back a run's history is read for what is open in it. */
const LOOK_BACK_EVENTS = 50_000;
/** Between two looks at the time. */
const EVENTS_PER_STEP = 32;

interface Waiting {
  readonly jobId: string;
  readonly events: readonly NumberedLine[];
  readonly chars: number;
  readonly terminal: boolean;
  /** The page before this one was dropped. */
  readonly afterGap: boolean;
}

interface NumberedLine {
  readonly seq: number;
  readonly line: string;
}

interface Followed {
  readonly open: OpenSpans;
  readonly spans: RunSpans;
}

/** What is asked of a job to trace it. */
export type TracedJob = Pick<
  JobRecord,
  "jobId" | "runId" | "definitionId" | "graphId" | "jobName" | "trace" | "submittedAtMs"
>;

export interface TracedJobs extends Pick<JobRecords, "events"> {
  find(jobId: string): Promise<TracedJob | null>;
}

export interface TraceFeedParts {
  readonly records: TracedJobs;
  readonly emit: (span: FinishedSpan) => void;
  readonly log: EngineLog;
  readonly limits?: {
    readonly openSpansMax?: number;
    readonly waitingCharsMax?: number;
    readonly lookBackEvents?: number;
  };
}

export class TraceFeed {
  readonly #parts: TraceFeedParts;
  readonly #waitingCharsMax: number;
  readonly #lookBackEvents: number;
  readonly #budget: SpanBudget;
  readonly #waiting = new Fifo<Waiting>();
  readonly #followed = new Map<string, Followed>();
  /** Jobs whose last page was dropped. */
  readonly #gaps = new Set<string>();
  #waitingChars = 0;
  #working: Promise<void> | null = null;
  #isStopped = false;
  /** Warnings that were logged already; each is logged once. */
  readonly #warned = new Set<string>();

  constructor(parts: TraceFeedParts) {
    const { limits = {} } = parts;
    this.#parts = parts;
    this.#waitingCharsMax = limits.waitingCharsMax ?? WAITING_CHARS_MAX;
    this.#lookBackEvents = limits.lookBackEvents ?? LOOK_BACK_EVENTS;
    this.#budget = { max: limits.openSpansMax ?? OPEN_SPANS_MAX, open: 0, refused: 0 };
  }

  /** Spans that have started and not ended. */
  get openSpans(): number {
    return this.#budget.open;
  }

  /** Runs that are followed. */
  get openRuns(): number {
    return this.#followed.size;
  }

  /** Takes what was published of a job. */
  readonly published: FeedObserver = (jobId, firstSeq, lines) => {
    const events: NumberedLine[] = [];
    let chars = 0;
    for (const [i, line] of lines.entries()) {
      if (!concernsSpans(eventType(line))) continue;
      events.push({ seq: firstSeq + i, line });
      chars += line.length;
    }
    if (events.length === 0) return;
    const terminal = terminalEventTypes.has(eventType(lines.at(-1)!));
    if (this.#waitingChars + chars > this.#waitingCharsMax) this.#drop(jobId, terminal);
    else {
      this.#waitingChars += chars;
      this.#waiting.push({ jobId, events, chars, terminal, afterGap: this.#gaps.delete(jobId) });
    }
    this.#working ??= this.#work();
  };

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    while (this.#working !== null) await this.#working;
  }

  /** What waits is left where it is. */
  stop(): void {
    this.#isStopped = true;
  }

  #warn(message: string, fields: JsonObject = {}): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#parts.log.warn(fields, message);
  }

  #drop(jobId: string, terminal: boolean): void {
    this.#warn("events arrive faster than they can be traced: some spans are left out");
    if (!terminal) {
      this.#gaps.add(jobId);
      return;
    }
    // Its end is small, and drops the open spans.
    this.#gaps.delete(jobId);
    this.#waiting.push({ jobId, events: [], chars: 0, terminal, afterGap: false });
  }

  async #work(): Promise<void> {
    const slices = new Slices();
    await slices.breathe();
    for (let page = this.#waiting.shift(); page !== undefined; page = this.#waiting.shift()) {
      if (this.#isStopped) break;
      try {
        await this.#take(page, slices);
      } catch (error) {
        this.#forget(page.jobId);
        this.#warn("a run cannot be traced", { job_id: page.jobId, error: String(error) });
      }
      if (this.#budget.refused > 0) this.#warn("too many spans are open: some are left out");
      this.#waitingChars -= page.chars;
      if (slices.isOver) await slices.breathe();
    }
    this.#working = null;
  }

  async #take({ jobId, events, terminal, afterGap }: Waiting, slices: Slices): Promise<void> {
    const first = events[0];
    if (afterGap || first === undefined) this.#forget(jobId);
    if (first === undefined) return;
    const followed = this.#followed.get(jobId) ?? (await this.#follow(jobId, first.seq, slices));
    if (followed === null) return;
    for (const [i, { seq, line }] of events.entries()) {
      followed.spans.apply(seq, line);
      if (i % EVENTS_PER_STEP === EVENTS_PER_STEP - 1 && slices.isOver) await slices.breathe();
    }
    followed.spans.settle();
    if (terminal) this.#forget(jobId);
  }

  /** @returns the run as it stands before this event; null when it is gone already */
  async #follow(jobId: string, seq: number, slices: Slices): Promise<Followed | null> {
    const job = await this.#parts.records.find(jobId);
    if (job === null) return null;
    let isPast = true;
    const open = new OpenSpans(toTracedRun(job), this.#budget, (span) => {
      if (!isPast) this.#parts.emit(span);
    });
    const followed = { open, spans: new RunSpans(open) };
    this.#followed.set(jobId, followed);
    await this.#lookBack(jobId, seq - 1, followed.spans, slices);
    isPast = false;
    return followed;
  }

  /** Applies the history up to this event. */
  async #lookBack(jobId: string, lastSeq: number, spans: RunSpans, slices: Slices): Promise<void> {
    let seq = Math.max(0, lastSeq - this.#lookBackEvents);
    while (seq < lastSeq) {
      const { lines } = await this.#parts.records.events(jobId, seq);
      if (lines.length === 0) break;
      for (const line of lines) {
        if (seq === lastSeq) break;
        spans.apply(++seq, line);
        if (seq % EVENTS_PER_STEP === 0 && slices.isOver) await slices.breathe();
      }
    }
    spans.settle();
  }

  #forget(jobId: string): void {
    this.#followed.get(jobId)?.open.discard();
    this.#followed.delete(jobId);
  }
}

function toTracedRun(job: TracedJob): TracedRun {
  return {
    runId: job.runId,
    jobId: job.definitionId ?? job.jobId,
    graphId: job.graphId,
    jobName: job.jobName,
    trace: job.trace,
    submittedAtMs: job.submittedAtMs,
  };
}
