// Why a command failed, in words that name the command, the cause and the next step.

import { amountsText } from "../../engine/resources.ts";
import type { CommandResult } from "../../engine/task-port.ts";
import { AttemptFailure, type EndReason } from "./attempt.ts";

const nothingAsked = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
const WORD_CHARS_MAX = 80;
const LAST_LINE_CHARS_MAX = 300;

export interface CommandEnd {
  /** The program, or the shell script, without secrets. */
  readonly program: string;
  readonly command: CommandResult;
  /** Why it was asked to end; null when it ended by itself. */
  readonly reason: EndReason | null;
  readonly timeoutMs: number | null;
  /** Why an answer of a person could not be written, when that is the reason. */
  readonly answerError: unknown;
  /** Null when its own memory has sufficed. */
  readonly memoryExceeded: {
    readonly ownBytes: number;
    /** Null where the system had let it hold no more. */
    readonly heldBytes: number | null;
  } | null;
}

/** The failure of a command that ran; null when it succeeded. */
export function failureOfEnd(end: CommandEnd): AttemptFailure | null {
  const { program, command, reason, timeoutMs, answerError, memoryExceeded } = end;
  const name = `The command "${short(program)}"`;
  if (reason === "timeout") {
    const seconds = (timeoutMs ?? 0) / 1_000;
    return new AttemptFailure(
      "executor.timeout",
      `${name} was ended after ${seconds} s, its timeout.${lastStderrLine(command)}`,
    );
  }
  if (reason === "input_unread") {
    return new AttemptFailure(
      "executor.input_unread",
      `${name} was ended: it left its messages on stdin unread.${lastStderrLine(command)}`,
    );
  }
  if (reason === "answer_unwritten") {
    return failureOfSystem("An answer of a person could not be written to SVC_HUMAN_RESPONSES", answerError);
  }
  if (memoryExceeded !== null && (command.signal !== null || command.exitCode !== 0)) {
    const { ownBytes, heldBytes } = memoryExceeded;
    const held =
      heldBytes === null ? "was ended by the system" : `was ended when it held ${memoryText(heldBytes)}`;
    return new AttemptFailure(
      "resource.memory_exceeded",
      `${name} needed more than the ${memoryText(ownBytes)} that are its own, and ${held}.${lastStderrLine(command)}`,
    );
  }
  if (command.signal !== null) {
    return new AttemptFailure(
      "executor.killed_by_signal",
      `${name} was ended by signal ${command.signal}.${lastStderrLine(command)}`,
    );
  }
  if (command.exitCode === 0) return null;
  return new AttemptFailure(
    "executor.exit_nonzero",
    `${name} ended with exit code ${command.exitCode}.${lastStderrLine(command)}`,
  );
}

function memoryText(memoryBytes: number): string {
  return amountsText({ ...nothingAsked, memoryBytes }, ["memoryBytes"]);
}

/** The last line of stderr: mostly the one that says what went wrong. */
function lastStderrLine({ stderr }: CommandResult): string {
  return lastLineOf(stderr);
}

export function lastLineOf(stderr: string): string {
  const last = stderr.trimEnd().split("\n").at(-1)?.trim() ?? "";
  return last === "" ? "" : ` It said: ${last.slice(0, LAST_LINE_CHARS_MAX)}`;
}

function short(word: string): string {
  return word.length <= WORD_CHARS_MAX ? word : `${word.slice(0, WORD_CHARS_MAX - 1)}…`;
}

/** What a machine lacks when these codes come: nothing that the worker could fix. */
const MACHINE_CODES = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EDQUOT", "EROFS", "EIO"]);

const SPAWN_HINTS: Readonly<Record<string, string>> = {
  ENOENT:
    "no such program: it is not on PATH, not in the workdir, or its first line names an interpreter that is missing",
  EACCES: "it may not be executed: run chmod +x on it in the payload, or start it through its interpreter",
  ENOEXEC: "it is no program for this machine, or a script without a #! line",
  E2BIG:
    "its arguments and environment are too large: one value may have 128 KiB, SVC_BLUEPRINT_CONFIG_JSON included",
  ENOTDIR: "a part of its path is no folder",
  ELOOP: "its path is a loop of symlinks",
  ETXTBSY: "somebody still writes to the program's file",
};

/** The failure of a command that could not be started. @param isSandboxed its program is looked for inside, and not yet */
export function failureOfSpawn(
  file: string,
  workdir: string,
  error: unknown,
  isSandboxed = false,
): AttemptFailure {
  const code = codeOf(error);
  if (isSandboxed && code === "ENOENT") return failureOfSandbox(textOf(error));
  if (code !== null && MACHINE_CODES.has(code))
    return failureOfSystem("The command could not be started", error);
  const hint = code === null ? textOf(error) : (SPAWN_HINTS[code] ?? textOf(error));
  const shown = code === null ? "" : ` (${code})`;
  return new AttemptFailure(
    "executor.spawn_failed",
    `The command "${short(file)}" could not be started in ${workdir}: ${hint}${shown}.`,
  );
}

/** The failure of a command whose end nobody saw; nothing of it is left. */
export function failureOfLoss(): AttemptFailure {
  return new AttemptFailure(
    "executor.outcome_lost",
    "How the command ended is not known: the process that had started it was killed. Is the machine out of memory?",
  );
}

/** The failure of a command that was not started, because its sandbox could not be made. */
export function failureOfSandbox(stderr: string): AttemptFailure {
  return new AttemptFailure("sandbox.not_made", `The sandbox could not be made.${lastLineOf(stderr)}`);
}

/** The failure of a command that was not started, because what its sandbox is to reach cannot be reached. */
export function failureOfNetwork(stderr: string): AttemptFailure {
  const said = stderr.trim() || "The sandbox has no network.";
  return new AttemptFailure("sandbox.network_unreachable", said);
}

/** The failure of a command of which nobody knows whether it was started. */
export function failureOfLostStart(): AttemptFailure {
  return new AttemptFailure(
    "executor.outcome_lost",
    "Whether the command was started is not known: the process that starts commands was killed. Is the machine out of memory?",
  );
}

/** Of processes, of open files, of memory: what a machine has too little of when these codes come. */
const EXHAUSTED_CODES = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);

/** The failure of an attempt for which the machine, not the worker, is to blame. */
export function failureOfSystem(what: string, error: unknown): AttemptFailure {
  const code = codeOf(error);
  const described = code === null ? "" : ` (${code}${meaningOf(code)})`;
  const isExhausted = code !== null && EXHAUSTED_CODES.has(code);
  return new AttemptFailure(
    isExhausted ? "resource.exhausted" : "executor.workspace_failed",
    `${what}: ${textOf(error)}${described}.`,
  );
}

/** The failure of an attempt whose job has a payload that this machine could not be given. */
export function failureOfPayload(error: unknown): AttemptFailure {
  return failureOfSystem("The job's payload could not be fetched", error);
}

function meaningOf(code: string): string {
  if (code === "EMFILE" || code === "ENFILE") return ": too many open files; raise the limit (ulimit -n)";
  if (code === "EAGAIN") return ": too many processes; raise the limit (ulimit -u)";
  if (code === "ENOMEM") return ": the machine has no memory left";
  if (code === "ENOSPC" || code === "EDQUOT") return ": the disk is full";
  return "";
}

function codeOf(error: unknown): string | null {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? code : null;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}
