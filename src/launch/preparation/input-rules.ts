// The rules of a package over its resolved configuration (manifest `input_validation.rules`).
//
// - A rule judges one value. One that is not there, or blank, breaks only `required`.
// - No sentence shows the value: it may be a secret.
// - A path that a rule asks for is looked for where the worker will read it: an absolute one on this machine, a
//   relative one in the payload, and nowhere outside of it.
// - However many rules there are over one value, its length is measured once, and its path is looked for once.

import { realpath, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { InputRule } from "../../blueprints/package-description.ts";
import { PatternBudget, type PatternVerdict, patternLimits } from "../../blueprints/patterns.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { isInside, joinInside } from "../../lib/paths.ts";
import { isBlank, pointerOf, valueAt } from "./config-paths.ts";
import type { LaunchProblem } from "./findings.ts";

const LISTED_MAX = 20;
/** No system knows longer ones; working out where one leads would take its time. */
const PATH_CHARS_MAX = 10_000;

type Kind = "file" | "folder" | "other" | null;

/** What one check has found out about values so far. */
interface Known {
  readonly roots: readonly string[];
  readonly patterns: PatternBudget;
  /** Of texts. */
  readonly chars: Map<string, number>;
  /** What is at a path, in each place where it is looked for. */
  readonly kinds: Map<string, readonly Kind[]>;
}

interface Mistake {
  readonly code: string;
  /** Completes "<path> …". */
  readonly clause: string;
}

/**
 * Judges a configuration by all rules.
 *
 * @param roots folders of the payload that relative paths are looked for in; empty: relative paths are not judged
 * @returns one problem for each rule that is broken, in the rules' order
 */
export async function brokenRules(
  rules: readonly InputRule[],
  configuration: JsonObject,
  roots: readonly string[],
): Promise<readonly LaunchProblem[]> {
  const known: Known = { roots, patterns: new PatternBudget(), chars: new Map(), kinds: new Map() };
  const problems: LaunchProblem[] = [];
  for (const rule of rules) {
    const value = valueAt(configuration, rule.path);
    const mistake = isBlank(value) ? missing(rule) : await firstMistake(rule, value!, known);
    if (mistake === null) continue;
    const { code, clause } = mistake;
    const message = rule.message ?? `${rule.path} ${clause}`;
    problems.push({ part: "configuration", path: pointerOf(rule.path), code, message });
  }
  return problems;
}

function missing({ required }: InputRule): Mistake | null {
  return required ? { code: "required", clause: "is required and has no value" } : null;
}

async function firstMistake(rule: InputRule, value: JsonValue, known: Known): Promise<Mistake | null> {
  return (
    wrongType(rule, value) ??
    notInEnum(rule, value) ??
    outOfRange(rule, value, known) ??
    differsFromPattern(rule, value, known) ??
    wrongExtension(rule, value) ??
    (await notThere(rule, value, known))
  );
}

function wrongType({ type }: InputRule, value: JsonValue): Mistake | null {
  if (type === null || isOfType(value, type)) return null;
  return { code: "wrong_type", clause: `must be ${/^[aeiou]/.test(type) ? "an" : "a"} ${type}` };
}

function isOfType(value: JsonValue, type: NonNullable<InputRule["type"]>): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    default:
      return typeof value === type;
  }
}

function notInEnum({ enum: allowed }: InputRule, value: JsonValue): Mistake | null {
  if (allowed === null || allowed.some((one) => isDeepStrictEqual(one, value))) return null;
  const shown = allowed.slice(0, LISTED_MAX).map((one) => JSON.stringify(one));
  const more = allowed.length > LISTED_MAX ? ", …" : "";
  return { code: "not_allowed", clause: `must be one of ${shown.join(", ")}${more}` };
}

function outOfRange({ min, max }: InputRule, value: JsonValue, { chars }: Known): Mistake | null {
  if (min === null && max === null) return null;
  const measured = measure(value, chars);
  if (measured === null) return { code: "wrong_type", clause: "must be a number, a text or a list" };
  const { size, unit } = measured;
  if (min !== null && size < min)
    return { code: "too_small", clause: `must ${unit.have} at least ${min}${unit.name}` };
  if (max !== null && size > max)
    return { code: "too_large", clause: `must ${unit.have} at most ${max}${unit.name}` };
  return null;
}

