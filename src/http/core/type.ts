// The few builders of JSON schemas that the APIs use, with TypeBox's types. TypeBox itself is some 700 modules, which
// would cost every start 100 ms and more; what it does at run time for these builders is little. A test compares the
// two, builder by builder.

import type { TSchema, Type as TypeBox } from "typebox";

export type { Static, TSchema } from "typebox";

const isOptional = Symbol("optional");

type Properties = Readonly<Record<string, TSchema>>;
type Options = Readonly<Record<string, unknown>>;

const simple =
  (type: string) =>
  (options: Options = {}) => ({ type, ...options });

const builders = {
  String: simple("string"),
  Integer: simple("integer"),
  Number: simple("number"),
  Boolean: simple("boolean"),
  Null: simple("null"),
  Unknown: (options: Options = {}) => ({ ...options }),
  Unsafe: (schema: Options) => ({ ...schema }),
  Literal: (value: string | number | boolean, options: Options = {}) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Array: (items: TSchema, options: Options = {}) => ({ type: "array", items, ...options }),
  Union: (anyOf: readonly TSchema[], options: Options = {}) => ({ anyOf, ...options }),
  Record: (_key: TSchema, value: TSchema, options: Options = {}) => ({
    type: "object",
    patternProperties: { "^.*$": value },
    ...options,
  }),
  Object: (properties: Properties, options: Options = {}) => {
    const required = Object.keys(properties).filter((name) => !(isOptional in (properties[name] ?? {})));
    return { type: "object", ...(required.length > 0 && { required }), properties, ...options };
  },
  /** A property that may be absent; only `Object` looks at it. */
  Optional: (schema: TSchema) => Object.defineProperty({ ...schema }, isOptional, { value: true }),
};

export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;
