// Modules in threads: one attempt is one call of a bundle's handle(message, context) in a worker thread, with a deadline.
//
// - A module cannot hold up the runtime: it runs beside the event loop, and a call past its deadline is ended
//   with its thread.

import type { Readable } from "node:stream";
import type { ModuleConfig } from "../../engine/graph.ts";
import type { Clock } from "../../engine/ports.ts";
import type { TaskOutcome, TaskStart } from "../../engine/task-port.ts";
import { AttemptOutput } from "../output/attempt-output.ts";
import { Redactors, secretsOfModule } from "../output/redaction.ts";
import {
  type AttemptControl,
  type AttemptReport,
  armTimeout,
  failed,
  interrupted,
  type OpenedTask,
} from "./attempt.ts";
import { ModulePool, type ModuleThread } from "./module-pool.ts";
import { type CallReply, findModule, type HostReply, outcomeOfReply, timeoutOf } from "./module-reply.ts";
import type { PayloadOf } from "./paths.ts";
import { moduleContextOf } from "./worker-contract.ts";

const THREADS_MAX = 4;

export interface ModuleRunnerOptions {
  readonly clock: Clock;
  readonly payloadOf: PayloadOf;
  /** Whether nothing runs without a sandbox. */
  readonly requireSandbox: () => boolean;
  /** Those of the runtime itself, which no worker may show. */
  readonly runtimeSecrets: readonly string[];
}

export class ModuleRunner {
  readonly #options: ModuleRunnerOptions;
  readonly #pool: ModulePool;
  readonly #redactors = new Redactors();

  constructor(options: ModuleRunnerOptions) {
    this.#options = options;
    this.#pool = new ModulePool(options.clock, THREADS_MAX);
  }

  async run(
    task: OpenedTask,
    config: ModuleConfig,
    control: AttemptControl,
    report: AttemptReport,
  ): Promise<TaskOutcome> {
    if (this.#options.requireSandbox())
      return failed(
        "sandbox.required",
        "SVC_REQUIRE_SANDBOX is true: modules run in processes of their own only.",
      );
    const found = await findModule(task, config.module, this.#options.payloadOf);
    if (found.kind === "missing") return failed("module.load_failed", found.reason);
    const { runtimeSecrets } = this.#options;
    const secrets = secretsOfModule(config.config, [...task.secrets, ...runtimeSecrets]);
    const redactor = await this.#redactors.made(secrets);
    const thread = await this.#thread(found.path, control);
    if (thread === null) return interrupted(control.reason ?? "stopped");
    const disarm = armTimeout(this.#options.clock, task, control);
    const output = new AttemptOutput({ attempt: task.ref.attempt, longLived: false, redactor, report });
    const release = printInto(thread, output, report);
    try {
      const reply = await call(thread, task, config, control);
      if (reply === "ended") {
        await this.#pool.discard(thread);
        if (control.reason !== null && control.reason !== "timeout") return interrupted(control.reason);
        return timeoutOf(config.module, task.timeoutMs);
      }
      if (reply.kind === "returned" || reply.kind === "threw" || reply.kind === "unserialisable") {
        this.#pool.giveBack(thread);
      } else await this.#pool.discard(thread);
      const called = { module: config.module, where: "thread", root: found.root, redactor } as const;
      return outcomeOfReply(reply, called);
    } finally {
      disarm();
      release();
      output.flush();
    }
  }

  /** Ends all threads; no attempt may be running. */
  async close(): Promise<void> {
    await this.#pool.close();
  }

  /** Waits for a thread; null when the attempt was asked to end before there was one. */
  #thread(path: string, control: AttemptControl): Promise<ModuleThread | null> {
    return new Promise((resolve) => {
      const request = { path, start: resolve, takenBack: false };
      control.onEnd(() => {
        request.takenBack = true;
        resolve(null);
      });
      if (!request.takenBack) this.#pool.request(request);
    });
  }
}

/** Calls handle() in the thread; `ended` when the attempt was asked to end first. */
function call(
  { worker }: ModuleThread,
  task: TaskStart,
  config: ModuleConfig,
  control: AttemptControl,
): Promise<CallReply | "ended"> {
  return new Promise<CallReply | "ended">((resolve) => {
    const onMessage = (reply: HostReply) => settle(reply);
    const onError = (error: NodeJS.ErrnoException) => {
      const kind = error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "out_of_memory" : "crashed";
      settle({ kind, text: `${error.name}: ${error.message}` });
    };
    const onExit = (code: number) =>
      settle({ kind: "crashed", text: `The module ended its thread with exit code ${code}.` });
    const settle = (reply: CallReply | "ended") => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      resolve(reply);
    };
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
    control.onEnd(() => settle("ended"));
    worker.postMessage({ message: task.envelope, context: moduleContextOf(task, config.config) });
  });
}

/** Turns what the thread prints into log events for as long as the attempt lasts. */
function printInto({ worker }: ModuleThread, output: AttemptOutput, report: AttemptReport): () => void {
  const read = (stream: Readable, sink: (chunk: Buffer) => void) => {
    const listener = (chunk: Buffer) => {
      sink(chunk);
      const room = report.backpressure();
      if (room === null) return;
      stream.pause();
      void room.finally(() => stream.resume());
    };
    stream.on("data", listener);
    return () => stream.off("data", listener);
  };
  const releases = [
    read(worker.stdout, (chunk) => output.stdout(chunk)),
    read(worker.stderr, (chunk) => output.stderr(chunk)),
  ];
  return () => {
    for (const release of releases) release();
  };
}
