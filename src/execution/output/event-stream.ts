// The worker's event stream: lines of JSON into events, and bad lines into warnings.
//
// - A line is {type, payload} or {type, …the payload's fields}; its type is none of the engine's own.
// - A bad line never ends a command: it becomes one warning, and past 20 of them an attempt warns no more.

import type { LogLevel } from "../../engine/event-types.ts";
import { isWorkerEventType } from "../../engine/event-types.ts";
import { isObject, type JsonObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import type { TaskEvent } from "../../engine/task-port.ts";
import type { Redactor } from "./redaction.ts";

const WARNINGS_MAX = 20;
const PREVIEW_CHARS = 200;

/** A log event in the shape that all of an attempt's logs have. */
export function logEvent(
  level: LogLevel,
  stream: "stdout" | "stderr" | "worker",
  message: string,
  attempt: number,
): TaskEvent {
  return { type: "log", payload: { level, stream, message, attempt } };
}

/** Reads one line; a string says what is wrong with it, and shows of the line only what `shown` lets through. */
function readEventLine(line: string, shown: (text: string) => string): TaskEvent | string {
  const parsed = parseJson(line, limits.jsonDepthMax);
  if (parsed === null) return "is no JSON, or nests too deep";
  if (!isObject(parsed.value)) return "is no JSON object";
  const { type, ...rest } = parsed.value;
  if (typeof type !== "string") return "has no type";
  if (!isWorkerEventType(type)) {
    return `has the type ${JSON.stringify(shown(type))}, which is reserved, empty or too long`;
  }
  return { type, payload: rest.payload ?? rest };
}

const TYPE_FIRST = /^\s*\{\s*"type"\s*:\s*"([^"\\]+)"/;

/** Of a line that is too long to be read, its type and its beginning; null when it does not begin with its type. */
function beginningOf(line: string, shown: (text: string) => string): TaskEvent | null {
  const type = TYPE_FIRST.exec(line)?.[1];
  if (type === undefined || !isWorkerEventType(type)) return null;
  return { type, payload: { truncated: true, preview: shown(line) } };
}

/** The type is a word of the worker's own, so it is redacted as well. */
export function redactEvent({ type, payload }: TaskEvent, redactor: Redactor): TaskEvent {
  return { type: redactor.text(type), payload: redactor.json(payload) };
}

/** Turns an attempt's event lines into events; logs get their stream and attempt, as those of stdout have. */
export class EventLines {
  readonly #attempt: number;
  readonly #redactor: Redactor;
  #warnings = 0;

  constructor(attempt: number, redactor: Redactor) {
    this.#attempt = attempt;
    this.#redactor = redactor;
  }

  /** @returns the event, redacted; a warning in its place; or null for an empty line and for a warning too many */
  read(line: string, cut: boolean): TaskEvent | null {
    if (line.trim() === "") return null;
    // Redacted before it is cut: a part of a secret cannot be told from other text.
    const shown = (text: string) =>
      (cut ? this.#redactor.cutText(text) : this.#redactor.text(text)).slice(0, PREVIEW_CHARS);
    const tooLong = `is longer than ${limits.workerEventLineBytesMax} bytes`;
    const event = cut ? (beginningOf(line, shown) ?? tooLong) : readEventLine(line, shown);
    if (typeof event === "string") {
      return this.#warning(`A line of the event stream ${event}: ${shown(line)}`);
    }
    const { type, payload } = redactEvent(event, this.#redactor);
    return { type, payload: type === "log" ? this.#logPayload(payload) : payload };
  }

  #logPayload(payload: JsonValue): JsonObject {
    const fields = isObject(payload) ? payload : { message: payload };
    return { level: "info", stream: "worker", attempt: this.#attempt, ...fields };
  }

  #warning(message: string): TaskEvent | null {
    this.#warnings++;
    if (this.#warnings > WARNINGS_MAX) return null;
    const last =
      this.#warnings === WARNINGS_MAX ? " (Further bad lines of this attempt are not reported.)" : "";
    return logEvent("warn", "worker", message + last, this.#attempt);
  }
}
