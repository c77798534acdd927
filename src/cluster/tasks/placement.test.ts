import assert from "node:assert/strict";
import { test } from "node:test";
import { type Candidate, choose } from "./placement.ts";

const own: Candidate = { nodeId: "own", isOwn: true, capacity: 4, free: 2, hasResources: true };
const node = (nodeId: string, capacity: number, free: number): Candidate => ({
  nodeId,
  isOwn: false,
  capacity,
  free,
  hasResources: true,
});

const cases: readonly (readonly [string, "local" | "spread" | "binpack", number, Candidate[], string])[] = [
  ["local stays at its own node, however full", "local", 1, [{ ...own, free: -9 }, node("a", 4, 4)], "own"],
  ["local without an own pool goes where most is free", "local", 1, [node("a", 8, 2), node("b", 4, 3)], "b"],
  ["spread takes the largest share of free slots", "spread", 1, [own, node("a", 8, 5), node("b", 4, 2)], "a"],
  ["spread takes its own node among equals", "spread", 1, [node("a", 4, 2), own, node("b", 8, 4)], "own"],
  [
    "spread prefers a node with room to an emptier one without",
    "spread",
    3,
    [node("a", 2, 2), node("b", 8, 3)],
    "b",
  ],
  ["binpack takes the fullest node with room", "binpack", 1, [own, node("a", 4, 1), node("b", 4, 4)], "a"],
  ["binpack passes over nodes without room", "binpack", 2, [own, node("a", 4, 1), node("b", 4, 4)], "own"],
  [
    "binpack without room anywhere takes the least loaded",
    "binpack",
    1,
    [node("a", 4, -8), node("b", 4, -2)],
    "b",
  ],
];

for (const [sentence, policy, slots, candidates, expected] of cases) {
  test(sentence, () => {
    const [first, ...others] = candidates;
    assert.equal(choose(policy, slots, [first!, ...others]).nodeId, expected);
  });
}
