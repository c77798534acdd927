// Query values of the runtime API; a bad one is a 400 that names it.

import { ApiError } from "./errors.ts";

type Query = Readonly<Record<string, unknown>>;

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
