import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { migratedOneByOne, SCHEMA_FILE, schemaTypes, wholeSchema } from "./generate-schema.ts";
import { migrate, WHOLE_SCHEMA } from "./migrate.ts";

test("the types of the tables are those of the migrations: `npm run schema` would change nothing", () => {
  assert.equal(readFileSync(SCHEMA_FILE, "utf8"), schemaTypes());
});

test("an empty database becomes what the migrations make of it one by one", () => {
  const expected = wholeSchema(migratedOneByOne());
  assert.ok(readFileSync(WHOLE_SCHEMA, "utf8") === expected, "`npm run schema` writes it anew");
  const connection = new DatabaseSync(":memory:");
  migrate(connection, "test.db");
  assert.equal(wholeSchema(connection), expected);
});
