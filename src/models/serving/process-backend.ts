// A model's own server process: loaded for the first request, watched, loaded again when it has ended, and unloaded when
// nobody has asked for a while.
//
// - It listens on the loopback only, under a key that is made for each start.
// - One that ends by itself is started again after a short wait, then after longer and longer ones while it does not come to
//   answer. Requests wait for it; once it has failed FAILURES_TOLD times in a row they are told why, until the wait is over,
//   and it is started again for a request alone.
// - What it prints is in the program's log, line by line and so many of each start; the last ones are in the reason why it failed.

import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { Daemon, DaemonExit, DaemonSpec } from "../../execution/process/daemons.ts";
import { request } from "../../lib/node-http.ts";
import { LlmError } from "./llm-error.ts";
import { concurrencyOf, type ModelBackend, type ServeSettings } from "./model-backend.ts";
import { RequestQueue } from "./request-queue.ts";
import type { Servable } from "./servable.ts";
import { programOf, serverProgram } from "./server-program.ts";
import { pause, type Target } from "./upstream.ts";

const HEALTH_EVERY_MS = 10_000;
const LOADING_LOOK_MS = 200;
const ENDING_LOOK_MS = 10;
const HEALTH_TIMEOUT_MS = 5_000;
const UNHEALTHY_MAX = 3;
/** Loading some 100 GB from a slow disk. */
const LOAD_MS_MAX = 30 * 60_000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_LAST_MS = 60_000;
const FAILURES_TOLD = 3;
const END_GRACE_MS = 10_000;
const LOG_LINES_MAX = 2_000;
const LAST_LINES = 8;

export interface ProcessBackendParts {
  readonly startDaemon: (spec: DaemonSpec) => Promise<Daemon>;
  /** What the process finds beside its own variables. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder it starts in. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: EngineLog & { info(fields: object, message: string): void };
}

type ModelFile = Extract<Servable, { readonly kind: "file" }>;

interface Loaded {
  readonly daemon: Daemon;
  readonly target: Target;
}

export class ProcessBackend implements ModelBackend {
  readonly queue: RequestQueue;
  readonly #parts: ProcessBackendParts;
  readonly #servable: ModelFile;
  readonly #settings: ServeSettings;
  readonly #closing = new AbortController();
  #loading: Promise<Loaded> | null = null;
  #loaded: Loaded | null = null;
  /** Starts in a row that have come to nothing. */
  #failures = 0;
  #notBeforeMs = 0;
  #lastFailure: LlmError | null = null;
  #requests = 0;
  /** Whether it was asked for within the time after which it is unloaded. */
  #isWanted = false;
  #cancelIdle: () => void = () => {};

  constructor(servable: ModelFile, settings: ServeSettings, parts: ProcessBackendParts) {
    this.#servable = servable;
    this.#settings = settings;
    this.#parts = parts;
    this.queue = new RequestQueue(servable.modelId, concurrencyOf(servable, settings), settings.queue);
  }

