// Bodies and query values of the runtime API; a bad one is a 400 that names it.

import type { JsonObject } from "../../engine/json.ts";
import { formats } from "./formats.ts";
import type { JsonBody } from "./json-body.ts";
import { ApiError, invalidPayload } from "./runtime-errors.ts";
import type { ObjectSchema, Properties } from "./type.ts";

export type Query = Readonly<Record<string, unknown>>;

export function readBody(body: JsonBody | undefined): JsonObject {
  if (body?.object == null) throw invalidPayload();
  return body.object;
}

/** The parameters that a schema names, converted to its types. Others are ignored. @throws ApiError 400 */
export function readQuery<Value>({ properties }: ObjectSchema<Properties, Value>, query: Query): Value {
  const given = Object.keys(properties).filter((name) => query[name] !== undefined);
  const values = given.map((name) => [name, readValue(name, properties[name] as Parameter, query[name])]);
  return Object.fromEntries(values) as Value;
}

/** What is looked at of a parameter's schema. */
interface Parameter {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly format?: string;
}

function readValue(name: string, { type, enum: choices, format }: Parameter, value: unknown) {
  switch (type) {
    case "integer":
      if (typeof value === "string" && /^\d{1,15}$/.test(value)) return Number(value);
      throw new ApiError(400, `${name} must be a whole number, such as ${name}=20`);
    case "boolean":
      if (value === "true" || value === "false") return value === "true";
      throw new ApiError(400, `${name} must be true or false`);
    default:
  }
  if (typeof value !== "string") throw new ApiError(400, `${name} may be given once`);
  if (choices !== undefined && !choices.includes(value)) {
    throw new ApiError(400, `${name} must be one of ${choices.join(", ")}`);
  }
  if (format === "date-time" && !formats[format]!(value.toUpperCase())) {
    throw new ApiError(400, `${name} must be a time such as 2026-11-21T09:30:00Z`);
  }
  return value;
}
