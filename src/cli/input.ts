// What a person gives a command: JSON in files and options; settings, `--set a.b=value`, merged over an object; durations.
//
// - A value that is JSON is that JSON, and any other one is a text: depth=3 is a number, city=Ghent a text.
// - A dot goes one level deeper; `\.` is a dot in a name, and a number an item of a list.

import { readFileSync } from "node:fs";
import { isObject, isStringList, type JsonObject, type JsonValue, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { canSetAt, withValuesAt } from "../launch/preparation/config-paths.ts";
import { partsOf } from "../lib/text.ts";
import { type Call, UsageError } from "./command.ts";

const STDIN = 0;

/** Reads a JSON file of the user; `-` is stdin. */
export function readJsonFile(path: string): JsonValue {
  const text = readTextFile(path);
  const parsed = parseJson(text, limits.jsonDepthMax);
  if (parsed === null) throw new UsageError(`${shownPath(path)} is not valid JSON: ${whyNot(text)}`);
  return parsed.value;
}

/** Reads a file of the user that is one line, such as a secret; `-` is stdin. */
export function readLine(path: string): string {
  const line = readTextFile(path).replace(/\r?\n$/, "");
  if (line !== "" && !line.includes("\n")) return line;
  throw new UsageError(`${shownPath(path)} must hold one line.`);
}

const shownPath = (path: string) => (path === "-" ? "stdin" : path);

/** Reads a text file of the user; `-` is stdin. */
export function readTextFile(path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path === "-" ? STDIN : path));
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(`${shownPath(path)} is not UTF-8 text.`);
    if (/^\s*[{["]/.test(path))
      throw new UsageError("That is JSON, and a file is wanted: name one, or give - and the JSON on stdin.");
    throw new UsageError(
      `${shownPath(path)} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function whyNot(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return `it nests deeper than ${limits.jsonDepthMax} levels.`;
}

/** The object in the file that an option names. */
export function readObject(call: Call, option: string): JsonObject | undefined {
  const file = call.text(option);
  if (file === null) return undefined;
  const value = readJsonFile(file);
  if (!isObject(value)) throw new UsageError(`--${option}: ${file} does not hold a JSON object.`);
  return value;
}

/**
 * The JSON of an option.
 *
 * @param example a value for the option
 */
export function jsonOption(call: Call, option: string, example: string): JsonValue | undefined {
  const text = call.text(option);
  if (text === null) return undefined;
  const parsed = parseJson(text, limits.jsonDepthMax);
  if (parsed === null)
    throw new UsageError(`--${option} is not valid JSON. Example: --${option} '${example}'`);
  return parsed.value;
}

/** What runs are given over their job's configuration: --config with every --set merged over it; undefined without both. */
export function overridesOf(call: Call): JsonObject | undefined {
  const file = readObject(call, "config");
  const settings = call.texts("set");
  return settings.length === 0 ? file : withSettings(file ?? {}, settings);
}

/**
 * Merges settings over an object; later ones win. The given object is not changed.
 *
 * @throws UsageError that names a setting without a valid path, or whose path goes through a plain value
 */
export function withSettings(base: JsonObject, settings: readonly string[]): JsonObject {
  return settings.reduce((object, setting) => {
    const at = setting.indexOf("=");
    const path = setting.slice(0, Math.max(0, at)).trim();
    const shown = `--set ${JSON.stringify(setting)}`;
    if (partsOf(path) === null) throw new UsageError(`${shown} is not of the form name=value or a.b=value.`);
    if (!canSetAt(object, path)) {
      throw new UsageError(`${shown}: the path goes through a value that has no parts of its own.`);
    }
    const text = setting.slice(at + 1);
    const parsed = parseJson(text, limits.jsonDepthMax);
    return withValuesAt(object, [{ path, value: parsed === null ? text : parsed.value }]);
  }, base);
}

/**
 * The inputs in place of the manifest's own: one body for every entrypoint, or bodies for some of them by name
 * (`{"$entrypoints": {"id": [bodies]}}`; the others keep theirs).
 *
 * @throws UsageError for inputs that would reach no entrypoint
 */
export function withInputs(manifest: JsonObject, inputs: JsonObject): JsonObject {
  if (Object.keys(inputs).length === 0) return manifest;
  const own = isObject(manifest.initial_inputs) ? manifest.initial_inputs : {};
  const { $entrypoints: addressed, ...beside } = inputs;
  if (addressed !== undefined) {
    if (!isObject(addressed))
      throw new UsageError("$entrypoints must be an object of entrypoint to list of bodies.");
    const [lost] = Object.keys(beside);
    if (lost !== undefined)
      throw new UsageError(`The inputs have "${lost}" beside $entrypoints, which would reach no entrypoint.`);
    return { ...manifest, initial_inputs: { ...own, ...addressed } };
  }
  const entrypoints = isStringList(manifest.entrypoints) ? manifest.entrypoints : [];
  return { ...manifest, initial_inputs: Object.fromEntries(entrypoints.map((id) => [id, [inputs]])) };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** 30s, 10m, 2h or 3d; null for any other text. */
export function durationMs(text: string): number | null {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * (UNIT_MS[unit] ?? 0);
}
