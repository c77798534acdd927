// Rules over a configuration: every kind of rule, and a simple model that the real judge has to agree with.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import type { InputRule } from "../../blueprints/package-description.ts";
import type { JsonValue } from "../../engine/json.ts";
import { brokenRules } from "./input-rules.ts";

const anything: InputRule = {
  path: "value",
  required: false,
  type: null,
  enum: null,
  min: null,
  max: null,
  pattern: null,
  exists: null,
  extensions: null,
  message: null,
};

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "rules-"));
  await mkdir(join(folder, "payload/worker"), { recursive: true });
  await writeFile(join(folder, "payload/worker/prompt.txt"), "");
  await writeFile(join(folder, "outside.txt"), "");
  await symlink(join(folder, "outside.txt"), join(folder, "payload/worker/leak.txt"));
});
after(() => rm(folder, { recursive: true, force: true }));

async function judge(rule: Partial<InputRule>, value: JsonValue | undefined): Promise<string | null> {
  const configuration = value === undefined ? {} : { value };
  const roots = [join(folder, "payload"), join(folder, "payload/worker")];
  const problems = await brokenRules([{ ...anything, ...rule }], configuration, roots);
  for (const { part, path } of problems) assert.deepEqual([part, path], ["configuration", "/value"]);
  return problems[0]?.code ?? null;
}

test("required: a value must be there, and not be blank", async () => {
  for (const blank of [undefined, null, "", "  "]) {
    assert.equal(await judge({ required: true }, blank), "required");
    assert.equal(await judge({ type: "number", enum: [1], exists: "file" }, blank), null);
  }
  assert.equal(await judge({ required: true }, 0), null);
  assert.equal(await judge({ required: true }, false), null);
});

test("type: each type takes its own values only", async () => {
  const values: Readonly<Record<string, JsonValue>> = {
    string: "text",
    number: 1.5,
    boolean: true,
    object: { a: 1 },
    array: [1],
  };
  for (const [type, good] of Object.entries(values)) {
    for (const [other, value] of Object.entries(values)) {
      const expected = type === other ? null : "wrong_type";
      assert.equal(await judge({ type: type as InputRule["type"] }, value), expected, `${type} ${other}`);
    }
    assert.equal(await judge({ type: "integer" }, good), "wrong_type");
  }
  assert.equal(await judge({ type: "integer" }, 3), null);
  assert.equal(await judge({ type: "number" }, 3), null);
});

test("enum: one of the values, compared as JSON", async () => {
  assert.equal(await judge({ enum: ["a", { x: [1] }] }, { x: [1] }), null);
  assert.equal(await judge({ enum: ["a", 1] }, "1"), "not_allowed");
});

test("min and max: a number's value, a text's characters, a list's items", async () => {
  assert.equal(await judge({ min: 2, max: 3 }, 1.9), "too_small");
  assert.equal(await judge({ min: 2, max: 3 }, 3.1), "too_large");
  assert.equal(await judge({ min: 2, max: 3 }, "😀😀"), null);
  assert.equal(await judge({ max: 3 }, "😀😀😀😀"), "too_large");
  assert.equal(await judge({ min: 2 }, [1]), "too_small");
  assert.equal(await judge({ min: 1 }, true), "wrong_type");
});

test("pattern: found anywhere unless it is anchored, unicode-aware, in texts only", async () => {
  assert.equal(await judge({ pattern: "b+" }, "abbc"), null);
  assert.equal(await judge({ pattern: "^b+$" }, "abbc"), "pattern");
  assert.equal(await judge({ pattern: "^.$" }, "😀"), null);
  assert.equal(await judge({ pattern: "1" }, 1), "wrong_type");
  assert.equal(await judge({ pattern: "a" }, "a".repeat(10_001)), "pattern");
});

test("a pattern that would take years is aborted, and so are the remaining ones", async () => {
  const evil = { ...anything, path: "text", pattern: "^(a+)+$" };
  const rules = Array.from({ length: 50 }, () => evil);
  const problems = await brokenRules(rules, { text: `${"a".repeat(60)}b` }, []);
  assert.equal(problems.length, 50);
  assert.match(problems[0]!.message, /takes too long/);
});

