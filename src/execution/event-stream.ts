// The worker's event stream: lines of JSON into events, and bad lines into warnings.
//
// N1. A line is {type, payload} or {type, …the payload's fields}; its type is none of the engine's own.
// N2. A bad line never ends a command: it becomes one warning, and past 20 of them an attempt warns no more.

import { isWorkerEventType } from "../engine/event.ts";
import { isObject, type JsonObject, type JsonValue, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import type { TaskEvent } from "../engine/ports.ts";

const WARNINGS_MAX = 20;
const PREVIEW_CHARS = 200;

/** Reads one line; a string says what is wrong with it. */
export function readEventLine(line: string): TaskEvent | string {
  const parsed = parseJson(line, limits.jsonDepthMax);
  if (parsed === null) return "is no JSON, or nests too deep";
  if (!isObject(parsed.value)) return "is no JSON object";
  const { type, ...rest } = parsed.value;
  if (typeof type !== "string") return "has no type";
  if (!isWorkerEventType(type))
    return `has the type ${JSON.stringify(type.slice(0, PREVIEW_CHARS))}, which is reserved, empty or too long`;
  return { type, payload: rest.payload ?? rest };
}

/** Turns an attempt's event lines into events; logs get their stream and attempt, as those of stdout have. */
export class EventLines {
  readonly #attempt: number;
  #warnings = 0;

  constructor(attempt: number) {
    this.#attempt = attempt;
  }

  /** @returns the event, a warning in its place, or null for an empty line and for a warning too many */
  read(line: string, cut: boolean): TaskEvent | null {
    if (line.trim() === "") return null;
    const event = cut ? `is longer than ${limits.workerEventLineBytesMax} bytes` : readEventLine(line);
    if (typeof event === "string")
      return this.#warning(`A line of the event stream ${event}: ${line.slice(0, PREVIEW_CHARS)}`);
    return event.type === "log" ? { type: "log", payload: this.#logPayload(event.payload) } : event;
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
    const payload = { level: "warn", stream: "worker", attempt: this.#attempt, message: message + last };
    return { type: "log", payload };
  }
}
