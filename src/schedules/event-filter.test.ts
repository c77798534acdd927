import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { anyString, fc } from "../../test/support/fast-check.ts";
import type { JsonValue } from "../engine/json.ts";
import { describeEvents, type EventFilter, type FilterOp, filterProblem, passesAll } from "./event-filter.ts";

const event = {
  event_id: "e1",
  type: "file.arrived",
  source: null,
  payload: { path: "/in/a.pdf", size: 12, tags: ["a", { b: 1 }], none: null, is: true },
  received_at: "2026-11-21T09:30:00.000Z",
};
const passes = (path: string, op: FilterOp, value: JsonValue) => passesAll([{ path, op, value }], event);

/** What passes, and what does not. */
const cases: Readonly<Record<FilterOp, { yes: [string, JsonValue][]; no: [string, JsonValue][] }>> = {
  eq: {
    yes: [
      ["/type", "file.arrived"],
      ["/payload/size", 12],
      ["/payload/tags/1", { b: 1 }],
      ["/payload/none", null],
      ["/source", null],
    ],
    no: [
      ["/payload/size", "12"],
      ["/payload/other", null],
      ["/payload/tags", ["a"]],
    ],
  },
  ne: {
    yes: [
      ["/payload/size", 13],
      ["/payload/other", null],
    ],
    no: [["/payload/size", 12]],
  },
  in: {
    yes: [
      ["/payload/size", [1, 12]],
      ["/payload/tags/1", [{ b: 1 }]],
    ],
    no: [
      ["/payload/size", [1]],
      ["/payload/other", [null]],
      ["/payload/size", []],
    ],
  },
  prefix: {
    yes: [
      ["/payload/path", "/in/"],
      ["/payload/path", ""],
    ],
    no: [
      ["/payload/path", "in"],
      ["/payload/size", "1"],
      ["/payload/other", ""],
    ],
  },
  contains: {
    yes: [
      ["/payload/path", "a.p"],
      ["/payload/tags", { b: 1 }],
    ],
    no: [
      ["/payload/path", "x"],
      ["/payload/tags", "b"],
      ["/payload", "path"],
      ["/payload/path", 1],
    ],
  },
  exists: {
    yes: [
      ["/payload/none", true],
      ["/payload/other", false],
    ],
    no: [
      ["/payload/none", false],
      ["/payload/other", true],
    ],
  },
  gt: {
    yes: [
      ["/payload/size", 11],
      ["/received_at", "2026"],
    ],
    no: [
      ["/payload/size", 12],
      ["/payload/size", "11"],
      ["/payload/is", 0],
      ["/payload/other", 0],
    ],
  },
  gte: { yes: [["/payload/size", 12]], no: [["/payload/size", 13]] },
  lt: { yes: [["/payload/size", 13]], no: [["/payload/size", 12]] },
  lte: { yes: [["/payload/size", 12]], no: [["/payload/size", 11]] },
};

describe("a filter", () => {
  for (const [op, { yes, no }] of Object.entries(cases)) {
    test(`${op} lets pass what it says, and nothing else`, () => {
      for (const [path, value] of yes)
        assert.equal(passes(path, op as FilterOp, value), true, `${path} ${JSON.stringify(value)}`);
      for (const [path, value] of no)
        assert.equal(passes(path, op as FilterOp, value), false, `${path} ${JSON.stringify(value)}`);
    });
  }

  test("all of several must let an event pass; without any each event does", () => {
    const big = { path: "/payload/size", op: "gt", value: 10 } as const;
    const small = { path: "/payload/size", op: "lt", value: 10 } as const;
    assert.deepEqual(
      [[], [big], [small], [big, small]].map((filters) => passesAll(filters, event)),
      [true, true, false, false],
    );
  });

  test("never throws, whatever it compares with what", () => {
    const op = fc.constantFrom(...(Object.keys(cases) as FilterOp[]));
    const value = fc.jsonValue() as fc.Arbitrary<JsonValue>;
    fc.assert(
      fc.property(anyString(), op, value, value, (path, op, value, payload) => {
        const filter: EventFilter = { path, op, value };
        if (filterProblem(filter) === null)
          assert.equal(typeof passesAll([filter], { ...event, payload }), "boolean");
        if (op === "ne")
          assert.notEqual(passesAll([filter], event), passesAll([{ ...filter, op: "eq" }], event));
      }),
    );
  });

  test("that cannot be meant so is told at its field", () => {
    const problem = (path: string, op: FilterOp, value: JsonValue) =>
      filterProblem({ path, op, value })?.field ?? null;
    assert.equal(problem("payload", "eq", 1), "path");
    for (const [op, value] of [
      ["in", "a"],
      ["exists", 1],
      ["prefix", 1],
      ["gt", null],
      ["lte", [1]],
    ] as const)
      assert.equal(problem("/payload", op, value), "value", op);
    for (const [op, value] of [
      ["eq", null],
      ["ne", [1]],
      ["contains", {}],
      ["in", []],
      ["exists", false],
      ["lt", "a"],
    ] as const)
      assert.equal(problem("", op, value), null, op);
  });

  test("is described in English", () => {
    const filters = [
      { path: "/payload/size", op: "gte", value: 10 },
      { path: "/source", op: "in", value: ["a", "b"] },
    ] as const;
    assert.equal(
      describeEvents("file.arrived", filters),
      'When an event file.arrived comes and /payload/size is at least 10 and /source is one of ["a","b"]',
    );
  });
});
