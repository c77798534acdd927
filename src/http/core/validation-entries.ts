// Turns the validator's errors into entries of a problem: a path, a stable code, and a message that completes "<path>: …".

import type { ErrorObject } from "ajv";
import type { ProblemEntry } from "./problem.ts";

const PATH_CHARS_MAX = 400;
const LISTED_MAX = 20;

/** Entries with a JSON Pointer into the body. */
export function bodyEntries(errors: readonly ErrorObject[]): readonly ProblemEntry[] {
  return withoutTypesOfChoices(errors).map((error) => ({
    path: shortened(pathOf(error)),
    ...describe(error),
  }));
}

/** Entries with a parameter's name. */
export function parameterEntries(
  errors: readonly ErrorObject[],
  values: Readonly<Record<string, unknown>>,
): readonly ProblemEntry[] {
  return withoutTypesOfChoices(errors).map((error) => {
    const [, part = ""] = pathOf(error).split("/");
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const { code, message } = describe(error);
    // A value that is given twice arrives as a list; no parameter here takes one.
    const isRepeated = code !== "unknown_field" && Array.isArray(values[name]);
    return { path: shortened(name), code, message: isRepeated ? "must be given only once" : message };
  });
}

/** A name as a part of a JSON Pointer. */
export const pointerPart = (name: string) => shortened(name.replaceAll("~", "~0").replaceAll("/", "~1"));

const shortened = (path: string) =>
  path.length <= PATH_CHARS_MAX ? path : `${path.slice(0, PATH_CHARS_MAX - 1)}…`;

function pathOf({ instancePath, keyword, params }: ErrorObject): string {
  if (keyword === "additionalProperties") return `${instancePath}/${pointerPart(params.additionalProperty)}`;
  if (keyword === "required") return `${instancePath}/${pointerPart(params.missingProperty)}`;
  return instancePath;
}

/** A value of another type is none of an enumeration's either: one of the two errors is enough. */
function withoutTypesOfChoices(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const choices = new Set(
    errors.filter(({ keyword }) => keyword === "enum").map(({ instancePath }) => instancePath),
  );
  return errors.filter(({ keyword, instancePath }) => keyword !== "type" || !choices.has(instancePath));
}

function describe({ keyword, params, message = "is not valid" }: ErrorObject): Omit<ProblemEntry, "path"> {
  switch (keyword) {
    case "additionalProperties":
      return { code: "unknown_field", message: "is not a known name here" };
    case "required":
      return { code: "missing", message: "is required" };
    case "type": {
      const types = ([] as string[]).concat(params.type).map(typeName);
      return { code: "wrong_type", message: `must be ${types.join(" or ")}` };
    }
    case "enum":
      return { code: "not_allowed", message: `must be one of ${listed(params.allowedValues)}` };
    case "const":
      return { code: "not_allowed", message: `must be ${JSON.stringify(params.allowedValue)}` };
    case "minLength":
      return { code: "too_short", message: `must have at least ${params.limit} characters` };
    case "maxLength":
      return { code: "too_long", message: `must have at most ${params.limit} characters` };
    case "minItems":
      return { code: "too_few", message: `must have at least ${params.limit} items` };
    case "maxItems":
      return { code: "too_many", message: `must have at most ${params.limit} items` };
    case "minimum":
    case "exclusiveMinimum":
      return { code: "too_small", message };
    case "maximum":
    case "exclusiveMaximum":
      return { code: "too_large", message };
    case "pattern":
    case "format":
      return { code: "wrong_format", message };
    default:
      return { code: "invalid_value", message };
  }
}

function listed(values: readonly unknown[]): string {
  const shown = values.slice(0, LISTED_MAX).map((value) => JSON.stringify(value));
  return values.length > LISTED_MAX ? `${shown.join(", ")}, …` : shown.join(", ");
}

const articles: Readonly<Record<string, string>> = {
  object: "a JSON object",
  array: "a list",
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

const typeName = (type: string) => articles[type] ?? type;
