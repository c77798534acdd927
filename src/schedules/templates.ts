// Templates in the inputs of a schedule: a value `{"$event": "/payload/name"}` becomes what is there in the event that
// a run is started for, `{"$schedule": "due_at"}` the time that it is due at. What is not there becomes null.

import { isObject, type JsonValue } from "../engine/json.ts";
import type { DomainErrorEntry } from "../lib/domain-error.ts";
import { pointerKeys, valueAt } from "../lib/json-pointer.ts";
import { pointer } from "../lib/text.ts";

/** Characters that templates may put into inputs together: a whole batch once, and as much again. */
const FILLED_CHARS_MAX = 8 * 1024 * 1024;

/** What templates are filled from. */
export interface TemplateValues {
  /** The event, or a batch of them; null without one. */
  readonly event: JsonValue;
  /** ISO 8601. */
  readonly dueAt: string;
}

type Name = "$event" | "$schedule";
type Template = readonly [Name, JsonValue];

/** The one member of a template; null: the value is none. */
function templateOf(value: JsonValue): Template | null {
  if (!isObject(value)) return null;
  const [member, ...others] = Object.entries(value);
  if (member === undefined || others.length > 0) return null;
  const [name, of] = member;
  return name === "$event" || name === "$schedule" ? [name, of as JsonValue] : null;
}

/** Whether there is a template in it. */
export function hasTemplate(value: JsonValue): boolean {
  if (templateOf(value) !== null) return true;
  if (Array.isArray(value)) return value.some(hasTemplate);
  return isObject(value) && Object.values(value).some((one) => hasTemplate(one as JsonValue));
}

/** What is wrong with the templates in a value. @param at a JSON Pointer to it */
export function templateProblems(
  value: JsonValue,
  at: string,
  ofEvent: boolean,
): readonly DomainErrorEntry[] {
  const template = templateOf(value);
  if (template !== null) {
    const message = templateProblem(...template, ofEvent);
    return message === null ? [] : [{ path: at, code: "invalid_template", message }];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) =>
    templateProblems(one as JsonValue, `${at}${pointer([key])}`, ofEvent),
  );
}

function templateProblem(name: Name, of: JsonValue, ofEvent: boolean): string | null {
  if (name === "$schedule") return of === "due_at" ? null : '$schedule knows "due_at" only';
  if (!ofEvent) return "$event is for schedules of kind event";
  const isPointer = typeof of === "string" && pointerKeys(of) !== null;
  return isPointer ? null : "$event must be a JSON Pointer such as /payload/name";
}

/** A value with its templates filled in; undefined when they put too much into it. */
export function filled(value: JsonValue, values: TemplateValues): JsonValue | undefined {
  let room = FILLED_CHARS_MAX;
  const fill = (value: JsonValue): JsonValue => {
    const template = templateOf(value);
    if (template !== null) {
      const given = valueFor(template, values);
      room = roomBehind(given, room);
      return given;
    }
    if (Array.isArray(value)) return value.map(fill);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(one as JsonValue)]));
  };
  const whole = fill(value);
  return room < 0 ? undefined : whole;
}

function valueFor([name, of]: Template, { event, dueAt }: TemplateValues): JsonValue {
  if (name === "$schedule") return dueAt;
  return (valueAt(event, pointerKeys(String(of)) ?? []) ?? null) as JsonValue;
}

/** Not below zero by much: it ends where there is no more. */
function roomBehind(value: JsonValue, room: number): number {
  if (room < 0) return room;
  if (typeof value === "string") return room - value.length - 2;
  if (typeof value !== "object" || value === null) return room - 4;
  let left = room - 2;
  for (const [key, one] of Object.entries(value)) {
    left = roomBehind(one as JsonValue, left - (Array.isArray(value) ? 1 : key.length + 4));
    if (left < 0) break;
  }
  return left;
}
