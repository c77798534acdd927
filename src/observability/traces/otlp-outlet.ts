// The way to the collector: a thread that has the OpenTelemetry SDK in it. Making requests of spans and waiting for a
// collector is none of the runtime's thread's business, and a thread can be ended whatever its retries are up to.
//
// O1. The SDK is loaded in the thread alone. It begins at once, so that a run of a second is not over before it is there.
// O2. A thread that fails loses its batch; the next batch gets a new one.

import { Worker } from "node:worker_threads";
import type { EngineLog } from "../../engine/ports.ts";
import type { Env, SamplerSettings } from "./settings.ts";
import type { FinishedSpan } from "./span.ts";
import type { SpanOutlet } from "./span-sender.ts";

/** What the thread is started with. */
export interface ThreadSettings {
  readonly sampler: SamplerSettings;
  readonly serviceName: string;
  readonly serviceVersion: string;
}

/** What the thread says: what became of its batch, or something that should be in the log. */
export type ThreadWord =
  | { readonly kind: "sent" }
  | { readonly kind: "lost"; readonly reason: string }
  | { readonly kind: "warning"; readonly text: string };

interface Batch {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class OtlpOutlet implements SpanOutlet {
  readonly #settings: ThreadSettings;
  readonly #env: Env;
  readonly #log: EngineLog;
  #thread: Worker | null;
  #batch: Batch | null = null;
  #isClosed = false;

  /** @param env the OTEL_* variables, which the SDK reads */
  constructor(settings: ThreadSettings, env: Env, log: EngineLog) {
    this.#settings = settings;
    this.#env = env;
    this.#log = log;
    this.#thread = this.#start();
  }

  send(spans: readonly FinishedSpan[]): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error("the runtime is stopping"));
    this.#thread ??= this.#start();
    this.#thread.postMessage(spans);
    return new Promise((resolve, reject) => {
      this.#batch = { resolve, reject };
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(new URL("./otlp-thread.ts", import.meta.url), {
      workerData: this.#settings,
      env: this.#env as NodeJS.Dict<string>,
      argv: [],
      execArgv: [],
    });
    // What waits to be sent keeps nothing alive.
    thread.unref();
    let problem = "the exporter's thread has ended";
    thread.on("error", (error) => {
      problem = error instanceof Error ? error.message : String(error);
    });
    thread.on("message", (word: ThreadWord) => this.#heard(word));
    thread.on("exit", () => {
      if (this.#thread === thread) this.#thread = null;
      this.#ended(new Error(this.#isClosed ? "the runtime is stopping" : problem));
    });
    return thread;
  }

  #heard(word: ThreadWord): void {
    if (word.kind === "warning")
      this.#log.warn({ detail: word.text }, "the exporter of traces has a warning");
    else this.#ended(word.kind === "sent" ? null : new Error(word.reason));
  }

  #ended(error: Error | null): void {
    const batch = this.#batch;
    this.#batch = null;
    if (error === null) batch?.resolve();
    else batch?.reject(error);
  }
}

/** The variables that the SDK reads. */
export function otelVariables(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith("OTEL_")));
}
