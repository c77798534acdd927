// Goal: a launch whose check did not come to its end is not called invalid.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DomainError } from "../../lib/domain-error.ts";
import { Findings, refuseFailed } from "./findings.ts";

const codeOf = (findings: Findings) => {
  try {
    refuseFailed(findings.result(), "/config_overrides");
    return "accepted";
  } catch (error) {
    assert.ok(error instanceof DomainError);
    return error.code;
  }
};

test("a check that timed out asks to try again, unless it has found a mistake by then", () => {
  const findings = new Findings();
  assert.equal(codeOf(findings), "accepted");
  findings.addTimeout(10_000);
  assert.equal(codeOf(findings), "unavailable");
  findings.errors([{ part: "inputs", path: "", code: "required", message: "is missing" }]);
  assert.equal(codeOf(findings), "validation_failed");
});
