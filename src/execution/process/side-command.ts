// Side commands: short programs beside the tasks of jobs, such as validators, checks of services and what prepares a
// blueprint's resources. Their owner waits for them; nothing of them is kept.
//
// - Whatever happens, no process of the command is left when the promise resolves, and a killed runtime's successor
//   ends what its predecessor left (process-trees.ts).
// - What it prints is bounded: of stdout and of stderr the end is kept, where reports and reasons stand.
// - Its environment is built from nothing, as that of workers is (`inheritedFrom`).

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../../engine/ports.ts";
import { Tail } from "../output/lines.ts";
import { withMark } from "./process-marks.ts";
import { type ProcessTree, type ProcessTrees, signalGroup } from "./process-trees.ts";

/** Of each of the two; what comes back may have been cut when it is that long. */
export const OUTPUT_BYTES_MAX = 256 * 1024;
/** Between SIGTERM and SIGKILL: short enough that a validator is ended, and named, within its check's time. */
const GRACE_MS = 1_000;

const SANDBOX_REQUIRED = "SVC_REQUIRE_SANDBOX is true, and it would run without a sandbox";

export interface SideCommand {
  /** The program and its arguments; no shell. */
  readonly command: readonly string[];
  /** The folder it starts in. */
  readonly folder: string;
  /** Beside PATH, HOME, LANG, TZ and TMPDIR. */
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export type SideCommandEnd =
  | {
      readonly kind: "exited";
      /** Null when a signal ended it. */
      readonly code: number | null;
      readonly stdout: string;
      readonly stderr: string;
    }
  | { readonly kind: "timed_out"; readonly stdout: string; readonly stderr: string }
  /** The caller, or the end of the program, stopped it. */
  | { readonly kind: "aborted" }
  | { readonly kind: "not_started"; readonly reason: string };

export interface SideCommandsParts {
  readonly trees: ProcessTrees;
  readonly clock: Clock;
  /** The runtime's own environment. */
  readonly runtimeEnv: Environment;
  /** Whether commands run in sandboxes only, which these do not; absent: no. */
  readonly requireSandbox?: () => boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

const INHERITED = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"] as const;

/** What every command has of the runtime's own environment. */
export function inheritedFrom(runtimeEnv: Environment): Record<string, string> {
  return valuesOf(INHERITED, runtimeEnv);
}

/** Of these variables, those that are set. */
export function valuesOf(names: readonly string[], runtimeEnv: Environment): Record<string, string> {
  const given = names.map((name) => [name, runtimeEnv[name]] as const);
  return Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Runs a side command; see SideCommands.run. */
export type RunSideCommand = (command: SideCommand, signal?: AbortSignal) => Promise<SideCommandEnd>;

export class SideCommands {
  readonly #parts: SideCommandsParts;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<SideCommandEnd>>();

  constructor(parts: SideCommandsParts) {
    this.#parts = parts;
  }

  /** Runs a command to its end. Never throws; may run beside any number of others. */
  readonly run: RunSideCommand = (command, signal) => {
    const running = this.#run(command, signal).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  };

  /** Ends all of them; those asked for from now on are aborted. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  async #run(command: SideCommand, given: AbortSignal | undefined): Promise<SideCommandEnd> {
    const signal = AbortSignal.any([this.#stopping.signal, ...(given === undefined ? [] : [given])]);
    if (signal.aborted) return { kind: "aborted" };
    if (this.#parts.requireSandbox?.()) return { kind: "not_started", reason: SANDBOX_REQUIRED };
    const mark = this.#parts.trees.newMark();
    let child: ChildProcess;
    try {
      child = this.#spawn(command, mark);
    } catch (error) {
      // Such as E2BIG: an environment that is too large is told at once.
      this.#parts.trees.ended(mark, null);
      return { kind: "not_started", reason: (error as NodeJS.ErrnoException).code ?? String(error) };
    }
    const closed = once(child, "close");
    const startFailure = await started(child);
    if (startFailure !== null || child.pid === undefined) {
      this.#parts.trees.ended(mark, null);
      closed.catch(() => {});
      return { kind: "not_started", reason: startFailure ?? "it has no process id" };
    }
    const tree = this.#parts.trees.started(mark, child.pid, null);
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    const ending = this.#endInTime(tree, command.timeoutMs, signal);
    // The leader's exit counts: a descendant that keeps the pipes open does not hold its owner up.
    await Promise.race([closed, once(child, "exit")]);
    const reason = ending.settle();
    await this.#parts.trees.kill(tree);
    // Where marks cannot be set, what left the group may still hold the pipes.
    const cancel = this.#parts.clock.after(GRACE_MS, () => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
    await closed;
    cancel();
    this.#parts.trees.ended(mark, tree);
    const output = { stdout: stdout.text(), stderr: stderr.text() };
    if (reason === "aborted") return { kind: "aborted" };
    if (reason === "timed_out") return { kind: "timed_out", ...output };
    return { kind: "exited", code: child.exitCode, ...output };
  }

  #spawn({ command, folder, environment }: SideCommand, mark: string): ChildProcess {
    const [file = "", ...args] = command;
    return withMark(mark, () =>
      spawn(file, args, {
        cwd: folder,
        env: { ...inheritedFrom(this.#parts.runtimeEnv), ...environment },
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      }),
    );
  }

  /** Ends the command when its time is over or its owner no longer wants it. */
  #endInTime(tree: ProcessTree, timeoutMs: number, signal: AbortSignal) {
    const { clock } = this.#parts;
    let reason: "timed_out" | "aborted" | null = null;
    let cancelKill = () => {};
    const end = (why: "timed_out" | "aborted") => {
      if (reason !== null) return;
      reason = why;
      signalGroup(tree.pid, "SIGTERM");
      cancelKill = clock.after(GRACE_MS, () => signalGroup(tree.pid, "SIGKILL"));
    };
    const onAbort = () => end("aborted");
    const cancelTimeout = clock.after(timeoutMs, () => end("timed_out"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    return {
      settle(): "timed_out" | "aborted" | null {
        cancelTimeout();
        cancelKill();
        signal.removeEventListener("abort", onAbort);
        return reason;
      },
    };
  }
}

/** @returns why it was not started; null when it was */
function started(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(null));
    child.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

/** Keeps the end of what comes; the rest is read and dropped. */
function collect(stream: NodeJS.ReadableStream | null): Tail {
  const tail = new Tail(OUTPUT_BYTES_MAX);
  stream?.on("data", (chunk: Buffer) => tail.push(chunk));
  return tail;
}
