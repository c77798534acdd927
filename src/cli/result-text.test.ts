import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { failure as makeFailure } from "../../test/support/failures.ts";
import type { Failure } from "../engine/failure.ts";
import type { JsonValue } from "../engine/json.ts";
import type { Call } from "./command.ts";
import { endLines } from "./result-text.ts";
import { savedName } from "./save.ts";
import { readSubmission, withInputs } from "./submission.ts";
import { plainPaint } from "./terminal.ts";
import type { RunArtifact } from "./wire.ts";

function ended(
  status: string,
  result: JsonValue,
  files: readonly RunArtifact[] = [],
  failure: Failure | null = null,
) {
  const place = ({ name }: { readonly name: string }) => `/files/${name}`;
  const address = (path: string) => `http://h${path}`;
  return endLines({ id: "digest-1", status, result, failure, files, place, address }, plainPaint);
}

function file(name: string, kind: string, primary = false): RunArtifact {
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

  test("a huge result is cut, and says where the rest is", () => {
    const lines = ended(
      "completed",
      Array.from({ length: 1_000 }, (_, i) => i),
    );
    assert.equal(lines.length, 2 + 40 + 1);
    assert.equal(lines.at(-1), "  … 962 more lines: troupe job digest-1 --json");
  });
});

describe("names of saved files (S1)", () => {
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

describe("what is submitted", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-submission-"));
  after(() => rmSync(folder, { recursive: true }));
  const put = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const read = (target: string, options: Record<string, string> = {}) =>
    readSubmission({ words: [target], text: (name: string) => options[name] ?? null } as unknown as Call);

  test("inputs replace a manifest's own: one body for every entrypoint, or lists by name", () => {
    const manifest = { entrypoints: ["a", "b"], initial_inputs: { a: [1] } };
    assert.deepEqual(withInputs(manifest, { n: 1 }).initial_inputs, { a: [{ n: 1 }], b: [{ n: 1 }] });
    assert.deepEqual(withInputs(manifest, { $entrypoints: { b: [2, 3] } }).initial_inputs, {
      a: [1],
      b: [2, 3],
    });
    assert.deepEqual(withInputs(manifest, {}), manifest);
    assert.throws(() => withInputs(manifest, { $entrypoints: { b: [2] }, n: 1 }), /"n" beside \$entrypoints/);
    assert.throws(() => withInputs(manifest, { $entrypoints: [2] }), /must be an object/);
  });

  test("a folder is submitted by its real path, with inputs and configuration", () => {
    const submission = read(folder, { input: put("in.json", '{"n":1}'), config: put("c.json", '{"a":1}') });
    assert.equal(submission.kind, "folder");
    assert.deepEqual(submission.kind === "folder" && [submission.inputs, submission.config], [
      { n: 1 },
      { a: 1 },
    ]);
  });

  test("a manifest beside payloads is submitted alone, with a hint", async () => {
    const manifest = put("manifest.json", '{"entrypoints":["a"]}');
    const bare = read(manifest, { input: put("in.json", '{"n":5}') });
    assert.deepEqual(bare, {
      kind: "manifest",
      manifest: { entrypoints: ["a"], initial_inputs: { a: [{ n: 5 }] } },
      hint: null,
    });
    await mkdir(join(folder, "payloads"));
    const hinted = read(manifest);
    assert.match(hinted.kind === "manifest" ? (hinted.hint ?? "") : "", /troupe run .* brings them/);
  });

  const refused: readonly (readonly [string, () => unknown, RegExp])[] = [
    ["a path that is not there", () => read(join(folder, "nothing")), /does not exist/],
    ["text that is no JSON", () => read(put("x.json", "{")), /x\.json is no JSON: .*/],
    [
      "bytes that are no text",
      () => read(put("y.json", new Uint8Array([0xff, 0xfe]))),
      /y\.json is not UTF-8/,
    ],
    [
      "JSON that nests too deep",
      () => read(put("z.json", "[".repeat(200) + "]".repeat(200))),
      /nests deeper than 100/,
    ],
    ["a manifest that is a list", () => read(put("l.json", "[]")), /not a manifest/],
    [
      "a configuration that is a list",
      () => read(folder, { config: put("l.json", "[]") }),
      /--config: .* holds no JSON object/,
    ],
    [
      "an input that is no object",
      () => read(folder, { input: put("l.json", "[]") }),
      /--input: .* holds no JSON object/,
    ],
    [
      "a configuration for a bare manifest",
      () => read(put("m.json", "{}"), { config: put("c.json", "{}") }),
      /belongs to a bundle folder/,
    ],
    [
      "an input that is not there",
      () => read(folder, { input: join(folder, "none.json") }),
      /none\.json cannot be read/,
    ],
  ];
  for (const [name, act, message] of refused) {
    test(`refused: ${name}`, () => void assert.throws(act, { name: "UsageError", message }));
  }
});
