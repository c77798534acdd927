// The rules over a run's configuration: manifest `input_validation` (CONTRACTS §6). Applied in src/launch/preparation.

import { type Fields, kindOf } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { extensionList, type Reading, requiredDottedPath } from "./describe-reading.ts";
import type { InputRule } from "./package-description.ts";

const RULES_MAX = 1_000;
const ENUM_MAX = 1_000;
export const PATTERN_CHARS_MAX = 1_000;
const NUMBERS = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE };

const ruleFields = [
  "path",
  "required",
  "type",
  "enum",
  "min",
  "max",
  "pattern",
  "exists",
  "extensions",
  "message",
] as const;
const types = ["string", "number", "integer", "boolean", "object", "array"] as const;

export function readInputRules(manifest: Reading): readonly InputRule[] {
  const fields = manifest.fields.object("input_validation");
  manifest.warnOfUnknown(fields, ["rules"]);
  return fields.objects("rules", RULES_MAX, (rule) => {
    manifest.warnOfUnknown(rule, ruleFields);
    const path = requiredDottedPath(rule, "path");
    const read = {
      required: rule.boolean("required", false),
      type: choiceOrNull(rule, "type", types),
      enum: readEnum(rule),
      ...readBounds(rule),
      pattern: readPattern(rule),
      exists: choiceOrNull(rule, "exists", ["file", "folder"] as const),
      extensions: extensionList(rule, "extensions"),
      message: rule.text("message"),
    };
    return path === null ? null : { path, ...read };
  });
}

function choiceOrNull<Word extends string>(
  rule: Fields,
  name: string,
  allowed: readonly [Word, ...Word[]],
): Word | null {
  return rule.raw(name) === undefined ? null : rule.choice(name, allowed, allowed[0]);
}

function readEnum(rule: Fields): InputRule["enum"] {
  if (rule.raw("enum") === undefined) return null;
  const values = rule.list("enum", ENUM_MAX);
  if (values.length === 0 && Array.isArray(rule.raw("enum"))) {
    rule.report("enum", "empty", "is empty, so that no value would do");
  }
  return values;
}

function readBounds(rule: Fields): Pick<InputRule, "min" | "max"> {
  const min = rule.number("min", NUMBERS, null);
  const max = rule.number("max", NUMBERS, null);
  if (min !== null && max !== null && min > max) {
    rule.report("min", "contradiction", `is ${min}, which is more than max, ${max}: no value would do`);
  }
  return { min, max };
}

/** As JSON Schema has them: not anchored, with the flag u. */
function readPattern(rule: Fields): string | null {
  const value = rule.raw("pattern");
  if (value === undefined) return null;
  if (typeof value !== "string") {
    rule.report("pattern", "wrong_type", `must be a regular expression as a string, not ${kindOf(value)}`);
  } else if (value.length > PATTERN_CHARS_MAX) {
    const said = `has ${value.length} characters: at most ${PATTERN_CHARS_MAX} are allowed`;
    rule.report("pattern", "too_long", said);
  } else {
    try {
      new RegExp(value, "u");
      return value;
    } catch (error) {
      const reason = (error as Error).message.replace(/^Invalid regular expression: /, "");
      rule.report("pattern", "invalid_pattern", `is no regular expression: ${quoted(reason)}`);
    }
  }
  return null;
}
