// Goal: what is kept is bounded, read once, and never a failure. Method: readings that the test counts and settles.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manifestGraph } from "../../test/support/bundles.ts";
import { type Definition, DefinitionCache } from "./definition.ts";

function definitionOf(jsonChars: number): Definition {
  return { graph: manifestGraph, manifest: {}, manifestJson: "", configuration: null, jsonChars };
}

/** A cache whose definitions are as large as the number in their name; `reads` tells which were read. */
function makeCache(limits: { entriesMax?: number; charsMax?: number }) {
  const reads: string[] = [];
  const cache = new DefinitionCache({
    entriesMax: 10,
    charsMax: 1_000,
    ...limits,
    read: async (name) => {
      reads.push(name);
      return definitionOf(Number(name.slice(1)));
    },
  });
  return { cache, reads };
}

test("a definition is read once and stays the same object", async () => {
  const { cache, reads } = makeCache({});
  const first = await cache.get("a1");
  assert.equal(await cache.get("a1"), first);
  assert.deepEqual(reads, ["a1"]);
});

test("beyond the maximum the least recently used entry is removed", async () => {
  const { cache, reads } = makeCache({ entriesMax: 2 });
  for (const name of ["a1", "b1", "a1", "c1", "a1", "b1"]) await cache.get(name);
  assert.deepEqual(reads, ["a1", "b1", "c1", "b1"]);
});

test("past the number of characters the least recently used go", async () => {
  const { cache, reads } = makeCache({ charsMax: 100 });
  for (const name of ["a40", "b40", "c40", "b40", "a40", "c40"]) await cache.get(name);
  assert.deepEqual(reads, ["a40", "b40", "c40", "a40", "c40"]);
});

test("one that is larger than all there is room for is kept until another is asked for", async () => {
  const { cache, reads } = makeCache({ charsMax: 100 });
  for (const name of ["a500", "a500", "b1", "b1", "a500"]) await cache.get(name);
  assert.deepEqual(reads, ["a500", "b1", "a500"]);
});

test("removed entries no longer count", async () => {
  const { cache, reads } = makeCache({ charsMax: 100 });
  for (const name of ["a90", "b90", "c5", "b90", "c5"]) await cache.get(name);
  assert.deepEqual(reads, ["a90", "b90", "c5"]);
});

test("who asks while it is read waits for that reading, and a failure is not kept", async () => {
  let reads = 0;
  const cache = new DefinitionCache({
    entriesMax: 2,
    charsMax: 100,
    read: async () => {
      if (++reads === 1) throw new Error("gone");
      return definitionOf(1);
    },
  });
  const both = await Promise.allSettled([cache.get("x"), cache.get("x")]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  assert.equal(reads, 1);
  assert.equal(await cache.get("x"), await cache.get("x"));
  assert.equal(reads, 2);
});
