// Queries of the runtime API: leniently read by the schemas of the gateway.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readQuery } from "./runtime-query.ts";
import { Type } from "./type.ts";

const schema = Type.Input({
  limit: Type.Integer({ minimum: 1 }),
  all: Type.Boolean({ default: true }),
  status: Type.OneOf(["open", "retried"]),
  since: Type.Time("From here on."),
  name: Type.String({ maxLength: 3 }),
});

test("parameters are converted, absent ones stay absent, and unknown ones are ignored", () => {
  const query = { limit: "7", all: "false", since: "2026-11-21t09:30:00z", name: "longer", page_size: "x" };
  assert.deepEqual(readQuery(schema, query), {
    limit: 7,
    all: false,
    since: "2026-11-21t09:30:00z",
    name: "longer",
  });
  assert.deepEqual(readQuery(schema, {}), {});
});

test("a wrong value is a 400 that names its parameter", () => {
  const cases: readonly [query: Record<string, unknown>, message: string][] = [
    [{ limit: "-1" }, "limit must be a whole number, such as limit=20"],
    [{ limit: ["1", "2"] }, "limit must be a whole number, such as limit=20"],
    [{ all: "1" }, "all must be true or false"],
    [{ status: "closed" }, "status must be one of open, retried"],
    [{ since: "now" }, "since must be a time such as 2026-11-21T09:30:00Z"],
    [{ name: ["a", "b"] }, "name may be given once"],
  ];
  for (const [query, message] of cases) {
    assert.throws(() => readQuery(schema, query), { status: 400, message });
  }
});
