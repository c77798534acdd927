// What becomes of a call of a module's handle(), in a thread or in a process: JSON of the documented shape, checked whole before
// any of it counts.

import { realpath } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { isObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import { noActions, type TaskOutcome, type TaskStart, type WorkerActions } from "../../engine/task-port.ts";
import { isInside, joinInside } from "../../lib/paths.ts";
import { redactActions } from "../output/attempt-output.ts";
import type { Redactor } from "../output/redaction.ts";
import { checkEmit, checkList, listed, oversized, own } from "../output/result.ts";
import { failed } from "./attempt.ts";
import { failureOfPayload } from "./command-failure.ts";
import type { PayloadOf } from "./paths.ts";

/** All bodies of one result together. */
export const RETURNED_CHARS_MAX = 16 * limits.messageBodyBytesMax;
const PREVIEW_CHARS = 1_500;

export const hostReplyKinds = ["returned", "unserialisable", "threw", "load_failed", "crashed"] as const;

/** What module-host.mjs answers: JSON if handle() returned, else the reason. */
export interface HostReply {
  readonly kind: (typeof hostReplyKinds)[number];
  readonly text: string;
}

export type CallReply = HostReply | { readonly kind: "out_of_memory"; readonly text: string };

/** The call that a reply is of. */
export interface Called {
  /** As the manifest names it. */
  readonly module: string;
  /** What ran it, for people. */
  readonly where: "thread" | "process";
  /** Where the module's files were. */
  readonly root: string;
  readonly redactor: Redactor;
}

export type FoundModule =
  | { readonly kind: "found"; readonly root: string; readonly path: string }
  | { readonly kind: "missing"; readonly reason: string };

/** Looks for a module in the job's payload. @throws AttemptFailure when that cannot be had */
export async function findModule(
  task: TaskStart,
  module: string,
  payloadOf: PayloadOf,
): Promise<FoundModule> {
  const missing = (reason: string) =>
    ({ kind: "missing", reason: `The module ${module} ${reason}` }) as const;
  const payload = await payloadOf(task).catch((error: unknown) => {
    throw failureOfPayload(error);
  });
  if (payload === null) return missing("needs a bundle, and the job has none.");
  const named = joinInside(payload, module);
  if (named === null) return missing("leaves the payload folder.");
  try {
    const [root, path] = await Promise.all([realpath(payload), realpath(named)]);
    if (isInside(root, path)) return { kind: "found", root, path };
    return missing("leaves the payload folder through a symlink.");
  } catch (error) {
    return missing(`is not in the payload (${(error as NodeJS.ErrnoException).code}).`);
  }
}

export function timeoutOf(module: string, timeoutMs: number | null): TaskOutcome {
  const seconds = (timeoutMs ?? 0) / 1_000;
  return failed("module.timeout", `handle() of ${module} was ended after ${seconds} s, its timeout.`);
}

export function outcomeOfReply(reply: CallReply, called: Called): TaskOutcome {
  const outcome = read(reply, called);
  if (outcome.kind !== "failed") return outcome;
  return { ...outcome, message: called.redactor.text(withoutPlaces(outcome.message, called.root)) };
}

function read({ kind, text }: CallReply, { module, where, redactor }: Called): TaskOutcome {
  switch (kind) {
    case "load_failed":
      return failed("module.load_failed", `${module} could not be loaded: ${text}`);
    case "threw":
      return failed("module.threw", `handle() of ${module} threw ${text}`);
    case "crashed":
      return failed("module.threw", `The ${where} of ${module} crashed. ${text}`);
    case "out_of_memory":
      return failed("module.out_of_memory", `The ${where} of ${module} was ended. ${text}`);
    case "unserialisable":
      return invalid(module, `it is no JSON. ${text}`);
    case "returned":
      return outcomeOfReturned(text, module, redactor);
    default:
      return kind satisfies never;
  }
}

const FRAME_OUTSIDE = /^\s+at .*(?:file:\/\/|node:|[( ]\/)/;

/** Everyone may read a failure: it names the payload's files, and no path of this machine. */
function withoutPlaces(text: string, root: string): string {
  const inPayload = text.replaceAll(`${pathToFileURL(root).href}/`, "").replaceAll(`${root}/`, "");
  return inPayload
    .split("\n")
    .filter((line) => !FRAME_OUTSIDE.test(line))
    .join("\n");
}

function outcomeOfReturned(json: string, module: string, redactor: Redactor): TaskOutcome {
  if (json.length > RETURNED_CHARS_MAX) {
    return failed(
      "message.body_too_large",
      `handle() of ${module} returned ${json.length} characters of JSON.`,
    );
  }
  const parsed = parseJson(json, limits.jsonDepthMax);
  if (parsed === null) return invalid(module, "what it returned nests too deep.");
  const { value } = parsed;
  if (value === null) return succeeded(noActions);
  if (!isObject(value)) {
    return invalid(
      module,
      `it must return nothing or an object, not ${redactor.text(json).slice(0, PREVIEW_CHARS)}`,
    );
  }
  const problems: string[] = [];
  for (const key of Object.keys(value)) {
    if (!["emit", "state", "complete"].includes(key))
      problems.push(`"${key}" is unknown; known are emit, state and complete`);
  }
  const emits = checkList(value, "emit", limits.workerEmitsMax, checkEmit, problems);
  if (problems.length > 0) return invalid(module, listed(problems));
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

function invalid(module: string, problem: string): TaskOutcome {
  return failed("module.invalid_output", `What handle() of ${module} returned is wrong: ${problem}`);
}
