// docs/errors.md is what the catalogues say now.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { ERRORS_PAGE, errorsPage } from "../docs/generate.ts";
import { failureCatalogue } from "../src/engine/failure-catalogue.ts";
import { problemCodes } from "../src/http/core/problem-codes.ts";
import { operationFailures } from "../src/operations/failures.ts";

const page = readFileSync(join(resolve(import.meta.dirname, ".."), ERRORS_PAGE), "utf8");

test("the page of errors is fresh: `npm run docs` would change nothing", () => {
  assert.equal(page, errorsPage());
});

test("the page of errors has every code, once in its section, in a row of its own", () => {
  const [, failures = "", problems = "", operations = ""] = page.split(/^## /m);
  const sections: readonly (readonly [string, string, object])[] = [
    ["Failures", failures, failureCatalogue],
    ["Problems", problems, problemCodes],
    ["Operations", operations, operationFailures],
  ];
  for (const [title, section, catalogue] of sections) {
    assert.ok(section.startsWith(`${title}\n`), title);
    for (const code of Object.keys(catalogue)) {
      assert.equal(section.split(`| \`${code}\` |`).length, 2, `${title}: ${code}`);
    }
  }
});
