import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { writeFailure } from "./write-failure.ts";

test("a failure that is known says what to do, and keeps the system's code", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  assert.equal(
    writeFailure(full),
    "the disk is full. Free some space, or choose a place on another disk (ENOSPC)",
  );
  try {
    mkdirSync("/dev/null/below");
    assert.fail("a folder below a file");
  } catch (error) {
    assert.match(writeFailure(error), /^a file stands where a folder is needed\. .* \(ENOTDIR\)$/);
  }
});

test("any other one has the system's own words", () => {
  assert.equal(writeFailure(Object.assign(new Error("EIO: i/o error"), { code: "EIO" })), "EIO: i/o error");
  assert.equal(writeFailure(new Error("its bytes are others")), "its bytes are others");
});
