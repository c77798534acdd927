// docs/errors.md is what the catalogues say now.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { ERRORS_PAGE, errorsPage } from "../docs/generate.ts";
import { failureCatalogue } from "../src/engine/failure-catalogue.ts";
import { problemCodes } from "../src/http/core/problem-codes.ts";

const page = readFileSync(join(resolve(import.meta.dirname, ".."), ERRORS_PAGE), "utf8");

test("the page of errors is fresh: `npm run docs` would change nothing", () => {
  assert.equal(page, errorsPage());
});

test("the page of errors has every code, once, in a row of its own", () => {
  for (const code of [...Object.keys(failureCatalogue), ...Object.keys(problemCodes)]) {
    assert.equal(page.split(`| \`${code}\` |`).length, 2, code);
  }
});
