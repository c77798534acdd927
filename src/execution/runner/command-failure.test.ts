// Whose fault it is that a command did not run: told by the system's code, whatever the message says.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failureOfSpawn, failureOfSystem } from "./command-failure.ts";

const systemError = (code: string) => Object.assign(new Error(`spawn ${code}`), { code });

describe("a command that could not be started", () => {
  it("failed for want of processes, files or memory when the machine has none left", () => {
    const cases = [
      ["EAGAIN", /too many processes; raise the limit \(ulimit -u\)/],
      ["EMFILE", /too many open files; raise the limit \(ulimit -n\)/],
      ["ENFILE", /too many open files/],
      ["ENOMEM", /no memory left/],
    ] as const;
    for (const [code, expected] of cases) {
      for (const failure of [
        failureOfSpawn("python3", "/work", systemError(code)),
        failureOfSystem("The agent's workspace could not be prepared", systemError(code)),
      ]) {
        assert.equal(failure.code, "resource.exhausted");
        assert.match(failure.message, expected);
      }
    }
  });

  it("failed by the runtime's disk when that is full, read-only or broken", () => {
    for (const code of ["ENOSPC", "EDQUOT", "EROFS", "EIO"]) {
      const failure = failureOfSpawn("python3", "/work", systemError(code));
      assert.equal(failure.code, "executor.workspace_failed", code);
      assert.match(failure.message, new RegExp(`\\(${code}`));
    }
  });

  it("failed by the bundle for every other reason, and the words say which", () => {
    const cases = [
      ["ENOENT", /no such program/],
      ["EACCES", /chmod \+x/],
      ["E2BIG", /too large/],
    ] as const;
    for (const [code, expected] of cases) {
      const failure = failureOfSpawn("tool", "/work", systemError(code));
      assert.equal(failure.code, "executor.spawn_failed");
      assert.match(failure.message, expected);
    }
    assert.equal(failureOfSpawn("tool", "/work", new Error("odd.")).code, "executor.spawn_failed");
  });
});
