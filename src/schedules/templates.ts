// Templates in the inputs of a schedule: a value `{"$event": "/payload/name"}` becomes what is there in the event that
// a run is started for, `{"$schedule": "due_at"}` the time that it is due at. What is not there becomes null.

import { isObject, type JsonValue } from "../engine/json.ts";
import type { DomainErrorEntry } from "../lib/domain-error.ts";
import { pointerKeys, valueAt } from "../lib/json-pointer.ts";

/** What templates are filled from. */
export interface TemplateValues {
  /** The event, or a batch of them; null without one. */
  readonly event: JsonValue;
  /** ISO 8601. */
  readonly dueAt: string;
}

type Name = "$event" | "$schedule";

/** The one member of a template; null: the value is none. */
function templateOf(value: JsonValue): readonly [Name, JsonValue] | null {
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
    templateProblems(one as JsonValue, `${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, ofEvent),
  );
}

function templateProblem(name: Name, of: JsonValue, ofEvent: boolean): string | null {
  if (name === "$schedule") return of === "due_at" ? null : '$schedule knows "due_at" only';
  if (!ofEvent) return "$event is for schedules of kind event";
  const isPointer = typeof of === "string" && pointerKeys(of) !== null;
  return isPointer ? null : "$event must be a JSON Pointer such as /payload/name";
}

/** A value with its templates filled in. */
export function filled(value: JsonValue, values: TemplateValues): JsonValue {
  const template = templateOf(value);
  if (template !== null) {
    const [name, of] = template;
    if (name === "$schedule") return values.dueAt;
    return (valueAt(values.event, pointerKeys(String(of)) ?? []) ?? null) as JsonValue;
  }
  if (Array.isArray(value)) return value.map((one) => filled(one, values));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, filled(one as JsonValue, values)]),
  );
}
