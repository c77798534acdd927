// A module in a process of its own: the command that calls it, and what the end of that means.
//
// - Nothing is said while it runs, so nothing can be forged, interrupted or held up: the process reads its message from the
//   attempt's files, and leaves a reply in one, which is read once no process is left.
// - The reply is the module's, also if something that it has started wrote it, and counts for no more than what handle() may return.

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExecutorConfig, ModuleCall } from "../../engine/graph.ts";
import type { CommandResult, TaskOutcome, TaskStart } from "../../engine/task-port.ts";
import { keptAmounts } from "../sandbox/config.ts";
import { inside } from "../sandbox/places.ts";
import { failed } from "./attempt.ts";
import type { Places } from "./attempt-places.ts";
import { type CommandEnd, failureOfEnd, lastLineOf } from "./command-failure.ts";
import {
  type Called,
  type CallReply,
  hostReplyKinds,
  outcomeOfReply,
  RETURNED_CHARS_MAX,
  timeoutOf,
} from "./module-reply.ts";
import { commandWords, type WorkerPlaces } from "./worker-contract.ts";

/** The program's file on the machine. */
export const moduleHostFile = fileURLToPath(new URL("./module-host.mjs", import.meta.url));

const MiB = 1024 ** 2;
/** What a module in a thread may have. */
const HEAP_MB = 512;
const REPLY_FILE = "reply";
/** The first line of a reply. */
const KIND_CHARS_MAX = 20;
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** The program to start and its arguments: those of the command, or those that call the module. */
export const startWords = (config: ExecutorConfig, task: TaskStart, places: WorkerPlaces) =>
  config.module === null ? commandWords(config, task, places) : moduleWords(config, config.module, places);

function moduleWords(config: ExecutorConfig, module: ModuleCall, places: WorkerPlaces) {
  const memoryBytes = keptAmounts(config)?.memoryBytes || HEAP_MB * MiB;
  const { node, workspace, files } = places;
  return {
    file: node,
    args: [
      `--max-old-space-size=${Math.ceil(memoryBytes / MiB)}`,
      inside.moduleHost,
      join(workspace, module.path),
      ...[files.message, files.context, join(files.output, REPLY_FILE)],
    ],
  };
}

/** @param end of one that was not stopped */
export async function outcomeOfModule(
  end: CommandEnd,
  called: Called,
  places: Pick<Places, "attempt" | "files">,
): Promise<TaskOutcome> {
  const outcome = await outcomeOfEnd(end, called, places);
  return outcome.kind === "interrupted" ? outcome : { ...outcome, command: end.command };
}

async function outcomeOfEnd(
  end: CommandEnd,
  called: Called,
  places: Pick<Places, "attempt" | "files">,
): Promise<TaskOutcome> {
  const { command, reason, memoryExceeded } = end;
  if (reason === "timeout") return timeoutOf(called.module, end.timeoutMs);
  const failure = reason === null && memoryExceeded === null ? null : failureOfEnd(end);
  if (failure !== null) return failed(failure.code, called.redactor.text(failure.message));
  if (command.exitCode !== 0) return outcomeOfReply(replyOfCrash(command), called);
  const reply = await readReply(places);
  if (reply === "too_large")
    return failed("message.body_too_large", `handle() of ${called.module} returned too much JSON.`);
  return outcomeOfReply(reply ?? { kind: "crashed", text: "It ended before handle() had returned." }, called);
}

function replyOfCrash({ exitCode, signal, stderr }: CommandResult): CallReply {
  if (stderr.includes("JavaScript heap out of memory"))
    return { kind: "out_of_memory", text: "Its heap was full." };
  const how = signal === null ? `exit code ${exitCode}` : `signal ${signal}`;
  return { kind: "crashed", text: `It ended with ${how}.${lastLineOf(stderr)}` };
}

/** @returns null when there is none */
async function readReply({
  attempt,
  files,
}: Pick<Places, "attempt" | "files">): Promise<CallReply | "too_large" | null> {
  using output = attempt.folder(basename(files.output));
  const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  const opened = await open(output.path(REPLY_FILE), flags).catch(() => null);
  if (opened === null) return null;
  await using file = opened;
  const found = await file.stat();
  if (!found.isFile()) return null;
  if (found.size > RETURNED_CHARS_MAX + KIND_CHARS_MAX) return "too_large";
  const text = await file.readFile("utf8");
  const end = text.indexOf("\n");
  const kind = hostReplyKinds.find((known) => known === text.slice(0, end));
  return kind === undefined ? null : { kind, text: text.slice(end + 1) };
}
