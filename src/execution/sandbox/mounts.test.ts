// What a policy can make a sandbox show of its machine.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { AttemptFailure } from "../runner/attempt.ts";
import { policyMounts } from "./mounts.ts";

describe("what a policy names", () => {
  // Not in the temporary folder, of which no sandbox is shown anything anyway.
  let folder: string;
  let home: string;
  before(() => {
    folder = mkdtempSync("/var/tmp/troupe-mounts-");
    mkdirSync(join(folder, "real-home", "runs"), { recursive: true });
    mkdirSync(join(folder, "data", "inner"), { recursive: true });
    home = join(folder, "home");
    symlinkSync(join(folder, "real-home"), home);
  });
  after(() => rmSync(folder, { recursive: true }));

  test("is mounted read-only at its own path, the outer folders first", () => {
    const shown = policyMounts([join(folder, "data/inner"), join(folder, "data")], home);
    const mounted = shown.flatMap((one) => (one.kind === "mount" && one.isReadOnly ? [one.path] : []));
    assert.deepEqual(mounted, [join(folder, "data"), join(folder, "data/inner")]);
  });

  test("is not the home, a part of it, or a folder above it, by whatever path", () => {
    for (const path of [home, join(home, "runs"), join(folder, "real-home"), folder, dirname(folder)])
      assert.throws(
        () => policyMounts([path], home),
        (error: unknown) => error instanceof AttemptFailure && error.code === "sandbox.policy_unmet",
        path,
      );
  });

  test("is there already when it is a part of the system", () => {
    assert.deepEqual(policyMounts(["/usr/bin"], home), []);
  });
});
