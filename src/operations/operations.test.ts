// Operations on a real store, with handlers that the test lets continue when it likes.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Gate, HandClock } from "../../test/support/core.ts";
import { until } from "../../test/support/until.ts";
import { systemClock, systemRandomness } from "../app/clock.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { JsonObject } from "../engine/json.ts";
import { DomainError } from "../lib/domain-error.ts";
import { EventFeed } from "../runs/feed.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { sqlOperationRecords } from "../store/sql/operations.ts";
import { sqlWorkOwners } from "../store/sql/work-owners.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { OperationFailed, OperationInterrupted } from "./failures.ts";
import { isOpen } from "./operation-change.ts";
import { Operations } from "./operations.ts";
import { alone } from "./ownership.ts";
import type { OperationContext } from "./progress.ts";
import type { Operation } from "./records.ts";

type Work = (context: OperationContext) => Promise<JsonObject>;

/** @param work what the handler does; failing operations are told to `failures` */
function start(work: Work) {
  const database = openSqlite(":memory:");
  const gateway = sqlGatewayRecords(database, systemClock.soon);
  const records = sqlOperationRecords(database);
  const clock = new HandClock();
  const feed = new EventFeed();
  const logged: string[] = [];
  const failures: string[] = [];
  const store = { brokenWrites: 0 };
  const handler = {
    steps: [
      { name: "first", label: "The first" },
      { name: "second", label: "The second" },
    ],
    run: async (context: OperationContext) => ({ result: await work(context) }),
    fail: async (_: unknown, operation: Operation) => {
      failures.push(operation.error?.code ?? "");
      return () => {};
    },
  };
  const make = (ownership = alone) =>
    new Operations({
      records,
      write: async (writing) => {
        if (store.brokenWrites-- > 0) throw new JournalUnavailable("the test has broken the store");
        return gateway.write(writing);
      },
      atOnceMax: 4,
      handlers: { blueprint_addition: handler, blueprint_removal: handler },
      ownership,
      feed,
      clock,
      newId: systemRandomness.id,
      log: { warn: () => {}, error: (fields) => void logged.push(String(fields.error)) },
    });
  const operations = make();
  return {
    clock,
    feed,
    logged,
    failures,
    store,
    operations,
    /** The next process. */
    make,

    request: (target = "digest", from = operations): Promise<Operation> =>
      gateway.write((writes) => from.request(writes, { kind: "blueprint_addition", target, request: {} })),

    async begin(target = "digest"): Promise<Operation> {
      const operation = await this.request(target);
      operations.begin(operation);
      return operation;
    },

    ended: ({ operationId }: Operation): Promise<Operation> =>
      until(`the end of ${operationId}`, async () => {
        const found = await records.operation(operationId);
        return found !== null && !isOpen(found) && found;
      }),

    takeOver: (from: string, to: string) => sqlWorkOwners(database).takeOver([from], to),

    find: async ({ operationId }: Operation) => (await records.operation(operationId))!,

    events: async ({ operationId }: Operation) =>
      (await records.operationEvents(operationId, 0, 1_000)).lines.map(
        (line) =>
          JSON.parse(line) as { id: number; type: string; payload: { percent: number; label: string } },
      ),

    async [Symbol.asyncDispose]() {
      await operations.stop();
      await database.close();
    },
  };
}

test("an operation is worked on to its end, and every event is published behind its commit", async () => {
  await using under = start(async (context) => {
    await context.step("first");
    await context.skip("second");
    return { made: 1 };
  });
  const published: string[] = [];
  const operation = await under.request();
  under.feed.subscribe(operation.operationId, ({ lines }) => void published.push(...lines));
  under.operations.begin(operation);
  under.operations.begin(operation);
  const end = await under.ended(operation);
  assert.deepEqual(end.result, { made: 1 });
  assert.deepEqual(
    end.steps.map(({ status }) => status),
    ["completed", "skipped"],
  );
  const types = (await under.events(operation)).map(({ type }) => type);
  assert.deepEqual(types, [
    "operation_pending",
    "operation_running",
    "operation_progress",
    "operation_progress",
    "operation_completed",
  ]);
  await until("all are published", () => published.length === 4);
});

test("of one target one operation is open, and the refusal names it; other targets are free", async () => {
  await using under = start(async () => ({}));
  const first = await under.request();
  await assert.rejects(under.request(), (error: unknown) => {
    assert.ok(error instanceof DomainError);
    assert.equal(error.code, "blueprint_busy");
    return error.message.includes(first.operationId);
  });
  under.operations.begin(await under.request("other"));
  under.operations.begin(first);
  await under.ended(first);
  await under.ended(await under.begin());
});

test("an expected failure has its code; an unexpected one is internal, and the log has its cause", async () => {
  const errors: Error[] = [
    new OperationFailed("disk_full", "no room"),
    new TypeError("a mistake in the code"),
  ];
  await using under = start(async (context) => {
    await context.step("first");
    throw errors.shift();
  });
  const foreseen = await under.ended(await under.begin());
  assert.deepEqual(foreseen.error, { code: "disk_full", detail: "no room", retryable: true });
  assert.equal(foreseen.steps[0]?.status, "failed");
  assert.deepEqual(under.logged, []);
  const unexpected = await under.ended(await under.begin());
  assert.equal(unexpected.error?.code, "internal");
  assert.doesNotMatch(unexpected.error?.detail ?? "", /mistake in the code/);
  assert.match(under.logged[0] ?? "", /a mistake in the code/);
  assert.deepEqual(under.failures, ["disk_full", "internal"]);
});

