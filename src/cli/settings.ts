// Settings on the command line: `--set a.b=value`, any number of them, laid over an object.
//
// N1. A value that is JSON is that JSON, and any other one is a text: depth=3 is a number, city=Ghent a text.
// N2. A dot goes one level deeper; `\.` is a dot in a name.

import { isObject, type JsonObject, type JsonValue, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { UsageError } from "./command.ts";

/**
 * Lays settings over an object; later ones win. The given object is not changed.
 *
 * @throws UsageError that names the setting which is none, or goes through a value that has no parts
 */
export function withSettings(base: JsonObject, settings: readonly string[]): JsonObject {
  return settings.reduce((object, setting) => {
    const { path, value } = readSetting(setting);
    return placed(object, path, value, setting);
  }, base);
}

function readSetting(setting: string): { readonly path: readonly string[]; readonly value: JsonValue } {
  const at = setting.indexOf("=");
  const path = setting
    .slice(0, Math.max(0, at))
    .split(/(?<!\\)\./)
    .map((part) => part.replaceAll("\\.", ".").trim());
  if (path.includes("") || path.includes("__proto__")) {
    throw new UsageError(`--set ${JSON.stringify(setting)} is not of the form name=value or a.b=value.`);
  }
  const text = setting.slice(at + 1);
  const parsed = parseJson(text, limits.jsonDepthMax);
  return { path, value: parsed === null ? text : parsed.value };
}

function placed(object: JsonObject, path: readonly string[], value: JsonValue, setting: string): JsonObject {
  const [name = "", ...rest] = path;
  if (rest.length === 0) return { ...object, [name]: value };
  const inner = Object.hasOwn(object, name) ? object[name] : {};
  if (!isObject(inner)) {
    throw new UsageError(
      `--set ${JSON.stringify(setting)}: ${JSON.stringify(name)} is a value already, and has no parts of its own.`,
    );
  }
  return { ...object, [name]: placed(inner, rest, value, setting) };
}
