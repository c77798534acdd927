import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import {
  completed,
  entered,
  eventLine,
  failed,
  isOpen,
  type OperationChange,
  pending,
  progressed,
  running,
  skipped,
} from "./operation-change.ts";
import type { Operation } from "./records.ts";

const names = ["check", "package", "finish"] as const;

function begun(): OperationChange {
  const steps = names.map((name) => ({ name, label: `Doing ${name}` }));
  const asked = { operationId: "op_1", kind: "blueprint_addition", target: "digest", request: {} } as const;
  return pending({ ...asked, steps, owner: null, nowMs: 1_000 });
}

type Change = (before: Operation, nowMs: number) => OperationChange | null;

const aName = fc.constantFrom(...names);
const aChange: fc.Arbitrary<Change> = fc.oneof(
  aName.map(
    (name): Change =>
      (before, nowMs) =>
        entered(before, name, nowMs),
  ),
  aName.map(
    (name): Change =>
      (before, nowMs) =>
        skipped(before, name, nowMs),
  ),
  fc.tuple(fc.double({ min: -1, max: 2, noNaN: true }), fc.string()).map(
    ([fraction, label]): Change =>
      (before, nowMs) =>
        progressed(before, fraction, label, nowMs),
  ),
  fc.constant((before: Operation, nowMs: number) => running(before, nowMs)),
);

const statuses = ["pending", "running", "completed", "skipped"];

test("whatever a handler does, in whatever order: numbers are gapless, and nothing goes back", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(aChange, fc.integer({ min: -500, max: 500 }))),
      fc.boolean(),
      (changes, isFine) => {
        let now = begun().operation;
        for (const [change, aheadMs] of changes) {
          const made = change(now, 1_000 + aheadMs);
          if (made === null) continue;
          const { operation } = made;
          assert.equal(operation.eventSeq, now.eventSeq + 1);
          assert.ok(operation.percent >= now.percent && operation.percent < 100);
          assert.ok(operation.updatedAtMs >= now.updatedAtMs);
          for (const [i, step] of operation.steps.entries()) {
            const before = now.steps[i]?.status ?? "";
            assert.ok(
              statuses.indexOf(step.status) >= statuses.indexOf(before),
              `${before} to ${step.status}`,
            );
          }
          assert.ok(operation.steps.filter(({ status }) => status === "running").length <= names.length);
          now = operation;
        }
        const error = { code: "internal", detail: "no", retryable: true };
        const end = isFine ? completed(now, { a: 1 }, 2_000) : failed(now, error, 2_000);
        assert.equal(isOpen(end.operation), false);
        assert.equal(end.operation.percent === 100, isFine);
        assert.ok(end.operation.steps.every(({ status }) => status !== "running"));
      },
    ),
  );
});

test("a step that is entered again after a restart is passed in silence", () => {
  const first = entered(running(begun().operation, 1).operation, "check", 2);
  assert.ok(first !== null);
  const second = entered(first.operation, "package", 3);
  assert.ok(second !== null);
  assert.deepEqual(
    second.operation.steps.map(({ status }) => status),
    ["completed", "running", "pending"],
  );
  assert.equal(entered(second.operation, "check", 4), null);
  assert.equal(entered(second.operation, "package", 4), null);
  assert.equal(skipped(second.operation, "check", 4), null);
});

test("an event's line has its number and its type; only the last one has a result or an error", () => {
  const first = JSON.parse(eventLine(begun())) as Record<string, unknown>;
  assert.deepEqual(Object.keys(first), ["id", "operation_id", "timestamp", "type", "payload"]);
  assert.equal(first.id, 1);
  assert.equal(first.type, "operation_pending");
  assert.equal(first.timestamp, "1970-01-01T00:00:01.000Z");
  assert.ok(!("result" in (first.payload as object)));
  const last = JSON.parse(eventLine(completed(begun().operation, { a: 1 }, 2_000))) as Record<
    string,
    unknown
  >;
  assert.deepEqual((last.payload as { result: unknown }).result, { a: 1 });
});

test("a step that nobody has declared is a mistake of the handler", () => {
  assert.throws(() => entered(begun().operation, "other", 1), /no step "other"/);
});
