// JSON schemas and the types of the values that they admit. One schema checks requests, types them in handlers and is
// shown in the OpenAPI document.
//
// Every builder takes the description as text, other keywords of JSON Schema as an object, or both:
// `Type.String("The run's id.", { minLength: 1 })`.

import type { JsonObject } from "../../engine/json.ts";

type Keywords = Readonly<Record<string, unknown>>;
type About = string | Keywords;

/** Exists for the type checker alone. */
declare const admitted: unique symbol;

/** A JSON schema. @template Value what it admits */
export interface Schema<Value = unknown> {
  readonly [admitted]?: { readonly value: Value };
}

interface OptionalSchema<Value = unknown> extends Schema<Value> {
  readonly [isOptional]: true;
}

/** The values that a schema admits. */
export type Static<Of extends Schema> = Of extends Schema<infer Value> ? Value : never;

export type Properties = Readonly<Record<string, Schema>>;
type OptionalNames<Of extends Properties> = {
  [Name in keyof Of]: Of[Name] extends OptionalSchema ? Name : never;
}[keyof Of];
type ObjectOf<Of extends Properties> = {
  readonly [Name in Exclude<keyof Of, OptionalNames<Of>>]: Static<Of[Name]>;
} & { readonly [Name in OptionalNames<Of>]?: Static<Of[Name]> };

export interface ObjectSchema<Of extends Properties = Properties, Value = ObjectOf<Of>>
  extends Schema<Value> {
  readonly properties: Of;
}

interface InputOptions<Needed> {
  readonly description?: string;
  readonly examples?: readonly unknown[];
  /** All others may be absent. */
  readonly required?: readonly Needed[];
}

type InputOf<Of extends Properties, Needed extends keyof Of> = {
  readonly [Name in Needed]: Static<Of[Name]>;
} & { readonly [Name in Exclude<keyof Of, Needed>]?: Static<Of[Name]> };

const isOptional: unique symbol = Symbol("optional");

function keywords(about: About = {}, more: Keywords = {}): Keywords {
  return typeof about === "string" ? { description: about, ...more } : about;
}

const simple =
  <Value>(type: string) =>
  (about?: About, more?: Keywords): Schema<Value> =>
    ({ type, ...keywords(about, more) }) as Schema<Value>;

function object<Of extends Properties>(properties: Of, about?: About, more?: Keywords): ObjectSchema<Of> {
  const required = Object.keys(properties).filter((name) => !(isOptional in (properties[name] ?? {})));
  const shape = { ...(required.length > 0 && { required }), properties };
  return { type: "object", ...shape, ...keywords(about, more) } as unknown as ObjectSchema<Of>;
}

export const Type = {
  String: simple<string>("string"),
  Integer: simple<number>("integer"),
  Number: simple<number>("number"),
  Boolean: simple<boolean>("boolean"),
  Null: simple<null>("null"),
  Unknown: (about?: About, more?: Keywords): Schema => keywords(about, more) as Schema,
  Literal: <const Value extends string | number | boolean>(value: Value, about?: About) =>
    ({ type: typeof value, const: value, ...keywords(about) }) as Schema<Value>,
  /** One of several texts. */
  OneOf: <const Value extends string>(values: readonly Value[], about?: About, more?: Keywords) =>
    ({ type: "string", enum: values, ...keywords(about, more) }) as Schema<Value>,
  Time: (description: string) =>
    Type.String(description, { format: "date-time", examples: ["2026-11-21T09:30:00.000Z"] }),
  Array: <Value>(items: Schema<Value>, about?: About, more?: Keywords) =>
    ({ type: "array", items, ...keywords(about, more) }) as Schema<readonly Value[]>,
  /** One of several schemas, in answers: what is wrong with a value of a request could not be told. */
  Union: (anyOf: readonly Schema[]): Schema => ({ anyOf }) as Schema,
  /** A schema that admits null too. */
  Nullable<Value>(schema: Schema<Value>): Schema<Value | null> {
    const { type } = schema as { readonly type?: unknown };
    // Objects and enumerations may have a name in the OpenAPI document, under which they are without null.
    const isPlain = typeof type === "string" && !("enum" in schema || "properties" in schema);
    const nullable = isPlain ? { ...schema, type: [type, "null"] } : { anyOf: [schema, Type.Null()] };
    return nullable as Schema<Value | null>;
  },
  /** An object with values of one schema under any names. */
  Record: <Value>(value: Schema<Value>, about?: About, more?: Keywords) =>
    ({ type: "object", ...keywords(about, more), additionalProperties: value }) as Schema<
      Readonly<Record<string, Value>>
    >,
  /** Any JSON object. */
  JsonObject: (description: string, example: unknown = {}) =>
    ({ type: "object", additionalProperties: true, description, examples: [example] }) as Schema<JsonObject>,
  /** An object of an answer; later versions may add fields. */
  Object: object,
  /** A body, query or headers. Bodies and queries take no other fields (spec "Endpoints"). */
  Input: <Of extends Properties, Needed extends keyof Of & string = never>(
    properties: Of,
    options: InputOptions<Needed> = {},
  ) =>
    ({ type: "object", properties, ...options, additionalProperties: false }) as unknown as ObjectSchema<
      Of,
      InputOf<Of, Needed>
    >,
  /** A property that may be absent; only objects look at it. */
  Optional: <Value>(schema: Schema<Value>) =>
    Object.defineProperty({ ...schema }, isOptional, { value: true }) as OptionalSchema<Value>,
};
