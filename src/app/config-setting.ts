// A variable of the configuration, and how its value is shown.

import type { Parser } from "./config-parsers.ts";

export interface Setting<V> {
  readonly variable: string;
  readonly meaning: string;
  readonly example: string;
  /** The value while the variable is unset. */
  fallback(): V;
  /** Throws WrongValue. */
  readonly parse: Parser<V>;
  /** How `troupe config` prints the value; by default as text, a list joined by commas, nothing as "(unset)". */
  show?(value: V): string;
}

export const UNSET = "(unset)";
export const MASK = "********";

/** @param entry.example the default when absent */
export function setting<V>(entry: Omit<Setting<V>, "example"> & { readonly example?: string }): Setting<V> {
  return Object.freeze({ ...entry, example: entry.example ?? String(entry.fallback()) });
}

export function masked(secrets: readonly string[]): string {
  return secrets.length === 0 ? UNSET : MASK;
}

export function shownPath(file: { readonly path: string } | null): string {
  return file === null ? UNSET : file.path;
}
