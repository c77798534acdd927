import assert from "node:assert/strict";
import { test } from "node:test";
import { graph } from "../../test/support/graphs.ts";
import type { JsonObject } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import { withInputs } from "./inputs.ts";

const router = (node_id: string): JsonObject => ({ node_id, agent_type: "router" });
const more = { entrypoints: ["a", "b"], initial_inputs: { a: [{ own: 1 }] } };
const parsed = parseManifest(graph("g", [router("a"), router("b"), router("c")], [], more));
assert.ok(parsed.kind === "valid");
const given = parsed.graph;

/** What each entrypoint gets. */
function bodies(inputs: JsonObject): readonly unknown[] {
  const answer = withInputs(given, inputs);
  assert.ok(answer.kind === "ok");
  return given.entrypoints.map((index) => answer.graph.initialInputs.get(index) ?? null);
}

function problems(inputs: JsonObject): readonly string[] {
  const answer = withInputs(given, inputs);
  assert.ok(answer.kind === "invalid");
  return answer.problems;
}

test("inputs are one body for all, or bodies for some; {} leaves the manifest's own", () => {
  assert.deepEqual(bodies({}), [[{ own: 1 }], null]);
  assert.deepEqual(bodies({ n: 1 }), [[{ n: 1 }], [{ n: 1 }]]);
  assert.deepEqual(bodies({ $entrypoints: { b: [1, 2] } }), [[{ own: 1 }], [1, 2]]);
  assert.deepEqual(bodies({ $entrypoints: { a: [], b: 3 } }), [null, [3]]);
});

test("inputs that would reach no node are refused: unknown entrypoints, and fields beside $entrypoints", () => {
  assert.deepEqual(problems({ $entrypoints: { c: [1], b: [1] }, n: 1 }), [
    'inputs has "n" beside $entrypoints, which would reach nobody',
    'inputs.$entrypoints names "c", which is no entrypoint',
  ]);
});

test("of many problems the first hundred are reported, and of a long name its beginning", () => {
  const names = Array.from({ length: 1_000 }, (_, i) => [`${i}${"x".repeat(10_000)}`, []]);
  const told = problems({ $entrypoints: Object.fromEntries(names) });
  assert.equal(told.length, 101);
  assert.equal(told.at(-1), "and 900 more");
  assert.ok(told.join("").length < 20_000);
});
