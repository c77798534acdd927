// Bodies and query values of the runtime API; a bad one is a 400 that names it.

import type { JsonObject } from "../../engine/json.ts";
import type { JsonBody } from "./json-body.ts";
import { ApiError, invalidPayload } from "./runtime-errors.ts";

export type Query = Readonly<Record<string, unknown>>;

export function readBody(body: JsonBody | undefined): JsonObject {
  if (body?.object == null) throw invalidPayload();
  return body.object;
}

/** @returns the value, or null when it is absent */
export function readWholeNumber(query: Query, name: string): number | null {
  const value = query[name];
  if (value === undefined) return null;
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(number)) throw new ApiError(400, `${name} must be a whole number, such as ${name}=20`);
  return number;
}

export function readBoolean(query: Query, name: string, fallback: boolean): boolean {
  const value = query[name];
  if (value === undefined) return fallback;
  if (value === "true") return true;
  if (value === "false") return false;
  throw new ApiError(400, `${name} must be true or false`);
}

/** @returns the value, or null when it is absent */
export function readText(query: Query, name: string): string | null {
  const value = query[name];
  if (value === undefined) return null;
  if (typeof value !== "string") throw new ApiError(400, `${name} may be given once`);
  return value;
}

/** @returns the value, or null when it is absent */
export function readOneOf<Value extends string>(
  query: Query,
  name: string,
  values: readonly Value[],
): Value | null {
  const text = readText(query, name);
  if (text === null) return null;
  const value = values.find((one) => one === text);
  if (value === undefined) throw new ApiError(400, `${name} must be one of ${values.join(", ")}`);
  return value;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** @returns the time in ms since 1970, or null when it is absent */
export function readTimeMs(query: Query, name: string): number | null {
  const text = readText(query, name);
  if (text === null) return null;
  const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs)) throw new ApiError(400, `${name} must be a time such as 2026-11-21T09:30:00Z`);
  return timeMs;
}
