// Turns: what has one name comes one after the other, whatever becomes of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedMutex } from "./async.ts";

test("work under one key does not overlap, and keeps the order of arrival; other keys go on", async () => {
  const turns = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const first = turns.run("a", async () => {
    seen.push("first begins");
    await gate.promise;
    seen.push("first ends");
    return 1;
  });
  const second = turns.run("a", async () => seen.push("second"));
  const third = turns.run("a", async () => seen.push("third"));
  await turns.run("b", async () => seen.push("other"));
  assert.deepEqual(seen, ["first begins", "other"]);
  gate.resolve();
  assert.equal(await first, 1);
  await Promise.all([second, third]);
  assert.deepEqual(seen, ["first begins", "other", "first ends", "second", "third"]);
});

test("work that fails fails for its caller alone", async () => {
  const turns = new KeyedMutex();
  const failing = turns.run("a", async () => {
    throw new Error("no");
  });
  const next = turns.run("a", async () => "well");
  await assert.rejects(failing, /no/);
  assert.equal(await next, "well");
});

test("work that throws before it awaits anything rejects, and lets the next one go on", async () => {
  const turns = new KeyedMutex();
  const failing = turns.run("a", () => {
    throw new Error("at once");
  });
  await assert.rejects(failing, /at once/);
  assert.equal(await turns.run("a", async () => 2), 2);
});
