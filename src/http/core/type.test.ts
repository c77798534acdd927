import assert from "node:assert/strict";
import { test } from "node:test";
import { Type as TypeBox } from "typebox";
import { Type } from "./type.ts";

/** Every builder, nested as the schemas nest them. */
const cases: readonly { readonly name: string; build(type: typeof Type): unknown }[] = [
  { name: "simple types", build: (t) => [t.String(), t.Integer(), t.Number(), t.Boolean(), t.Null()] },
  { name: "options", build: (t) => t.String({ minLength: 1, description: "d", examples: ["a"] }) },
  { name: "Unknown", build: (t) => t.Unknown({ description: "d" }) },
  { name: "Unsafe", build: (t) => t.Unsafe({ type: "object", additionalProperties: true }) },
  { name: "literals", build: (t) => [t.Literal("a"), t.Literal(1), t.Literal(true, { description: "d" })] },
  { name: "Array", build: (t) => t.Array(t.String(), { maxItems: 3 }) },
  { name: "Union", build: (t) => t.Union([t.Literal("a"), t.Null()], { default: "a" }) },
  { name: "Record", build: (t) => t.Record(t.String(), t.Integer(), { description: "d" }) },
  {
    name: "Object",
    build: (t) =>
      t.Object(
        { a: t.String(), b: t.Optional(t.Array(t.Object({ c: t.Optional(t.Null()) }))) },
        { additionalProperties: false },
      ),
  },
  { name: "empty Object", build: (t) => t.Object({}) },
];

for (const { name, build } of cases) {
  test(`${name}: the schema is TypeBox's`, () => {
    assert.deepEqual(JSON.parse(JSON.stringify(build(Type))), JSON.parse(JSON.stringify(build(TypeBox))));
  });
}
