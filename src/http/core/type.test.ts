// Schemas and the types of what they admit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Static, Type } from "./type.ts";

test("a builder takes a description, keywords, or both", () => {
  assert.deepEqual(Type.String(), { type: "string" });
  assert.deepEqual(Type.String("d"), { type: "string", description: "d" });
  assert.deepEqual(Type.String({ minLength: 1 }), { type: "string", minLength: 1 });
  assert.deepEqual(Type.Integer("d", { minimum: 1 }), { type: "integer", description: "d", minimum: 1 });
});

test("an object requires its properties, but for the optional ones", () => {
  const schema = Type.Object({ a: Type.String(), b: Type.Optional(Type.Integer()) }, "d");
  const properties = { a: { type: "string" }, b: { type: "integer" } };
  assert.deepEqual(schema, { type: "object", required: ["a"], properties, description: "d" });
  assert.deepEqual(Type.Object({ b: Type.Optional(Type.Integer()) }), {
    type: "object",
    properties: { b: { type: "integer" } },
  });
});

test("an input requires what it says and takes no other fields", () => {
  const properties = { a: Type.String(), b: Type.Integer() };
  assert.deepEqual(Type.Input(properties, { required: ["a"] }), {
    type: "object",
    required: ["a"],
    properties,
    additionalProperties: false,
  });
  assert.deepEqual(Type.Input({}, { description: "d" }), {
    type: "object",
    properties: {},
    description: "d",
    additionalProperties: false,
  });
});

test("null is one more type of a plain schema, and an alternative to any other", () => {
  assert.deepEqual(Type.Nullable(Type.String("d")), { type: ["string", "null"], description: "d" });
  const choice = Type.OneOf(["a", "b"]);
  assert.deepEqual(Type.Nullable(choice), { anyOf: [choice, { type: "null" }] });
  const object = Type.Object({ a: choice });
  assert.deepEqual(Type.Nullable(object), { anyOf: [object, { type: "null" }] });
});

const Everything = Type.Object({
  text: Type.String(),
  choice: Type.Optional(Type.OneOf(["a", "b"])),
  numbers: Type.Array(Type.Nullable(Type.Number())),
  byName: Type.Record(Type.Object({ flag: Type.Boolean() })),
});

test("what a schema admits is known to the type checker", () => {
  const value: Static<typeof Everything> = { text: "a", numbers: [1, null], byName: { x: { flag: true } } };
  // @ts-expect-error: no such choice
  const other: Static<typeof Everything> = { ...value, choice: "c" };
  // @ts-expect-error: a property is missing
  const less: Static<typeof Everything> = { text: "a" };
  const Input = Type.Input({ a: Type.String(), b: Type.Integer() }, { required: ["a"] });
  const input: Static<typeof Input> = { a: "x" };
  // @ts-expect-error: a required property is missing
  const empty: Static<typeof Input> = {};
  assert.deepEqual([Object.keys(value).length, other.choice, less.text], [3, "c", "a"]);
  assert.deepEqual([input.b, empty.a], [undefined, undefined]);
});
