// Finished spans on their way to the collector, through a thread that has the OpenTelemetry SDK in it: its batch
// processor gathers and sends. Making requests of spans costs the runtime's thread nothing then, and a thread can be
// terminated whatever its retries are doing.
//
// - Adding never waits and never throws. Only so many spans may be unsettled, neither sent nor lost: more are dropped.
// - The SDK is loaded in the thread alone, which starts immediately: it is ready when a run of one second ends.
// - A thread that fails loses its spans; the next spans get a new one.
// - A failure is logged once when it begins, and once, with the number of spans lost, when it is over.
// - Closing sends what waits, for as long as it is given; not at all while the collector does not answer.

import { Worker } from "node:worker_threads";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { ThreadCommand, ThreadReport, ThreadSettings } from "./exporter-thread.ts";
import { DEFAULT_SERVICE_NAME, type Env, type ExportSettings } from "./settings.ts";
import type { FinishedSpan } from "./span.ts";

export interface SpanExporterParts {
  readonly settings: ExportSettings;
  /** Where the OTEL_* variables are, which the SDK reads. */
  readonly env: Env;
  readonly clock: Clock;
  readonly log: EngineLog;
  readonly version: string;
}

export class SpanExporter {
  readonly #parts: SpanExporterParts;
  #thread: Worker | null;
  /** Spans for the thread: those of one turn of the event loop go together. */
  #unposted: FinishedSpan[] = [];
  #unsettled = 0;
  #whenSettled: PromiseWithResolvers<void> | null = null;
  #isClosed = false;
  /** Whether the last batch was lost. */
  #isFailing = false;
  /** Lost since the failure began; 0 without one. */
  #lost = 0;

  constructor(parts: SpanExporterParts) {
    this.#parts = parts;
    this.#thread = this.#start();
  }

  readonly add = (span: FinishedSpan): void => {
    if (this.#isClosed) return;
    if (this.#unsettled >= this.#parts.settings.queueMax) {
      this.#lose(1, "spans end faster than they can be sent");
      return;
    }
    this.#unsettled++;
    if (this.#unposted.push(span) === 1) this.#parts.clock.soon(() => this.#post());
  };

  /** Sends what waits, and ends the thread. May be called twice. @param isLate resolves when it has taken too long */
  async close(isLate: Promise<void>): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#post();
    if (this.#unsettled > 0 && !this.#isFailing) {
      this.#tell({ kind: "flush" });
      this.#whenSettled = Promise.withResolvers();
      await Promise.race([this.#whenSettled.promise, isLate]);
    }
    const lost = this.#lost + this.#unsettled;
    this.#unsettled = 0;
    await this.#thread?.terminate();
    const { log, settings } = this.#parts;
    if (lost > 0) log.warn({ spans: lost }, `spans were not sent to ${settings.shownUrl}`);
  }

  #post(): void {
    if (this.#unposted.length > 0) this.#tell({ kind: "spans", spans: this.#unposted });
    this.#unposted = [];
  }

  #tell(command: ThreadCommand): void {
    this.#thread ??= this.#start();
    this.#thread.postMessage(command);
  }

  #start(): Worker {
    const { settings, env, version } = this.#parts;
    const { sampler, queueMax, batchMax, delayMs } = settings;
    const service = { serviceName: DEFAULT_SERVICE_NAME, serviceVersion: version };
    const workerData: ThreadSettings = { ...service, sampler, queueMax, batchMax, delayMs };
    const otel = Object.entries(env).filter(([name]) => name.startsWith("OTEL_"));
    const thread = new Worker(new URL("./exporter-thread.ts", import.meta.url), {
      workerData,
      env: Object.fromEntries(otel) as NodeJS.Dict<string>,
      argv: [],
      execArgv: [],
    });
    // What waits to be sent keeps nothing alive.
    thread.unref();
    let problem = "the exporter's thread has ended";
    thread.on("error", (error) => {
      problem = error instanceof Error ? error.message : String(error);
    });
    thread.on("message", (report: ThreadReport) => this.#take(report));
    thread.on("exit", () => {
      this.#thread = null;
      const spans = this.#unsettled - this.#unposted.length;
      if (spans > 0) this.#take({ kind: "lost", spans, reason: problem });
    });
    return thread;
  }

  #take(report: ThreadReport): void {
    if (report.kind === "warning") {
      this.#parts.log.warn({ detail: report.text }, "warning of the trace exporter");
      return;
    }
    this.#unsettled -= report.spans;
    this.#isFailing = report.kind === "lost";
    if (report.kind === "lost") this.#lose(report.spans, report.reason);
    else this.#recover();
    if (this.#unsettled === 0 || this.#isFailing) this.#whenSettled?.resolve();
  }

  #lose(spans: number, reason: string): void {
    const { log, settings } = this.#parts;
    if (this.#lost === 0 && !this.#isClosed)
      log.warn({ reason }, `traces cannot be sent to ${settings.shownUrl}: spans are dropped until they can`);
    this.#lost += spans;
  }

  #recover(): void {
    const { log, settings } = this.#parts;
    if (this.#lost === 0 || this.#unsettled >= settings.queueMax / 2) return;
    log.warn({ spans: this.#lost }, `traces are sent to ${settings.shownUrl} again; spans were lost`);
    this.#lost = 0;
  }
}