test("a store that takes nothing delays an operation, wherever it is, and never fails it", async () => {
  let calls = 0;
  await using under = start(async (context) => {
    calls++;
    await context.step("first");
    await context.step("second");
    return { calls };
  });
  for (let brokenFrom = 0; brokenFrom < 4; brokenFrom++) {
    const operation = await under.request(`target-${brokenFrom}`);
    under.store.brokenWrites = brokenFrom + 1;
    under.operations.begin(operation);
    const end = until("the end", async () => {
      under.clock.fire();
      const now = await under.find(operation);
      return !isOpen(now) && now;
    });
    assert.equal((await end).status, "completed");
    const ids = (await under.events(operation)).map(({ id }) => id);
    assert.deepEqual(
      ids,
      ids.map((_, i) => i + 1),
    );
  }
  assert.deepEqual(under.failures, []);
});

test("work that was interrupted from outside is done again", async () => {
  const errors = [new OperationInterrupted("a command was ended")];
  await using under = start(async () => {
    const error = errors.shift();
    if (error !== undefined) throw error;
    return {};
  });
  const operation = await under.begin();
  await until("it waits for another try", () => under.clock.timers === 1);
  under.clock.fire();
  assert.equal((await under.ended(operation)).status, "completed");
});

test("stopping interrupts what is under way, and the next process does it again from its beginning", async () => {
  const gate = new Gate();
  let calls = 0;
  await using under = start(async (context) => {
    const { operation, signal } = context;
    await context.step("first");
    if (++calls > 1) return { remembered: operation.result };
    await context.remember({ plan: [1] });
    const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    void gate.pass();
    await stopped;
    throw new Error("cut off");
  });
  const operation = await under.begin();
  await gate.reached;
  await under.operations.stop();
  assert.equal((await under.find(operation)).status, "running");
  assert.deepEqual(under.logged, []);
  const next = under.make();
  await next.recover();
  const end = await under.ended(operation);
  assert.deepEqual(end.result, { remembered: { plan: [1] } });
  await next.stop();
});

test("four are worked on at a time, in the order of their requests", async () => {
  const gates = new Map<string, Gate>();
  const begun: string[] = [];
  await using under = start(async ({ operation: { target } }) => {
    begun.push(target);
    await gates.get(target)?.pass();
    return {};
  });
  const targets = ["a", "b", "c", "d", "e", "f"];
  const asked: Operation[] = [];
  for (const target of targets) {
    gates.set(target, new Gate());
    asked.push(await under.begin(target));
  }
  await until("four have begun", () => begun.length >= 4);
  gates.get("c")?.open();
  await until("a fifth has begun", () => begun.length >= 5);
  const early = [...begun];
  // Before it is judged: what is held would keep a failing test from its end.
  for (const gate of gates.values()) gate.open();
  assert.deepEqual(early, ["a", "b", "c", "d", "e"]);
  for (const operation of asked) await under.ended(operation);
});

test("progress is reported now and then, and of what comes faster the latest counts", async () => {
  const told = new Gate();
  const go = new Gate();
  await using under = start(async (context) => {
    await context.step("first");
    for (let i = 1; i <= 1_000; i++) context.progress(i / 1_000, `${i} of 1000`);
    await told.pass();
    context.progress(1, "the very last");
    await go.pass();
    return {};
  });
  const operation = await under.begin();
  await told.reached;
  assert.equal(under.clock.timers, 1);
  under.clock.fire();
  await until("the report", async () => (await under.find(operation)).label === "1000 of 1000");
  assert.equal((await under.find(operation)).percent, 50);
  told.open();
  await go.reached;
  // The end forgets what was not reported yet.
  go.open();
  await under.ended(operation);
  const labels = (await under.events(operation)).map(({ payload }) => payload.label);
  assert.deepEqual(labels, ["Waiting to begin", "Beginning", "The first", "1000 of 1000", "Done"]);
});

describe("of two programs", () => {
  const named = (owner: string) => ({ ...alone, owner: () => owner });

  test("the one that has taken an operation on works on it, and no other", async () => {
    await using under = start(async () => ({}));
    const [a, b] = [under.make(named("a/1")), under.make(named("b/1"))];
    const operation = await under.request("digest", a);
    b.begin(operation);
    await b.recover();
    await b.stop();
    assert.equal((await under.find(operation)).status, "pending");
    await a.recover();
    assert.equal((await under.ended(operation)).status, "completed");
    await a.stop();
  });

  test("one that loses an operation while it works writes nothing more of it, and the other ends it", async () => {
    const inFirst = Promise.withResolvers<void>();
    const paused = Promise.withResolvers<void>();
    const works: string[] = [];
    await using under = start(async (context) => {
      works.push(context.operation.owner ?? "");
      await context.step("first");
      if (works.length === 1) {
        inFirst.resolve();
        await paused.promise;
        context.progress(0.5, "late");
      }
      await context.step("second");
      return { by: works.length };
    });
    const [a, b] = [under.make(named("a/1")), under.make(named("b/1"))];
    const operation = await under.request("digest", a);
    a.begin(operation);
    await inFirst.promise;
    await under.takeOver("a/1", "b/1");
    await b.recover();
    const ended = await under.ended(operation);
    paused.resolve();
    // Its writes come behind those of the first.
    const next = await under.request("letters", a);
    a.begin(next);
    await under.ended(next);
    await a.stop();
    await b.stop();
    assert.deepEqual(await under.find(operation), ended);
    assert.deepEqual([ended.status, ended.result, works], ["completed", { by: 2 }, ["a/1", "b/1", "a/1"]]);
    assert.deepEqual(under.logged, []);
    const events = await under.events(operation);
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, i) => i + 1),
    );
    assert.ok(!events.some(({ payload }) => payload.label === "late"));
  });
});
