// Schemas of packages over launches: how long they may take, and what references in them lead to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { schemaProblem } from "../../blueprints/json-schema.ts";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import { inputProblems, schemaProblems } from "./schemas.ts";

const place = { part: "inputs", path: "" } as const;

async function codesOf(schema: JsonObject, value: JsonValue) {
  assert.equal(schemaProblem(schema), null);
  return schemaProblems(schema, value, place).map(({ path, code }) => `${path} ${code}`);
}

test("a schema that takes more than linear time is aborted, without effect on the next one", async () => {
  const distinct = Array.from({ length: 60_000 }, (_, i) => ({ i }));
  assert.deepEqual(await codesOf({ properties: { list: { uniqueItems: true } } }, { list: distinct }), [
    " too_slow",
  ]);
  const branch = { properties: { in: { $ref: "#" } }, required: ["missing"] };
  let deep: JsonObject = {};
  for (let depth = 0; depth < 40; depth++) deep = { in: deep };
  assert.deepEqual(await codesOf({ anyOf: [branch, branch] }, deep), [" too_slow"]);
  assert.deepEqual(await codesOf({ $anchor: "a", properties: { a: { pattern: "^a$" } } }, { a: "a" }), []);
});

test("the patterns of all bodies share one time limit", async () => {
  const schema = { properties: { text: { pattern: "^(a+)+$" } } };
  const endless = { text: `${"a".repeat(60)}!` };
  const bodies = [endless, endless, { text: "a" }];
  const problems = inputProblems(schema, { $entrypoints: { "in/out": bodies } }, false);
  // The last one would match, and is not judged any more.
  assert.deepEqual(
    problems.map(({ path }) => path),
    bodies.map((_, i) => `/$entrypoints/in~1out/${i}/text`),
  );
});

test("a schema may refer to itself as a whole, but not without end", async () => {
  const tree = { type: "object", properties: { child: { $ref: "#" } } };
  assert.deepEqual(await codesOf(tree, { child: { child: {} } }), []);
  assert.deepEqual(await codesOf(tree, { child: { child: 1 } }), ["/child/child wrong_type"]);
  assert.match(schemaProblem({ allOf: [{ $ref: "#" }] }) ?? "", /refers to itself without end/);
  const circle = { dependentSchemas: { again: { $ref: "#" } } };
  assert.deepEqual(await codesOf(circle, { again: 1 }), [" endless_schema"]);
});
