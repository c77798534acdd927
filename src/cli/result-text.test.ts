import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { failure as makeFailure } from "../../test/support/failures.ts";
import type { Failure } from "../engine/failure.ts";
import type { JsonValue } from "../engine/json.ts";
import type { RunFile } from "./named-run.ts";
import { endLines } from "./result-text.ts";
import { savedName } from "./save.ts";
import { plainPaint } from "./terminal.ts";

function ended(
  status: string,
  result: JsonValue,
  files: readonly RunFile[] = [],
  failure: Failure | null = null,
) {
  const run = { id: "digest-1", address: (path: string) => `http://h${path}` };
  const placed = files.map((file) => ({ ...file, place: `/files/${file.name}` }));
  return endLines(run, { status, result, failure: failure && { ...failure } }, placed, plainPaint);
}

function file(name: string, kind: RunFile["kind"], primary = false): RunFile {
  return {
    artifact_id: `art_${name}`,
    name,
    kind,
    title: null,
    primary,
    size: 2_048,
    sha256: "",
    content_type: "text/plain",
    url: "",
    created_at: "2026-11-21T09:30:00.000Z",
    producer: "work",
  };
}

describe("how a run ended", () => {
  test("shows the result, and outputs before other files, the primary one first", () => {
    const lines = ended("completed", { words: 3 }, [
      file("log.txt", "artifact"),
      file("a.md", "output"),
      file("b.html", "output", true),
    ]);
    assert.deepEqual(lines, [
      "digest-1 completed",
      "Result",
      "  {",
      '    "words": 3',
      "  }",
      "Outputs",
      "  b.html  2.0 KiB  /files/b.html",
      "  a.md    2.0 KiB  /files/a.md",
      "  … and 1 more file",
    ]);
  });

  test("shows the files of a run without outputs, and nothing where there is nothing", () => {
    assert.deepEqual(ended("completed", {}, [file("x", "artifact")]).slice(1), [
      "Files",
      "  x  2.0 KiB  /files/x",
    ]);
    assert.deepEqual(ended("cancelled", null), ["digest-1 cancelled"]);
  });

  test("shows a failure with where, why, the end of stderr and what to do", () => {
    const failure = makeFailure("executor.exit_nonzero", "count.py ended with exit code 2\nTraceback", {
      agentId: "w\x1b[2J",
      attempt: 2,
      maxAttempts: 2,
      exitCode: 2,
      stderrTail: "one\n\x1b[31mtwo\n",
    });
    assert.deepEqual(ended("failed", null, [], failure), [
      "digest-1 failed",
      "executor.exit_nonzero: count.py ended with exit code 2",
      "  agent w, attempt 2 of 2, exit code 2",
      "  Traceback",
      "  stderr:",
      "  | one",
      "  | two",
      `  What to do: ${failure.remediation}`,
      "  Read on:",
      "    http://h/api/v1/runs/run_1",
      "    http://h/api/v1/runs/run_1/logs?agent_id=w%1B%5B2J",
      "    http://h/api/v1/runs/run_1/timeline",
    ]);
    const ofOldServer = { ...failure, links: undefined } as unknown as Failure;
    assert.equal(ended("failed", null, [], ofOldServer).at(-1), `  What to do: ${failure.remediation}`);
  });

  test("a huge result is cut, with a hint where the rest is", () => {
    const lines = ended(
      "completed",
      Array.from({ length: 1_000 }, (_, i) => i),
    );
    assert.equal(lines.length, 2 + 40 + 1);
    assert.equal(lines.at(-1), "  … 962 more lines: troupe job digest-1 --json");
  });
});

describe("names of saved files", () => {
  const names: readonly (readonly [string, string])[] = [
    ["report.html", "report.html"],
    ["a/b.txt", "a/b.txt"],
    ["../../etc/passwd", "etc/passwd"],
    ["/etc/passwd", "etc/passwd"],
    ["a/../../b", "b"],
    ["a\nb", "a_b"],
    ["..", "art_1"],
  ];
  for (const [name, expected] of names) {
    test(JSON.stringify(name), () => {
      assert.equal(savedName({ artifact_id: "art_1", name }, new Set()), expected);
    });
  }
  test("two files of one name do not overwrite each other", () => {
    const taken = new Set<string>();
    assert.equal(savedName({ artifact_id: "art_1", name: "r.md" }, taken), "r.md");
    assert.equal(savedName({ artifact_id: "art_2", name: "R.md" }, taken), "art_2/R.md");
  });
});
