import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestName } from "./text.ts";

const known = ["jobs", "job", "events", "cancel"];

test("a swap, a missing, an extra and a wrong letter each find the name", () => {
  assert.equal(nearestName("ejvents", known), "events");
  assert.equal(nearestName("evnets", known), "events");
  assert.equal(nearestName("evnts", known), "events");
  assert.equal(nearestName("cansel", known), "cancel");
});

test("a swap of neighbours is one slip", () => assert.equal(nearestName("jbo", known, 1), "job"));

test("the nearest wins over the first near one", () =>
  assert.equal(nearestName("jobx", ["jobs!!", "jobs"], 3), "jobs"));

test("an unrelated name finds nothing", () => {
  assert.equal(nearestName("launch", known), null);
  assert.equal(nearestName("", known), null);
});

test("a known name is not misspelt", () => assert.equal(nearestName("job", known), null));
