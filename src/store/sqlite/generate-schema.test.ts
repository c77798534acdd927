import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SCHEMA_FILE, schemaTypes } from "./generate-schema.ts";

test("the types of the tables are those of the migrations: `npm run schema` would change nothing", async () => {
  assert.equal(readFileSync(SCHEMA_FILE, "utf8"), await schemaTypes());
});
