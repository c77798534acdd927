// Worker threads for modules: one task at a time each, kept for the next task of the same module.
//
// - At most `threadsMax` threads exist; tasks beyond wait in order.
// - A thread that failed, or whose task was ended, is never used again.

import { Worker } from "node:worker_threads";
import { Fifo } from "../../engine/fifo.ts";
import type { Clock } from "../../engine/ports.ts";

const IDLE_MS = 30_000;
const HEAP_MB_MAX = 512;

export class ModuleThread {
  readonly path: string;
  readonly worker: Worker;
  cancelIdle: () => void = () => {};

  constructor(path: string) {
    this.path = path;
    this.worker = new Worker(new URL("./module-host.mjs", import.meta.url), {
      workerData: { path },
      env: {},
      argv: [],
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    });
    // A thread may fail when nobody listens, between two tasks; its exit follows.
    this.worker.on("error", () => {});
  }
}

/** A task that waits for a thread. `start` is called once, unless `takenBack` is set before. */
export interface ThreadRequest {
  readonly path: string;
  readonly start: (thread: ModuleThread) => void;
  takenBack: boolean;
}

export class ModulePool {
  readonly #clock: Clock;
  readonly #threadsMax: number;
  /** Idle threads, the longest idle first. */
  readonly #idle = new Set<ModuleThread>();
  readonly #requests = new Fifo<ThreadRequest>();
  readonly #ending = new Set<Promise<unknown>>();
  #threads = 0;

  constructor(clock: Clock, threadsMax: number) {
    this.#clock = clock;
    this.#threadsMax = threadsMax;
  }

  request(request: ThreadRequest): void {
    this.#requests.push(request);
    this.#serve();
  }

  /** Gives a thread back for the next task. */
  giveBack(thread: ModuleThread): void {
    this.#idle.add(thread);
    thread.cancelIdle = this.#clock.after(IDLE_MS, () => this.#end(thread));
    this.#serve();
  }

  /** Ends a thread that is in use; resolves when it is gone. */
  async discard(thread: ModuleThread): Promise<void> {
    await this.#end(thread);
  }

  /** Ends all idle threads and waits for those that are ending. */
  async close(): Promise<void> {
    for (const thread of this.#idle) void this.#end(thread);
    await Promise.all(this.#ending);
  }

  #serve(): void {
    for (;;) {
      const request = this.#requests.first();
      if (request === undefined) return;
      const thread = request.takenBack ? null : this.#threadFor(request.path);
      if (thread === undefined) return;
      this.#requests.shift();
      if (thread !== null) request.start(thread);
    }
  }

  /** An idle thread of the module, or a new one, in the place of another module's if need be. */
  #threadFor(path: string): ModuleThread | undefined {
    for (const thread of this.#idle) {
      if (thread.path !== path) continue;
      thread.cancelIdle();
      this.#idle.delete(thread);
      return thread;
    }
    if (this.#threads >= this.#threadsMax) {
      const [other] = this.#idle;
      // The new thread starts when the other one is gone (`#end` serves the queue again).
      if (other !== undefined) void this.#end(other);
      return undefined;
    }
    this.#threads++;
    const thread = new ModuleThread(path);
    thread.worker.once("exit", () => {
      if (this.#idle.has(thread)) void this.#end(thread);
    });
    return thread;
  }

  async #end(thread: ModuleThread): Promise<void> {
    thread.cancelIdle();
    this.#idle.delete(thread);
    const ended = thread.worker.terminate();
    this.#ending.add(ended);
    await ended;
    this.#ending.delete(ended);
    this.#threads--;
    this.#serve();
  }
}