test("extensions: the end of the name, whatever its case", async () => {
  assert.equal(await judge({ extensions: [".txt", ".md"] }, "/a/NOTE.TXT"), null);
  assert.equal(await judge({ extensions: [".txt", ".md"] }, "readme.MD"), null);
  assert.equal(await judge({ extensions: [".tar.gz"] }, "x.tar.gz"), null);
  assert.equal(await judge({ extensions: [".gz"] }, "gz"), "wrong_extension");
  assert.equal(await judge({ extensions: [".md"] }, "md"), "wrong_extension");
});

test("exists: an absolute path on this machine, a relative one inside the payload and nowhere else", async () => {
  const file = join(folder, "outside.txt");
  assert.equal(await judge({ exists: "file" }, file), null);
  assert.equal(await judge({ exists: "folder" }, file), "not_found");
  assert.equal(await judge({ exists: "folder" }, folder), null);
  assert.equal(await judge({ exists: "file" }, "worker/prompt.txt"), null);
  assert.equal(await judge({ exists: "file" }, "prompt.txt"), null, "relative to what a node uploads");
  assert.equal(await judge({ exists: "file" }, "../outside.txt"), "not_found");
  assert.equal(await judge({ exists: "file" }, "leak.txt"), "not_found", "through a symlink");
  assert.equal(await judge({ exists: "file" }, "a\0b"), "wrong_type");
  assert.equal(await judge({ exists: "file" }, 7), "wrong_type");
});

test("a rule's own message replaces the standard one, which never shows the value", async () => {
  const rules = [
    { ...anything, path: "api_key", min: 100 },
    { ...anything, path: "name", required: true, message: "Tell us your name." },
  ];
  const problems = await brokenRules(rules, { api_key: "topsecret" }, []);
  assert.deepEqual(
    problems.map(({ message }) => message),
    ["api_key must have at least 100 characters", "Tell us your name."],
  );
});

test("judge and model agree on any rule and any value", async () => {
  const rule = fc.record({
    required: fc.boolean(),
    type: fc.constantFrom("string", "number", "integer", "boolean", "object", "array", null),
    enum: fc.option(fc.array(fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<JsonValue>, { maxLength: 3 }), {
      nil: null,
    }),
    min: fc.option(fc.integer({ min: -2, max: 4 }), { nil: null }),
    max: fc.option(fc.integer({ min: -2, max: 4 }), { nil: null }),
    extensions: fc.option(fc.constantFrom<string[]>([".a"], [".a", ".b"]), { nil: null }),
  });
  const value = fc.oneof(
    fc.constantFrom<JsonValue | undefined>(undefined, null, "", " ", "x.a", "X.B", "abcdef", true, {}, []),
    fc.integer({ min: -4, max: 6 }),
    fc.double({ noNaN: true, min: -4, max: 6 }),
    fc.array(fc.integer(), { maxLength: 6 }),
  );
  await fc.assert(
    fc.asyncProperty(rule, value, async (given, at) => {
      assert.equal((await judge(given as Partial<InputRule>, at as JsonValue)) === null, accepts(given, at));
    }),
    { numRuns: 500 },
  );
});

test("a long text is measured once, however many rules it has", async () => {
  const text = "é".repeat(1_000_000);
  const rules = Array.from({ length: 10_000 }, (): InputRule => ({ ...anything, max: 9e6, exists: "file" }));
  const problems = await brokenRules(rules, { value: text }, [folder]);
  assert.deepEqual(new Set(problems.map(({ code }) => code)), new Set(["not_found"]));
});

/** What a rule says, as plainly as it can be written. */
function accepts(rule: Partial<InputRule>, value: unknown): boolean {
  if (value === undefined || value === null || (typeof value === "string" && value.trim() === "")) {
    return rule.required !== true;
  }
  const type = Array.isArray(value) ? "array" : typeof value;
  if (rule.type === "integer" && !(type === "number" && (value as number) % 1 === 0)) return false;
  if (rule.type && rule.type !== "integer" && rule.type !== type) return false;
  if (rule.enum && !rule.enum.some((one) => JSON.stringify(one) === JSON.stringify(value) || one === value)) {
    return false;
  }
  const sized = type === "number" ? (value as number) : (value as { length?: number }).length;
  const isBounded = rule.min !== null || rule.max !== null;
  if (isBounded && sized === undefined) return false;
  if (rule.min !== null && sized! < rule.min!) return false;
  if (rule.max !== null && sized! > rule.max!) return false;
  return (
    !rule.extensions ||
    (type === "string" && rule.extensions.some((one) => `${value}`.toLowerCase().endsWith(one)))
  );
}
