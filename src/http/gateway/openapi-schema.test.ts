// Schemas as the OpenAPI document shows them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Type } from "../core/type.ts";
import { NamedSchemas } from "./openapi-schema.ts";

const Leaf = Type.Object({ a: Type.String() }, "a leaf");
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
    "a plain type or null is two types",
    Type.Nullable(Type.Time("when")),
    {
      type: ["string", "null"],
      format: "date-time",
      description: "when",
      examples: ["2026-11-21T09:30:00.000Z"],
    },
  ],
  [
    "an object without a name, or null, is two types",
    Type.Nullable(Type.Object({ a: Type.Integer() })),
    { type: ["object", "null"], required: ["a"], properties: { a: { type: "integer" } } },
  ],
  [
    "an enumeration or null stays a union",
    Type.Nullable(Type.OneOf(["a", "b"])),
    { anyOf: [{ type: "string", enum: ["a", "b"] }, { type: "null" }] },
  ],
  [
    "a named schema or null stays a union",
    Type.Nullable(Leaf),
    { anyOf: [{ $ref: "#/components/schemas/Leaf" }, { type: "null" }] },
  ],
  [
    "a record has additional properties",
    Type.Record(Type.Integer(), "counts"),
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
    "what takes no other fields is marked",
    Type.Object({}, { additionalProperties: false }),
    { type: "object", properties: {}, additionalProperties: false },
  ],
];
for (const [name, schema, shown] of cases) {
  test(name, () => assert.deepEqual(new NamedSchemas({ Leaf }).shown(schema), shown));
}
