// One attempt as all runners see it: how it is asked to end, and where it reports to.

import type { FailureCode } from "../../engine/failure-catalogue.ts";
import { limits } from "../../engine/limits.ts";
import type { Clock } from "../../engine/ports.ts";
import type {
  CommandResult,
  TaskEvent,
  TaskOutcome,
  TaskStart,
  WorkerActions,
} from "../../engine/task-port.ts";
import type { Peaks } from "../process/usage.ts";
import { ResponseFile, WorkerInput } from "./worker-input.ts";

export type EndReason =
  /** It took longer than it may. */
  | "timeout"
  /** The engine asked for it. */
  | "stopped"
  /** The runtime is shutting down. */
  | "draining"
  /** It left too much of its input unread. */
  | "input_unread"
  /** What a person answered could not be written for it. */
  | "answer_unwritten";

/** Asks an attempt to end; the first reason wins. */
export class AttemptControl {
  /** Stdin of a long-lived command. */
  readonly input = new WorkerInput();
  /** Answers of people, for a command. */
  readonly responses = new ResponseFile((error) => {
    this.#answerError = error;
    this.end("answer_unwritten");
  });
  /** What messages brought, after the start, that must not be shown. */
  readonly secrets: string[] = [];
  /** What its command was seen to use so far; null when nobody has looked, and without a command. */
  peaks: () => Promise<Peaks | null> = async () => null;
  #answerError: unknown = null;
  #reason: EndReason | null = null;
  #graceMs = Number.POSITIVE_INFINITY;
  #onEnd: (graceMs: number) => void = () => {};

  get reason(): EndReason | null {
    return this.#reason;
  }

  /** What went wrong when the reason is `answer_unwritten`. */
  get answerError(): unknown {
    return this.#answerError;
  }

  /** @param graceMs how long its processes may take; asking again can only make that shorter */
  end(reason: EndReason, graceMs: number = limits.killGraceMs): void {
    this.#reason ??= reason;
    if (graceMs >= this.#graceMs) return;
    this.#graceMs = graceMs;
    this.#onEnd(graceMs);
  }

  /**
   * Sets what ends the attempt; it is called at once when that was asked for already, and once more when the grace gets
   * shorter.
   */
  onEnd(run: (graceMs: number) => void): void {
    this.#onEnd = run;
    if (this.#reason !== null) run(this.#graceMs);
  }
}

/** A task as a worker gets it: its configuration and its message decrypted, and written for the worker only. */
export interface OpenedTask extends TaskStart {
  /** What they hold that must not be shown. */
  readonly secrets: readonly string[];
}

export interface AttemptReport {
  events(events: readonly TaskEvent[]): void;
  actions(actions: WorkerActions): void;
  backpressure(): Promise<void> | null;
}

/** Ends an attempt early with a failure; the message is for the user. */
export class AttemptFailure extends Error {
  override readonly name = "AttemptFailure";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

export function failed(
  code: FailureCode,
  message: string,
  command: CommandResult | null = null,
): TaskOutcome {
  return { kind: "failed", code, message, command, artifacts: [] };
}

/** The outcome of an attempt that was asked to end and did not fail by that. */
export function interrupted(reason: EndReason): TaskOutcome {
  const why = reason === "draining" ? "The runtime is shutting down." : "The attempt was asked to stop.";
  return { kind: "interrupted", reason: why };
}

/** Asks the attempt to end when its time is over. @returns takes that back */
export function armTimeout(clock: Clock, task: TaskStart, control: AttemptControl): () => void {
  if (task.timeoutMs === null) return () => {};
  return clock.after(task.timeoutMs, () => control.end("timeout"));
}