  get state(): "unloaded" | "loading" | "ready" {
    if (this.#loaded !== null) return "ready";
    return this.#loading === null ? "unloaded" : "loading";
  }

  async enter(signal: AbortSignal): Promise<() => void> {
    this.#requests++;
    this.#isWanted = true;
    this.#cancelIdle();
    try {
      const leave = await this.queue.enter(signal);
      return () => {
        leave();
        this.#left();
      };
    } catch (error) {
      this.#left();
      throw error;
    }
  }

  async target(signal: AbortSignal): Promise<Target> {
    signal.throwIfAborted();
    // The next one is started once its end is told.
    const before = this.#loaded;
    while (before?.daemon.hasEnded && this.#loaded === before)
      await pause(this.#parts.clock, ENDING_LOOK_MS, signal);
    const waitMs = this.#notBeforeMs - this.#parts.clock.steadyMs();
    if (this.#loaded === null && this.#loading === null && waitMs > 0) {
      if (this.#failures >= FAILURES_TOLD && this.#lastFailure !== null) throw this.#toldAgain(waitMs);
      await pause(this.#parts.clock, waitMs, signal);
    }
    const loaded = await abortable(this.#load(), signal);
    return loaded.target;
  }

  async check(signal: AbortSignal): Promise<void> {
    const leave = await this.enter(signal);
    await this.target(signal).finally(leave);
  }

  /** Ends the process; it is not started again. */
  async close(): Promise<void> {
    this.#closing.abort(new LlmError(503, "model_stopped", this.#text("was stopped. Serve it again")));
    this.#cancelIdle();
    const loading = this.#loading;
    await loading?.catch(() => {});
    await this.#unload();
  }

  #left(): void {
    this.#requests--;
    const { idleUnloadSeconds } = this.#settings;
    if (this.#requests > 0 || idleUnloadSeconds === 0 || this.#closing.signal.aborted) return;
    this.#cancelIdle();
    this.#cancelIdle = this.#parts.clock.after(idleUnloadSeconds * 1_000, () => {
      this.#isWanted = false;
      void this.#unload();
    });
  }

  /** One start at a time, however many ask for it. */
  #load(): Promise<Loaded> {
    if (this.#loaded !== null) return Promise.resolve(this.#loaded);
    this.#loading ??= this.#start().then(
      (loaded) => {
        this.#loading = null;
        if (!this.#isWanted) void this.#unload();
        return loaded;
      },
      (error: unknown) => {
        this.#loading = null;
        this.#failed(error);
        throw error;
      },
    );
    return this.#loading;
  }

  async #start(): Promise<Loaded> {
    const { clock, startDaemon, environment, folder, log } = this.#parts;
    const { modelId } = this.#servable;
    this.#closing.signal.throwIfAborted();
    const key = randomBytes(32).toString("base64url");
    const port = await freePort();
    const program = serverProgram(this.#servable, this.#settings, { port, key });
    const printed = new Printed(
      (line) => log.info({ model_id: modelId, line }, "a model's server says"),
      key,
    );
    const startedAtMs = clock.steadyMs();
    const daemon = await startDaemon({
      ...program,
      folder,
      environment: { ...environment, ...program.environment },
      onLine: printed.line,
    }).catch((error: unknown) => {
      throw this.#notStarted(error);
    });
    const target = { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: key, model: modelId };
    const ended = new AbortController();
    void daemon.exited.then((exit) => ended.abort(this.#ended(exit, printed)));
    const stop = AbortSignal.any([ended.signal, this.#closing.signal]);
    try {
      while (!(await isHealthy(target, stop))) {
        stop.throwIfAborted();
        if (clock.steadyMs() - startedAtMs > LOAD_MS_MAX)
          throw new LlmError(
            503,
            "model_failed",
            this.#text("was not loaded within 30 minutes. See the program's log"),
          );
        await pause(clock, LOADING_LOOK_MS, stop);
      }
    } catch (error) {
      await daemon.end(END_GRACE_MS);
      throw error;
    }
    const loaded = { daemon, target };
    this.#loaded = loaded;
    this.#failures = 0;
    this.#lastFailure = null;
    log.info({ model_id: modelId, duration_ms: clock.steadyMs() - startedAtMs }, "a model was loaded");
    void this.#watch(loaded, ended.signal);
    return loaded;
  }

  /** Until it ends: by itself, or because it does not answer any more. */
  async #watch(loaded: Loaded, ended: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    const { modelId } = this.#servable;
    let unhealthy = 0;
    try {
      for (;;) {
        await pause(clock, HEALTH_EVERY_MS, ended);
        unhealthy = (await isHealthy(loaded.target, ended)) ? 0 : unhealthy + 1;
        if (unhealthy < UNHEALTHY_MAX) continue;
        log.warn({ model_id: modelId }, "a model's server does not answer: it is started again");
        await loaded.daemon.end(END_GRACE_MS);
      }
    } catch (error) {
      if (this.#loaded !== loaded) return;
      this.#loaded = null;
      this.#failed(error);
      this.#loadAgain();
    }
  }

  /** So that the next request finds it loaded. */
  #loadAgain(): void {
    if (!this.#isWanted || this.#failures >= FAILURES_TOLD) return;
    pause(this.#parts.clock, this.#notBeforeMs - this.#parts.clock.steadyMs(), this.#closing.signal)
      .then(() => this.#load())
      .catch(() => this.#loadAgain());
  }

  async #unload(): Promise<void> {
    const loaded = this.#loaded;
    if (loaded === null) return;
    this.#loaded = null;
    await loaded.daemon.end(END_GRACE_MS);
    this.#parts.log.info({ model_id: this.#servable.modelId }, "a model was unloaded");
  }

  #failed(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    const backoffMs = Math.min(BACKOFF_FIRST_MS * 2 ** this.#failures, BACKOFF_LAST_MS);
    this.#failures++;
    this.#notBeforeMs = this.#parts.clock.steadyMs() + backoffMs;
    this.#lastFailure = error instanceof LlmError ? error : null;
    const { modelId } = this.#servable;
    this.#parts.log.warn(
      { model_id: modelId, error: (error as Error).message },
      "a model's server has ended",
    );
  }

  #toldAgain(waitMs: number): LlmError {
    const { status, code, message } = this.#lastFailure!;
    return new LlmError(status, code, message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
  }

  #notStarted(error: unknown): LlmError {
    const { name, install } = programOf[this.#servable.format];
    const { code } = error as NodeJS.ErrnoException;
    const what = this.#servable.format === "gguf" ? "a GGUF file" : "safetensors";
    if (code === "ENOENT")
      return new LlmError(
        503,
        "server_not_installed",
        this.#text(`is ${what}, and there is no ${name} on the PATH. ${install}`),
      );
    return new LlmError(
      503,
      "model_failed",
      this.#text(`cannot be served: ${name} was not started (${code ?? error})`),
    );
  }

  #ended(exit: DaemonExit | null, printed: Printed): LlmError {
    const how =
      exit === null
        ? "ended"
        : exit.code === null
          ? `was ended by ${exit.signal}`
          : `ended with exit code ${exit.code}`;
    const said = printed.last === "" ? "It printed nothing" : `It said at last: ${printed.last}`;
    const { name } = programOf[this.#servable.format];
    return new LlmError(503, "model_failed", this.#text(`is not served: ${name} ${how}. ${said}`));
  }

  #text(what: string): string {
    return `Model "${this.#servable.modelId}" ${what}.`;
  }
}

/** What a server prints, in the log up to a number of lines; without its key. */
class Printed {
  readonly #tell: (line: string) => void;
  readonly #key: string;
  readonly #last: string[] = [];
  #told = 0;

  constructor(tell: (line: string) => void, key: string) {
    this.#tell = tell;
    this.#key = key;
  }

  readonly line = (given: string): void => {
    const line = given.replaceAll(this.#key, "[redacted]");
    if (line.trim() === "") return;
    this.#last.push(line.trim());
    if (this.#last.length > LAST_LINES) this.#last.shift();
    if (++this.#told <= LOG_LINES_MAX) this.#tell(line);
  };

  get last(): string {
    return this.#last.join(" | ").slice(-1_000);
  }
}

function isHealthy({ baseUrl, apiKey }: Target, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(new URL("/health", baseUrl), {
      agent: false,
      signal,
      timeout: HEALTH_TIMEOUT_MS,
      headers: { authorization: `Bearer ${apiKey}` },
    });
    asked.once("response", (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(false));
    asked.end();
  });
}

/** Another program may take it before the server does, which then ends, and is started again with another one. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Gives up the wait, and not what is waited for. */
function abortable<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
