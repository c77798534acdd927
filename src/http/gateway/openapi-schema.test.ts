// Schemas as the OpenAPI document shows them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Type } from "../core/type.ts";
import { NamedSchemas } from "./openapi-schema.ts";

const Leaf = Type.Object({ a: Type.String() }, { description: "a leaf" });
const Tree = Type.Object({ leaf: Leaf, leaves: Type.Array(Leaf) });

test("a schema with a name is referred to, wherever it stands, and shown once", () => {
  const named = new NamedSchemas({ Tree, Leaf, Unused: Type.Object({}) });
  assert.deepEqual(named.shown(Type.Array(Tree)), {
    type: "array",
    items: { $ref: "#/components/schemas/Tree" },
  });
  assert.deepEqual(named.components(), {
    Leaf: {
      type: "object",
      required: ["a"],
      properties: { a: { type: "string" } },
      description: "a leaf",
    },
    Tree: {
      type: "object",
      required: ["leaf", "leaves"],
      properties: {
        leaf: { $ref: "#/components/schemas/Leaf" },
        leaves: { type: "array", items: { $ref: "#/components/schemas/Leaf" } },
      },
    },
  });
});

test("a schema with another description is another schema", () => {
  const named = new NamedSchemas({ Leaf });
  const other = { ...Leaf, description: "not a leaf" };
  assert.equal(named.shown(other).description, "not a leaf");
  assert.deepEqual(named.components(), {});
});

const cases: readonly [name: string, schema: object, shown: object][] = [
  [
    "constants become an enumeration, which keeps its default and description",
    Type.Union([Type.Literal("a"), Type.Literal("b")], { default: "a", description: "which" }),
    { type: "string", enum: ["a", "b"], default: "a", description: "which" },
  ],
  [
    "constants of several types stay a union",
    Type.Union([Type.Literal("a"), Type.Literal(1)]),
    {
      anyOf: [
        { type: "string", const: "a" },
        { type: "number", const: 1 },
      ],
    },
  ],
  [
    "a plain type or null is two types",
    Type.Union([Type.String({ format: "date-time", description: "when" }), Type.Null()]),
    { type: ["string", "null"], format: "date-time", description: "when" },
  ],
  [
    "an enumeration or null stays a union",
    Type.Union([Type.Union([Type.Literal("a"), Type.Literal("b")]), Type.Null()]),
    { anyOf: [{ type: "string", enum: ["a", "b"] }, { type: "null" }] },
  ],
  [
    "a named schema or null stays a union",
    Type.Union([Leaf, Type.Null()]),
    { anyOf: [{ $ref: "#/components/schemas/Leaf" }, { type: "null" }] },
  ],
  [
    "a record has additional properties",
    Type.Record(Type.String(), Type.Integer(), { description: "counts" }),
    { type: "object", description: "counts", additionalProperties: { type: "integer" } },
  ],
  [
    "properties and data that are called like keywords are left alone",
    Type.Object({ anyOf: Type.String(), items: Type.Integer() }, { examples: [{ anyOf: [1], items: {} }] }),
    {
      type: "object",
      required: ["anyOf", "items"],
      properties: { anyOf: { type: "string" }, items: { type: "integer" } },
      examples: [{ anyOf: [1], items: {} }],
    },
  ],
  [
    "what takes no other fields says so",
    Type.Object({}, { additionalProperties: false }),
    { type: "object", properties: {}, additionalProperties: false },
  ],
];
for (const [name, schema, shown] of cases) {
  test(name, () => assert.deepEqual(new NamedSchemas({ Leaf }).shown(schema), shown));
}