/** Of a number its value, of a text its characters, of a list its items. */
function measure(value: JsonValue, known: Map<string, number>) {
  if (typeof value === "number") return { size: value, unit: { have: "be", name: "" } };
  if (typeof value === "string") {
    const chars = known.get(value) ?? charsOf(value);
    known.set(value, chars);
    return { size: chars, unit: { have: "have", name: " characters" } };
  }
  return Array.isArray(value) ? { size: value.length, unit: { have: "have", name: " items" } } : null;
}

/** Characters outside of the basic plane count once. */
function charsOf(text: string): number {
  let chars = 0;
  for (const _ of text) chars++;
  return chars;
}

function differsFromPattern({ pattern }: InputRule, value: JsonValue, { patterns }: Known): Mistake | null {
  if (pattern === null) return null;
  if (typeof value !== "string") return { code: "wrong_type", clause: "must be a text" };
  return mistakeOf(patterns.judge(pattern, value), pattern);
}

function mistakeOf(verdict: PatternVerdict, pattern: string): Mistake | null {
  switch (verdict) {
    case "matches":
      return null;
    case "differs":
      return { code: "pattern", clause: `must match ${pattern}` };
    case "too_long": {
      const { textCharsMax, patternCharsMax } = patternLimits;
      const clause = `cannot be compared with its pattern: a text has at most ${textCharsMax} characters, a pattern ${patternCharsMax}`;
      return { code: "pattern", clause };
    }
    case "too_slow":
      return { code: "pattern", clause: "takes too long to be compared with its pattern" };
    case "invalid_pattern":
      return { code: "pattern", clause: "has a rule whose pattern is no regular expression" };
    default:
      return verdict satisfies never;
  }
}

function wrongExtension({ extensions }: InputRule, value: JsonValue): Mistake | null {
  if (extensions === null) return null;
  if (typeof value !== "string") return { code: "wrong_type", clause: "must be a path" };
  if (hasExtension(value, extensions)) return null;
  return { code: "wrong_extension", clause: `must end in ${extensions.join(" or ")}` };
}

/** Whether a name ends in one of these, whatever its case. @param extensions lower case, with their dots */
export function hasExtension(name: string, extensions: readonly string[]): boolean {
  const lower = name.toLowerCase();
  return extensions.some((one) => lower.endsWith(one));
}

async function notThere(
  { exists }: InputRule,
  value: JsonValue,
  { roots, kinds: known }: Known,
): Promise<Mistake | null> {
  if (exists === null) return null;
  if (typeof value !== "string" || value.includes("\0"))
    return { code: "wrong_type", clause: "must be a path" };
  if (!isAbsolute(value) && roots.length === 0) return null;
  const kinds = known.get(value) ?? (await kindsOf(value, roots));
  known.set(value, kinds);
  if (kinds.includes(exists)) return null;
  const where = isAbsolute(value) ? "on this machine" : "in the payload";
  if (kinds.every((kind) => kind === null))
    return { code: "not_found", clause: `names no ${exists} ${where}` };
  return { code: "not_found", clause: `must name a ${exists} ${where}` };
}

async function kindsOf(path: string, roots: readonly string[]): Promise<readonly Kind[]> {
  if (path.length > PATH_CHARS_MAX) return [];
  const places = isAbsolute(path) ? [path] : await placesIn(roots, path);
  return Promise.all(places.map(kindAt));
}

async function placesIn(roots: readonly string[], path: string): Promise<string[]> {
  const places: string[] = [];
  for (const root of roots) {
    const named = joinInside(root, path);
    const real = named === null ? null : await realpath(named).catch(() => null);
    if (real !== null && isInside(await realpath(root), real)) places.push(real);
  }
  return places;
}

async function kindAt(path: string): Promise<Kind> {
  const found = await stat(path).catch(() => null);
  if (found === null) return null;
  if (found.isFile()) return "file";
  return found.isDirectory() ? "folder" : "other";
}
