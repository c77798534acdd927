// JSON schemas as TypeScript types, written as text. Formatting is the formatter's business.

import type { Json, Schema } from "./document.ts";

/** Any JSON object; the generated file declares it. */
const ANY_OBJECT = "JsonObject";

/** @returns the type's text: a name, a literal, a union, an object type … */
export function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return typeName(schema.$ref);
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map(literal));
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return union(alternatives.map(typeOf));
  if (schema.allOf !== undefined) return schema.allOf.map((part) => `(${typeOf(part)})`).join(" & ");
  const { type } = schema;
  if (type === undefined) return schema.properties === undefined ? "unknown" : objectType(schema);
  if (typeof type !== "string") return union(type.map((one) => typeOf({ ...schema, type: one })));
  return ofKind(type, schema);
}

function ofKind(type: string, schema: Schema): string {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `readonly (${typeOf(schema.items ?? {})})[]`;
    case "object":
      return objectType(schema);
    default:
      throw new Error(`The generator does not know the type ${JSON.stringify(type)}.`);
  }
}

function objectType(schema: Schema): string {
  const { properties = {}, patternProperties, additionalProperties } = schema;
  const names = Object.keys(properties);
  if (names.length > 0) {
    const required = new Set(schema.required);
    return `{ ${names.map((name) => property(name, properties[name] ?? {}, required.has(name))).join("\n")} }`;
  }
  const value = Object.values(patternProperties ?? {})[0];
  if (value !== undefined) return `Readonly<Record<string, ${typeOf(value)}>>`;
  if (typeof additionalProperties === "object")
    return `Readonly<Record<string, ${typeOf(additionalProperties)}>>`;
  return additionalProperties === false ? "Readonly<Record<string, never>>" : ANY_OBJECT;
}

/** A property, on lines of its own. One that may be absent may also be undefined: JSON leaves both out. */
export function property(name: string, schema: Schema, isRequired: boolean): string {
  const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
  const type = typeOf(schema);
  const member = isRequired ? `${key}: ${type};` : `${key}?: ${union([type, "undefined"])};`;
  return `\n${comment(schema.description)}readonly ${member}`;
}

const COMMENT_CHARS = 100;

/** A doc comment, or nothing. */
export function comment(...paragraphs: readonly (string | undefined)[]): string {
  const text = paragraphs.filter((paragraph) => paragraph !== undefined && paragraph !== "").join("\n\n");
  if (text === "") return "";
  const lines = text.replaceAll("*/", "*\\/").split("\n").flatMap(wrapped);
  if (lines.length === 1) return `/** ${lines[0]} */\n`;
  return `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */\n`;
}

function wrapped(line: string): readonly string[] {
  const lines = [""];
  for (const word of line.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last !== "" && last.length + word.length >= COMMENT_CHARS) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}

/** The name that a component has in TypeScript. */
export function typeName(reference: string): string {
  const name = reference.split("/").at(-1) ?? "";
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase());
}

function literal(value: Json): string {
  if (value !== null && typeof value === "object") throw new Error("Only simple values can be literals.");
  return JSON.stringify(value);
}

function union(types: readonly string[]): string {
  return [...new Set(types)].map((type) => (type.startsWith("readonly ") ? `(${type})` : type)).join(" | ");
}
