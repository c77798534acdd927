// What one attempt prints, on its way into the history and into its result.
//
// - Memory is bounded whatever is printed: lines are cut, tails are kept, and past the attempt's log budget
//   output is read on but dropped.
// - Nothing unredacted leaves here, but for the result object of `result`.
// - Events are handed over in the order of their stream, once per chunk that was read.

import type { LogLevel } from "../../engine/event-types.ts";
import type { JsonValue } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import type { TaskEvent, WorkerActions } from "../../engine/task-port.ts";
import type { AttemptReport } from "../runner/attempt.ts";
import { EventLines, logEvent, redactEvent } from "./event-stream.ts";
import { LineSplitter, Tail } from "./lines.ts";
import { levelOfLine } from "./log-level.ts";
import type { Redactor } from "./redaction.ts";
import { type NamedOutput, type Reading, readCutLine, readLine, readStdout } from "./result.ts";

/** What an event costs beside its text. */
const EVENT_OVERHEAD_BYTES = 128;
/** A log's message leaves room for the payload's other fields, so that the event is never replaced whole. */
const MESSAGE_JSON_CHARS_MAX = limits.eventPayloadCharsMax - 512;
const UTF8_BYTES_MAX = 4;

export interface AttemptOutputOptions {
  readonly attempt: number;
  readonly longLived: boolean;
  readonly redactor: Redactor;
  readonly report: AttemptReport;
}

export class AttemptOutput {
  readonly #options: AttemptOutputOptions;
  readonly #stdoutTail: Tail;
  readonly #stderrTail: Tail;
  readonly #stdoutLines: LineSplitter;
  readonly #stderrLines: LineSplitter;
  readonly #eventLines: LineSplitter;
  /** Outputs that a long-lived command named so far. */
  readonly #outputs: NamedOutput[] = [];
  /** The first result of a long-lived command that could not act. */
  #wrong: Reading | null = null;
  #logBytesLeft: number = limits.runLogBytesMax;
  /** Events of the chunk being read. */
  #batch: TaskEvent[] = [];
  /** Beginning of the last line of stdout, when that line was cut. */
  #cutLineHead: string | null = null;

