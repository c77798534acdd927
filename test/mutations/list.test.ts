import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { mutations } from "./list.ts";
import { mutated } from "./mutation.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("every mutation applies to the program as it is, and names tests that exist", () => {
  const wrong = mutations.flatMap((mutation) => {
    const { fault, tests } = mutation;
    const missing = tests.filter((file) => !existsSync(join(root, file)));
    try {
      mutated(root, mutation);
    } catch (error) {
      return [`${fault}: ${(error as Error).message}`];
    }
    return missing.length > 0 || tests.length === 0 ? [`${fault}: no test ${missing.join(", ")}`] : [];
  });
  assert.deepEqual(wrong, []);
});
