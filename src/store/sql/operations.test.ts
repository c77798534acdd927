// The contract of operations (src/operations/records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { operation } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import type { Operation } from "../../operations/records.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlOperationRecords } from "./operations.ts";

const ends: Partial<Operation> = { status: "completed", step: null, result: { a: 1 }, finishedAtMs: 100 };

contractOnEach(
  "the records of operations",
  ({ database }) => ({
    gateway: sqlGatewayRecords(database, systemClock.soon),
    operations: sqlOperationRecords(database),
  }),
  (test) => {
    test("an operation comes back as it was written, with its events in order", async ({
      gateway,
      operations,
    }) => {
      const first = operation(1);
      const failed = operation(1, {
        status: "failed",
        eventSeq: 2,
        error: { code: "disk_full", detail: "full", retryable: true },
        finishedAtMs: 9,
      });
      await gateway.write((writes) => writes.operations.insert(first, '{"id":1}'));
      assert.deepEqual(await operations.operation("op_0001"), first);
      assert.deepEqual(await operations.openOperations(), [first]);
      await gateway.write((writes) => writes.operations.save(failed, '{"id":2}'));
      assert.deepEqual(await operations.operation("op_0001"), failed);
      assert.deepEqual(await operations.openOperations(), []);
      assert.equal(await operations.operation("op_0002"), null);
      const events = (after: number, limit: number) => operations.operationEvents("op_0001", after, limit);
      assert.deepEqual(await events(0, 10), { firstSeq: 1, lines: ['{"id":1}', '{"id":2}'] });
      assert.deepEqual(await events(1, 10), { firstSeq: 2, lines: ['{"id":2}'] });
      assert.deepEqual(await events(0, 1), { firstSeq: 1, lines: ['{"id":1}'] });
      assert.deepEqual(await events(2, 10), { firstSeq: 3, lines: [] });
    });

    test("a change without an event changes the record alone", async ({ gateway, operations }) => {
      await gateway.write((writes) => writes.operations.insert(operation(1), "{}"));
      await gateway.write((writes) => writes.operations.save(operation(1, { result: { plan: [] } }), null));
      assert.deepEqual((await operations.operation("op_0001"))?.result, { plan: [] });
      assert.equal((await operations.operationEvents("op_0001", 0, 10)).lines.length, 1);
    });

    test("one that has ended is never changed again", async ({ gateway, operations }) => {
      const over = operation(1, { ...ends, eventSeq: 2 });
      await gateway.write((writes) => writes.operations.insert(operation(1), "{}"));
      await gateway.write((writes) => writes.operations.save(over, "{}"));
      const late = operation(1, { label: "late", eventSeq: 3 });
      assert.equal(await gateway.write((writes) => writes.operations.save(late, "{}")), false);
      assert.deepEqual(await operations.operation("op_0001"), over);
      assert.equal((await operations.operationEvents("op_0001", 0, 10)).lines.length, 2);
    });

    test("one that another program works on is not changed", async ({ gateway, operations }) => {
      const ours = operation(1, { owner: "b/1" });
      await gateway.write((writes) => writes.operations.insert(ours, "{}"));
      const save = (owner: string | null) =>
        gateway.write((writes) =>
          writes.operations.save(operation(1, { owner, label: "late", eventSeq: 2 }), "{}"),
        );
      for (const other of ["a/1", "b/2", null]) assert.equal(await save(other), false);
      assert.deepEqual(await operations.operation("op_0001"), ours);
      assert.equal((await operations.operationEvents("op_0001", 0, 10)).lines.length, 1);
      assert.equal(await save("b/1"), true);
    });

    test("the number of an event is not used twice", async ({ gateway, operations }) => {
      await gateway.write((writes) => writes.operations.insert(operation(1), "{}"));
      await assert.rejects(gateway.write((writes) => writes.operations.save(operation(1), "{}")));
      assert.equal((await operations.operation("op_0001"))?.eventSeq, 1);
    });

    test("the open operation of a target is found, also inside the transaction", async ({ gateway }) => {
      await gateway.write(async ({ operations }) => {
        assert.equal(await operations.open("target-1"), null);
        await operations.insert(operation(1), "{}");
        assert.equal((await operations.open("target-1"))?.operationId, "op_0001");
        assert.equal(await operations.open("target-2"), null);
        await operations.save(operation(1, { ...ends, eventSeq: 2 }), "{}");
        assert.equal(await operations.open("target-1"), null);
      });
    });

    test("pages go newest first, by target, by status, and by both", async ({ gateway, operations }) => {
      await gateway.write(async (writes) => {
        for (let n = 1; n <= 6; n++) {
          const changes = { target: n % 2 === 0 ? "even" : "odd", ...(n <= 3 && ends) };
          await writes.operations.insert(operation(n, changes), "{}");
        }
      });
      const ids = async (
        target: string | null,
        status: Operation["status"] | null,
        after: string | null = null,
      ) =>
        (await operations.operations({ target, status, limit: 2, after })).rows.map((one) => one.operationId);
      assert.deepEqual(await ids(null, null), ["op_0006", "op_0005"]);
      assert.deepEqual(await ids(null, null, "op_0002"), ["op_0001"]);
      assert.deepEqual(await ids("even", null), ["op_0006", "op_0004"]);
      assert.deepEqual(await ids("even", null, "op_0004"), ["op_0002"]);
      assert.deepEqual(await ids(null, "completed"), ["op_0003", "op_0002"]);
      assert.deepEqual(await ids("odd", "completed", "op_0003"), ["op_0001"]);
      assert.deepEqual(await ids("even", "failed"), []);
      assert.deepEqual(
        (await operations.openOperations()).map((one) => one.operationId),
        ["op_0004", "op_0005", "op_0006"],
      );
    });

    test("those that ended long ago are forgotten with their events, the oldest first", async ({
      gateway,
      operations,
    }) => {
      await gateway.write(async (writes) => {
        for (const n of [1, 2, 3]) {
          await writes.operations.insert(operation(n, { ...ends, finishedAtMs: n * 10 }), "{}");
        }
        await writes.operations.insert(operation(4), "{}");
      });
      assert.equal(await operations.forgetOperations(25, 1), 1);
      assert.equal(await operations.operation("op_0001"), null);
      assert.deepEqual((await operations.operationEvents("op_0001", 0, 10)).lines, []);
      assert.equal(await operations.forgetOperations(25, 10), 1);
      assert.equal(await operations.forgetOperations(25, 10), 0);
      assert.notEqual(await operations.operation("op_0003"), null);
      assert.notEqual(await operations.operation("op_0004"), null);
    });
  },
);
