// The result object a worker prints, or a module returns: read, checked and bounded.
//
// - Stdout acts only when all of it, or its last line that is not empty, is a JSON object with a known key.
// - An object that acts is taken whole or not at all; every problem is named at once.
// - What begins as a result object but is too long or no JSON is a problem, not plain output: nothing that a
//   worker asked for is lost silently.

import { isWorkerEventType } from "../../engine/event-types.ts";
import type { FailureCode } from "../../engine/failure-catalogue.ts";
import { isObject, type JsonObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import type { WorkerActions, WorkerEmit } from "../../engine/task-port.ts";

/** A file in the output folder that the worker named as an output. */
export interface NamedOutput {
  readonly path: string;
  readonly title: string | null;
  readonly primary: boolean;
}

export type Reading =
  | { readonly kind: "none" }
  | { readonly kind: "result"; readonly actions: WorkerActions; readonly outputs: readonly NamedOutput[] }
  | { readonly kind: "invalid"; readonly code: FailureCode; readonly message: string };

const KEYS = ["events", "emit_messages", "next_state", "complete_step", "complete_run", "outputs"] as const;
const BEGINS_AS_RESULT = new RegExp(`^\\s*\\{\\s*"(?:${KEYS.join("|")})"\\s*:`);
const PROBLEMS_SHOWN_MAX = 20;

/** Reads the result from the end of a command's stdout; `cut` says that stdout was longer than `tail`. */
export function readStdout(tail: string, cut: boolean): Reading {
  const text = tail.trim();
  const whole = cut ? null : resultObject(text);
  return whole === null ? readLine(text.slice(text.lastIndexOf("\n") + 1)) : check(whole);
}

/** Reads one line: a result object, plain output, or something that was meant as a result and is none. */
export function readLine(line: string): Reading {
  const text = line.trim();
  const object = resultObject(text);
  if (object !== null) return check(object);
  return BEGINS_AS_RESULT.test(text) ? unreadable("is no JSON, or nests too deep") : { kind: "none" };
}

/** The reading of a line that was cut at `bytesMax` bytes. */
export function readCutLine(head: string, bytesMax: number): Reading {
  return BEGINS_AS_RESULT.test(head) ? unreadable(`is longer than ${bytesMax} bytes`) : { kind: "none" };
}

/** The text's JSON object, if it is one and has a key that acts. */
function resultObject(text: string): JsonObject | null {
  if (!text.startsWith("{") || !text.endsWith("}")) return null;
  const value = parseJson(text, limits.jsonDepthMax)?.value;
  return isObject(value) && KEYS.some((key) => Object.hasOwn(value, key)) ? value : null;
}

function unreadable(what: string): Reading {
  return {
    kind: "invalid",
    code: "executor.invalid_output",
    message: `The result object on stdout ${what}.`,
  };
}

function check(object: JsonObject): Reading {
  const problems: string[] = [];
  const actions: WorkerActions = {
    events: checkList(object, "events", limits.workerEventsMax, checkEvent, problems),
    emits: checkList(object, "emit_messages", limits.workerEmitsMax, checkEmit, problems),
    nextState: own(object, "next_state"),
    completeStep: own(object, "complete_step"),
    completeRun: own(object, "complete_run"),
  };
  const outputs = checkList(object, "outputs", limits.artifactsPerAttemptMax, checkOutput, problems);
  if (problems.length > 0) {
    return {
      kind: "invalid",
      code: "executor.invalid_output",
      message: `The result object on stdout is wrong: ${listed(problems)}`,
    };
  }
  const tooLarge = oversized(actions);
  if (tooLarge !== null) return { kind: "invalid", code: "message.body_too_large", message: tooLarge };
  return { kind: "result", actions, outputs };
}

/** Names what in `actions` exceeds the size of a message body; null when nothing does. */
export function oversized(actions: WorkerActions): string | null {
  const bodies: [string, JsonValue | undefined][] = [
    ...actions.emits.map(({ type, body }): [string, JsonValue] => [`The body of message "${type}"`, body]),
    ["The agent's next state", actions.nextState],
    ["The step's result", actions.completeStep],
    ["The run's result", actions.completeRun],
  ];
  for (const [name, body] of bodies) {
    if (body === undefined) continue;
    const bytes = Buffer.byteLength(JSON.stringify(body));
    if (bytes > limits.messageBodyBytesMax) {
      return `${name} has ${bytes} bytes as JSON; the limit is ${limits.messageBodyBytesMax}.`;
    }
  }
  return null;
}

/** Checks one emitted message; problems are named by `where`. */
export function checkEmit(item: JsonValue, where: string, problems: string[]): WorkerEmit {
  const { type, body, to } = isObject(item) ? item : {};
  if (!isObject(item)) problems.push(`${where} must be an object`);
  else {
    if (!isName(type))
      problems.push(`${where}.type must be a string of 1 to ${limits.nameCharsMax} characters`);
    if (body === undefined) problems.push(`${where}.body is missing`);
    if (to !== undefined && to !== null && typeof to !== "string") {
      problems.push(`${where}.to must be an agent id`);
    }
  }
  return {
    type: typeof type === "string" ? type : "",
    body: body ?? null,
    to: typeof to === "string" ? to : null,
  };
}

function checkEvent(
  item: JsonValue,
  where: string,
  problems: string[],
): { type: string; payload: JsonValue } {
  const { type, payload } = isObject(item) ? item : {};
  if (!isObject(item)) problems.push(`${where} must be an object`);
  else if (typeof type !== "string" || !isWorkerEventType(type)) {
    problems.push(
      `${where}.type must be a string of 1 to ${limits.nameCharsMax} characters, and none of the runtime's own types`,
    );
  }
  return { type: typeof type === "string" ? type : "", payload: payload ?? {} };
}

function checkOutput(item: JsonValue, where: string, problems: string[]): NamedOutput {
  const { path, title, primary } = isObject(item) ? item : {};
  if (!isObject(item)) problems.push(`${where} must be an object`);
  else {
    if (typeof path !== "string" || path === "") problems.push(`${where}.path must be a file name`);
    if (title !== undefined && title !== null && typeof title !== "string") {
      problems.push(`${where}.title must be a string`);
    }
    if (primary !== undefined && typeof primary !== "boolean")
      problems.push(`${where}.primary must be a boolean`);
  }
  return {
    path: typeof path === "string" ? path : "",
    title: typeof title === "string" ? title : null,
    primary: primary === true,
  };
}

/** Checks a list under `key` item by item; absent is empty. */
export function checkList<T>(
  object: JsonObject,
  key: string,
  itemsMax: number,
  checkItem: (item: JsonValue, where: string, problems: string[]) => T,
  problems: string[],
): T[] {
  const list = own(object, key);
  if (list === undefined) return [];
  if (!Array.isArray(list)) {
    problems.push(`${key} must be a list`);
    return [];
  }
  if (list.length > itemsMax) {
    problems.push(`${key} has ${list.length} items; the limit is ${itemsMax}`);
    return [];
  }
  return list.map((item: JsonValue, index) => checkItem(item, `${key}[${index}]`, problems));
}

/** A key's value if the object itself has it. */
export function own(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** All problems in one sentence; beyond 20 they are counted. */
export function listed(problems: readonly string[]): string {
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX).join("; ");
  const more = problems.length - PROBLEMS_SHOWN_MAX;
  return more > 0 ? `${shown}; and ${more} more.` : `${shown}.`;
}

function isName(value: JsonValue | undefined): boolean {
  return typeof value === "string" && value.length > 0 && value.length <= limits.nameCharsMax;
}
