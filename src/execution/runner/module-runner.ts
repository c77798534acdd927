// Modules: one attempt is one call of a bundle's handle(message, context) in a worker thread, with a deadline.
//
// - A module cannot hold up the runtime: it runs beside the event loop, and a call past its deadline is ended
//   with its thread.
// - What comes back is JSON of the documented shape, checked whole before any of it counts.

import { realpath } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pathToFileURL } from "node:url";
import type { ModuleConfig } from "../../engine/graph.ts";
import { isObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import type { Clock } from "../../engine/ports.ts";
import { noActions, type TaskOutcome, type TaskStart, type WorkerActions } from "../../engine/task-port.ts";
import { isInside, joinInside } from "../../lib/paths.ts";
import { AttemptOutput, redactActions } from "../output/attempt-output.ts";
import { type Redactor, Redactors, secretsOfModule } from "../output/redaction.ts";
import { checkEmit, checkList, listed, oversized, own } from "../output/result.ts";
import {
  type AttemptControl,
  type AttemptReport,
  armTimeout,
  failed,
  interrupted,
  type OpenedTask,
} from "./attempt.ts";
import { failureOfPayload } from "./command-failure.ts";
import { ModulePool, type ModuleThread } from "./module-pool.ts";
import type { ThreadReply, ThreadTask } from "./module-thread.ts";
import type { PayloadOf } from "./paths.ts";
import { contextOf } from "./worker-contract.ts";

const THREADS_MAX = 4;
/** All bodies of one result together. */
const RETURNED_CHARS_MAX = 16 * limits.messageBodyBytesMax;
const PREVIEW_CHARS = 1_500;

export interface ModuleRunnerOptions {
  readonly clock: Clock;
  readonly payloadOf: PayloadOf;
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
    const found = await this.#find(task, config);
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
        const seconds = (task.timeoutMs ?? 0) / 1_000;
        return failed(
          "module.timeout",
          `handle() of ${config.module} was ended after ${seconds} s, its timeout.`,
        );
      }
      if (reply.kind === "returned" || reply.kind === "threw" || reply.kind === "unserialisable") {
        this.#pool.giveBack(thread);
      } else await this.#pool.discard(thread);
      const outcome = outcomeOf(reply, config, redactor);
      if (outcome.kind !== "failed") return outcome;
      return { ...outcome, message: redactor.text(withoutPlaces(outcome.message, found.root)) };
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

  async #find(task: TaskStart, config: ModuleConfig): Promise<Found> {
    const payload = await this.#options.payloadOf(task).catch((error: unknown) => {
      throw failureOfPayload(error);
    });
    if (payload === null) {
      return { kind: "missing", reason: `The module ${config.module} needs a bundle, and the job has none.` };
    }
    const named = joinInside(payload, config.module);
    if (named === null)
      return { kind: "missing", reason: `The module ${config.module} leaves the payload folder.` };
    try {
      const [root, path] = await Promise.all([realpath(payload), realpath(named)]);
      if (isInside(root, path)) return { kind: "found", root, path };
      return {
        kind: "missing",
        reason: `The module ${config.module} leaves the payload folder through a symlink.`,
      };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return { kind: "missing", reason: `The module ${config.module} is not in the payload (${code}).` };
    }
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

type Found =
  | { readonly kind: "found"; readonly root: string; readonly path: string }
  | { readonly kind: "missing"; readonly reason: string };

type CallReply = ThreadReply | { readonly kind: "crashed" | "out_of_memory"; readonly reason: string };

const FRAME_OUTSIDE = /^\s+at .*(?:file:\/\/|node:|[( ]\/)/;

/** Everyone may read a failure: it names the payload's files, and no path of this machine. */
function withoutPlaces(text: string, root: string): string {
  const inPayload = text.replaceAll(`${pathToFileURL(root).href}/`, "").replaceAll(`${root}/`, "");
  return inPayload
    .split("\n")
    .filter((line) => !FRAME_OUTSIDE.test(line))
    .join("\n");
}

/** Calls handle() in the thread; `ended` when the attempt was asked to end first. */
function call(
  { worker }: ModuleThread,
  task: TaskStart,
  config: ModuleConfig,
  control: AttemptControl,
): Promise<CallReply | "ended"> {
  return new Promise<CallReply | "ended">((resolve) => {
    const onMessage = (reply: ThreadReply) => settle(reply);
    const onError = (error: NodeJS.ErrnoException) => {
      const kind = error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "out_of_memory" : "crashed";
      settle({ kind, reason: `${error.name}: ${error.message}` });
    };
    const onExit = (code: number) =>
      settle({ kind: "crashed", reason: `The module ended its thread with exit code ${code}.` });
    const settle = (reply: CallReply | "ended") => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      resolve(reply);
    };
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
    control.onEnd(() => settle("ended"));
    const context = { ...contextOf(task), state: task.agentState, config: config.config };
    const request: ThreadTask = { message: task.envelope, context };
    worker.postMessage(request);
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

function outcomeOf(reply: CallReply, config: ModuleConfig, redactor: Redactor): TaskOutcome {
  switch (reply.kind) {
    case "load_failed":
      return failed("module.load_failed", `${config.module} could not be loaded: ${reply.reason}`);
    case "threw":
      return failed("module.threw", `handle() of ${config.module} threw ${reply.reason}`);
    case "crashed":
      return failed("module.threw", `The thread of ${config.module} crashed. ${reply.reason}`);
    case "out_of_memory":
      return failed("module.out_of_memory", `The thread of ${config.module} was ended. ${reply.reason}`);
    case "unserialisable":
      return invalid(config, `it is no JSON. ${reply.reason}`);
    case "returned":
      return outcomeOfReturned(reply.json, config, redactor);
    default:
      return reply satisfies never;
  }
}

function outcomeOfReturned(json: string, config: ModuleConfig, redactor: Redactor): TaskOutcome {
  if (json.length > RETURNED_CHARS_MAX) {
    return failed(
      "message.body_too_large",
      `handle() of ${config.module} returned ${json.length} characters of JSON.`,
    );
  }
  const parsed = parseJson(json, limits.jsonDepthMax);
  if (parsed === null) return invalid(config, "what it returned nests too deep.");
  const { value } = parsed;
  if (value === null) return succeeded(noActions);
  if (!isObject(value)) {
    return invalid(
      config,
      `it must return nothing or an object, not ${redactor.text(json).slice(0, PREVIEW_CHARS)}`,
    );
  }
  const problems: string[] = [];
  for (const key of Object.keys(value)) {
    if (!["emit", "state", "complete"].includes(key))
      problems.push(`"${key}" is unknown; known are emit, state and complete`);
  }
  const emits = checkList(value, "emit", limits.workerEmitsMax, checkEmit, problems);
  if (problems.length > 0) return invalid(config, listed(problems));
  const actions = {
    ...noActions,
    emits,
    nextState: own(value, "state"),
    completeRun: own(value, "complete"),
  };
  const tooLarge = oversized(actions);
  return tooLarge === null
    ? succeeded(redactActions(actions, redactor))
    : failed("message.body_too_large", tooLarge);
}

function succeeded(actions: WorkerActions): TaskOutcome {
  return { kind: "succeeded", actions, command: null, artifacts: [], observation: null satisfies JsonValue };
}

function invalid(config: ModuleConfig, problem: string): TaskOutcome {
  return failed("module.invalid_output", `What handle() of ${config.module} returned is wrong: ${problem}`);
}
