// Which events a schedule reacts to: those of its type that pass all of its filters.

import { isDeepStrictEqual } from "node:util";
import type { JsonValue } from "../engine/json.ts";
import { pointerKeys, valueAt } from "../lib/json-pointer.ts";

export const filterOps = [
  "eq",
  "ne",
  "in",
  "prefix",
  "contains",
  "exists",
  "gt",
  "gte",
  "lt",
  "lte",
] as const;
export type FilterOp = (typeof filterOps)[number];

export interface EventFilter {
  /** JSON Pointer, from the event. */
  readonly path: string;
  readonly op: FilterOp;
  readonly value: JsonValue;
}

/** An event as filters and templates see it. */
export interface SeenEvent {
  readonly event_id: string;
  readonly type: string;
  readonly source: string | null;
  readonly payload: JsonValue;
  readonly received_at: string;
}

/** What is wrong with a filter: in which of its fields, and what; null: nothing. */
export function filterProblem({
  path,
  op,
  value,
}: EventFilter): { readonly field: "path" | "value"; readonly message: string } | null {
  if (pointerKeys(path) === null)
    return { field: "path", message: `${path} is no JSON Pointer; one is /payload/name` };
  const problem = valueProblem(op, value);
  return problem === null ? null : { field: "value", message: `of ${op} must be ${problem}` };
}

function valueProblem(op: FilterOp, value: JsonValue): string | null {
  switch (op) {
    case "in":
      return Array.isArray(value) ? null : "a list";
    case "exists":
      return typeof value === "boolean" ? null : "true or false";
    case "prefix":
      return typeof value === "string" ? null : "a text";
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return typeof value === "number" || typeof value === "string" ? null : "a number or a text";
    case "eq":
    case "ne":
    case "contains":
      return null;
    default:
      return op satisfies never;
  }
}

export function passesAll(filters: readonly EventFilter[], event: SeenEvent): boolean {
  return filters.every((filter) => passes(filter, event));
}

/** What is not there equals nothing: only `ne` and `exists: false` let it pass. */
function passes({ path, op, value }: EventFilter, event: SeenEvent): boolean {
  const found = valueAt(event, pointerKeys(path) ?? []) as JsonValue | undefined;
  if (op === "exists") return (found !== undefined) === value;
  switch (op) {
    case "eq":
      return isEqual(found, value);
    case "ne":
      return !isEqual(found, value);
    case "in":
      return Array.isArray(value) && found !== undefined && hasItem(value, found);
    case "prefix":
      return typeof found === "string" && found.startsWith(String(value));
    case "contains":
      if (typeof found === "string") return typeof value === "string" && found.includes(value);
      return Array.isArray(found) && hasItem(found, value);
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return typeof found === typeof value && isOrdered(op, found as string, value as string);
    default:
      return op satisfies never;
  }
}

/** Zeros have no sign here. */
const isEqual = (a: JsonValue | undefined, b: JsonValue) => a === b || isDeepStrictEqual(a, b);

/** A list may have 100,000 items, which are not compared in depth with what has none. */
const hasItem = (list: readonly JsonValue[], item: JsonValue) =>
  list.includes(item) || (typeof item === "object" && list.some((one) => isDeepStrictEqual(one, item)));

/** Texts, by their code units, or numbers. */
function isOrdered<Value extends string | number>(
  op: "gt" | "gte" | "lt" | "lte",
  a: Value,
  b: Value,
): boolean {
  if (op === "gt") return a > b;
  if (op === "gte") return a >= b;
  return op === "lt" ? a < b : a <= b;
}

/** In plain English. */
export function describeEvents(type: string, filters: readonly EventFilter[]): string {
  const conditions = filters.map(
    ({ path, op, value }) => ` and ${path} ${WORDS[op]} ${JSON.stringify(value)}`,
  );
  return `When an event ${type} comes${conditions.join("")}`;
}

const WORDS: Readonly<Record<FilterOp, string>> = {
  eq: "is",
  ne: "is not",
  in: "is one of",
  prefix: "begins with",
  contains: "contains",
  exists: "exists:",
  gt: "is above",
  gte: "is at least",
  lt: "is below",
  lte: "is at most",
};
