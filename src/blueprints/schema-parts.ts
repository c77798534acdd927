// The pieces that the JSON Schemas of packages are written with. The schemas are for editors, which complete and check
// while a person types; what counts is what parseManifest and describePackage say.

import type { JsonObject } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";

export type Schema = JsonObject;

const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** Where editors note the address of the schema, in the file itself. */
export const schemaReference: Schema = {
  type: "string",
  description: "The address of this schema, for editors.",
};

/** An object with known fields; others are allowed, for notes of one's own. */
export function open(description: string, properties: Schema, required: readonly string[] = []): Schema {
  return { type: "object", description, properties, ...(required.length > 0 && { required }) };
}

/** An object in which an unknown field is a slip. */
export function closed(description: string, properties: Schema, required: readonly string[] = []): Schema {
  return { ...open(description, properties, required), additionalProperties: false };
}

export function list(description: string, items: Schema, more: Schema = {}): Schema {
  return { type: "array", description, items, ...more };
}

export function text(description: string, more: Schema = {}): Schema {
  return { type: "string", maxLength: 1_000, description, ...more };
}

/** An identifier or type. */
export function name(description: string, more: Schema = {}): Schema {
  return { type: "string", minLength: 1, maxLength: limits.nameCharsMax, description, ...more };
}

export function path(description: string, more: Schema = {}): Schema {
  return { type: "string", minLength: 1, maxLength: 4_096, description, ...more };
}

/** A relative path that does not begin at the root; that it does not climb out is beyond a pattern. */
export const relativePath = (description: string): Schema => path(description, { pattern: "^[^/]" });

/** A relative path, none of whose parts begins with a dot. */
export const plainPath = (description: string): Schema =>
  path(description, { pattern: "^[^/.][^/]*(/+[^/.][^/]*)*/*$" });

export const dottedPath = (description: string): Schema =>
  name(description, { pattern: "^[^.](.*[^.])?$", examples: ["documents.folder"] });

export function integer(description: string, minimum: number, maximum: number, fallback?: number): Schema {
  return {
    type: "integer",
    minimum,
    maximum,
    description,
    ...(fallback !== undefined && { default: fallback }),
  };
}

export function number(description: string, minimum: number, maximum: number, fallback?: number): Schema {
  return { ...integer(description, minimum, maximum, fallback), type: "number" };
}

export function flag(description: string, fallback: boolean): Schema {
  return { type: "boolean", default: fallback, description };
}

export function choice(description: string, values: readonly string[], fallback?: string): Schema {
  return { enum: values, description, ...(fallback !== undefined && { default: fallback }) };
}

export const either = (description: string, ...anyOf: readonly Schema[]): Schema => ({ description, anyOf });

/** The schema, or null where that has a meaning of its own. */
export const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: "null" }] });

export const anyObject = (description: string): Schema => ({ type: "object", description });

/** A program and its arguments, for a start without a shell. */
export const commandList = (description: string): Schema =>
  list(description, { type: "string" }, { minItems: 1, prefixItems: [{ type: "string", minLength: 1 }] });

export const document = (title: string, schema: Schema): Schema => ({ $schema: DRAFT, title, ...schema });

export const extensions = (description: string): Schema =>
  list(
    description,
    { type: "string", pattern: "^\\.[^/\\\\]+$", maxLength: limits.nameCharsMax },
    { minItems: 1, maxItems: 100 },
  );
