import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import type { JsonValue } from "../engine/json.ts";
import { filled, hasTemplate, templateProblems } from "./templates.ts";

const event = {
  type: "a",
  payload: { path: "/x", list: [1, { deep: "$event" }], template: { $schedule: "due_at" } },
};
const values = { event, dueAt: "2026-11-21T09:30:00.000Z" };

test("templates become what is in the event, wherever they are; other values stay", () => {
  const inputs = {
    file: { $event: "/payload/path" },
    all: [{ $event: "" }, { $event: "/payload/list/1/deep" }, 7],
    when: { $schedule: "due_at" },
    nothing: { $event: "/payload/none" },
    two: { $event: "/type", other: 1 },
    plain: { text: "$event" },
  };
  assert.deepEqual(filled(inputs, values), {
    file: "/x",
    all: [event, "$event", 7],
    when: "2026-11-21T09:30:00.000Z",
    nothing: null,
    two: { $event: "/type", other: 1 },
    plain: { text: "$event" },
  });
});

test("what an event brings is not taken for a template", () => {
  assert.deepEqual(filled({ of: { $event: "/payload/template" } }, values), { of: { $schedule: "due_at" } });
  assert.equal(filled({ $event: "/payload/path" }, { ...values, event: null }), null);
});

test("values without templates come back as they are", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const given = value as JsonValue;
      if (!hasTemplate(given)) assert.deepEqual(filled(given, values), given);
    }),
  );
});

test("templates put a batch of 4 MiB into inputs, and no event so often that the inputs have more than 8 MiB", () => {
  const payload = { lines: Array.from({ length: 2_048 }, () => "x".repeat(125)) };
  const times = (n: number) => filled(Array(n).fill({ $event: "" }), { ...values, event: payload });
  assert.equal((times(16) as readonly JsonValue[]).length, 16);
  assert.ok(times(33) === undefined);
});

test("templates that cannot be filled are told at their place", () => {
  const inputs = {
    a: [{ $event: "payload" }, { $event: 1 }],
    "b/c": { $schedule: "now" },
    d: { $event: "/ok" },
    e: { $schedule: "due_at" },
  };
  const paths = (ofEvent: boolean) => templateProblems(inputs, "/inputs", ofEvent).map(({ path }) => path);
  assert.deepEqual(paths(true), ["/inputs/a/0", "/inputs/a/1", "/inputs/b~1c"]);
  assert.deepEqual(paths(false), ["/inputs/a/0", "/inputs/a/1", "/inputs/b~1c", "/inputs/d"]);
});