  constructor(options: AttemptOutputOptions) {
    this.#options = options;
    const { longLived, redactor } = options;
    const overlapBytes = redactor.longestChars * UTF8_BYTES_MAX;
    const carriedBytes = limits.stdoutCarriedBytesMax + overlapBytes;
    const lineBytes = limits.logLineCharsMax + overlapBytes;
    this.#stdoutTail = new Tail(
      longLived ? carriedBytes : Math.max(limits.stdoutParsedBytesMax, carriedBytes),
    );
    this.#stderrTail = new Tail(carriedBytes);
    this.#stdoutLines = new LineSplitter(
      longLived ? Math.max(limits.stdoutParsedBytesMax, lineBytes) : lineBytes,
      (line, cut) => this.#stdoutLine(line, cut),
    );
    this.#stderrLines = new LineSplitter(lineBytes, (line, cut) =>
      this.#log(levelOfLine(line), "stderr", line, cut),
    );
    const events = new EventLines(options.attempt, redactor);
    this.#eventLines = new LineSplitter(limits.workerEventLineBytesMax, (line, cut) => {
      const event = events.read(line, cut);
      if (event !== null) this.#add(event, line.length);
    });
  }

  stdout(chunk: Buffer): void {
    this.#stdoutTail.push(chunk);
    // Past the budget only results still matter, and those of a one-shot command are read from the tail.
    if (this.#logBytesLeft > 0 || this.#options.longLived) this.#stdoutLines.push(chunk);
    this.#handOver();
  }

  stderr(chunk: Buffer): void {
    this.#stderrTail.push(chunk);
    if (this.#logBytesLeft > 0) this.#stderrLines.push(chunk);
    this.#handOver();
  }

  events(chunk: Buffer): void {
    this.#eventLines.push(chunk);
    this.#handOver();
  }

  /** The streams are over: hands out the last lines that had no end. */
  flush(): void {
    this.#stdoutLines.flush();
    this.#stderrLines.flush();
    this.#eventLines.flush();
    this.#handOver();
  }

  /**
   * The result object of a one-shot command; of a long-lived one, whose results have acted, the first that was wrong.
   * To be read after `flush`.
   */
  result(): Reading {
    if (this.#options.longLived) return this.#wrong ?? { kind: "none" };
    const text = this.#stdoutTail.text();
    if (this.#stdoutTail.cut && !text.trimEnd().includes("\n")) {
      return readCutLine(this.#cutLineHead ?? "", limits.stdoutParsedBytesMax);
    }
    return readStdout(text, this.#stdoutTail.cut);
  }

  get outputs(): readonly NamedOutput[] {
    return this.#outputs;
  }

  /** The ends of both streams, as results carry them. */
  carried(): { readonly stdout: string; readonly stderr: string } {
    return { stdout: this.#carriedOf(this.#stdoutTail), stderr: this.#carriedOf(this.#stderrTail) };
  }

  #carriedOf(tail: Tail): string {
    const { redactor } = this.#options;
    const text = tail.cut ? redactor.tailText(tail.text()) : redactor.text(tail.text());
    const carried = new Tail(limits.stdoutCarriedBytesMax);
    carried.push(Buffer.from(text));
    return tail.cut || carried.cut ? `…${carried.text()}` : text;
  }

  #stdoutLine(line: string, cut: boolean): void {
    if (cut) this.#cutLineHead = line;
    else if (line.trim() !== "") this.#cutLineHead = null;
    if (this.#options.longLived && this.#act(line, cut)) return;
    this.#log(levelOfLine(line), "stdout", line, cut);
  }

  /** @returns whether the line is a result object, or was meant as one */
  #act(line: string, cut: boolean): boolean {
    const reading = cut ? readCutLine(line, limits.stdoutParsedBytesMax) : readLine(line);
    if (reading.kind === "none") return false;
    // What was printed before the object comes before what the object does.
    this.#handOver();
    if (reading.kind === "result") {
      this.#options.report.actions(redactActions(reading.actions, this.#options.redactor));
      const room = limits.artifactsPerAttemptMax - this.#outputs.length;
      this.#outputs.push(...reading.outputs.slice(0, room));
    } else {
      this.#wrong ??= reading;
      this.#log("warn", "worker", reading.message, false);
    }
    return true;
  }

  #log(level: LogLevel, stream: "stdout" | "stderr" | "worker", line: string, cut: boolean): void {
    const { redactor } = this.#options;
    const text = cut ? redactor.cutText(line) : redactor.text(line);
    const message = fitting(text);
    const event = logEvent(level, stream, message, this.#options.attempt);
    const truncated = cut || message.length < text.length;
    this.#add(
      truncated ? { type: "log", payload: { ...(event.payload as object), truncated: true } } : event,
      message.length,
    );
  }

  /** Only logs have a budget: a service may report metrics and progress for as long as it lives. */
  #add(event: TaskEvent, textChars: number): void {
    if (event.type === "log") {
      if (this.#logBytesLeft <= 0) return;
      this.#logBytesLeft -= textChars + EVENT_OVERHEAD_BYTES;
    }
    this.#batch.push(event);
  }

  #handOver(): void {
    if (this.#batch.length === 0) return;
    const batch = this.#batch;
    this.#batch = [];
    this.#options.report.events(batch);
  }
}

/** What a worker asks for is stored and shown, so it is redacted whole; the types of messages name edges, and stay. */
export function redactActions(actions: WorkerActions, redactor: Redactor): WorkerActions {
  const optional = (value: JsonValue | undefined) => (value === undefined ? undefined : redactor.json(value));
  return {
    events: actions.events.map((event) => redactEvent(event, redactor)),
    emits: actions.emits.map((emit) => ({ ...emit, body: redactor.json(emit.body) })),
    nextState: optional(actions.nextState),
    completeStep: optional(actions.completeStep),
    completeRun: optional(actions.completeRun),
  };
}

/** The longest beginning of a line that a log event can show: JSON may need up to six characters for one. */
function fitting(line: string): string {
  let text = line.slice(0, limits.logLineCharsMax);
  if (text.length * 6 <= MESSAGE_JSON_CHARS_MAX) return text;
  for (;;) {
    const chars = JSON.stringify(text).length;
    if (chars <= MESSAGE_JSON_CHARS_MAX) return text;
    text = text.slice(0, Math.floor((text.length * MESSAGE_JSON_CHARS_MAX) / chars) - 1);
  }
}
