import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { mutations } from "./list.ts";
import { mutated } from "./mutation.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("every mutation applies to the program as it is, and names tests that exist", () => {
  for (const mutation of mutations) {
    mutated(root, mutation);
    assert.notEqual(mutation.tests.length, 0, mutation.fault);
    for (const file of mutation.tests) assert.ok(existsSync(join(root, file)), file);
  }
});
