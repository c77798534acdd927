import assert from "node:assert/strict";
import { test } from "node:test";
import { Timeline } from "../../../test/simulation/timeline.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { Envelope } from "../../engine/message.ts";
import type { Amounts } from "../../engine/resources.ts";
import type { Share } from "../../engine/share.ts";
import { noActions, type TaskOutcome, type TaskRef, type TaskStart } from "../../engine/task-port.ts";
import { PoolSlots } from "../../execution/pools.ts";
import { TaskHost } from "./host.ts";
import type { Connection, FromHost, FromOwner, Hello, Pong, ToHost } from "./messages.ts";

const LEASE_MS = 15_000;
const ref: TaskRef = { jobId: "j", taskSeq: 1, attempt: 1 };
const done: TaskOutcome = {
  kind: "succeeded",
  actions: noActions,
  command: null,
  artifacts: [],
  observation: null,
};

class Owner implements Connection<FromHost, FromOwner> {
  readonly got: FromHost[] = [];
  isClosed = false;
  onFrame: (frame: FromOwner) => void = () => {};
  onClose: () => void = () => {};
  #sent = 0;

  constructor(host: TaskHost) {
    host.accept(this);
  }

  write(frame: FromHost): void {
    this.got.push(frame);
  }

  close(): void {
    this.isClosed = true;
  }

  hello(owner: string, received: number | null = null, validMs = LEASE_MS): void {
    this.onFrame({ owner, received, validMs });
  }

  send(message: ToHost): void {
    this.onFrame({ seq: ++this.#sent, received: 0, message });
  }

  /** What came, without pings and what is free. */
  take(): FromHost[] {
    return this.got.splice(0).filter((frame) => !("ping" in frame || "free" in frame));
  }
}

/** @returns what tells whether the promise is resolved by now */
function isResolved(promise: Promise<void>): () => Promise<boolean> {
  let resolved = false;
  void promise.then(() => {
    resolved = true;
  });
  return async () => {
    await Promise.resolve();
    return resolved;
  };
}

/** As the version before tells it. */
const taskOf = (ref: TaskRef) => ({ ref, config: { kind: "executor" } }) as TaskStart;

function started(leaseMs = LEASE_MS, ownLeaseLeftMs = () => leaseMs) {
  const time = new Timeline();
  const clock = {
    nowMs: () => time.nowMs,
    steadyMs: () => time.nowMs,
    after: (delayMs: number, run: () => void) => time.plan(delayMs, null, run),
    soon: (run: () => void) => void time.plan(0, null, run),
  };
  const slots = new PoolSlots(
    { default: 2, gpu: 3 },
    () => "1",
    () => 0,
  );
  const stopped: TaskRef[] = [];
  const graces: (number | undefined)[] = [];
  const begun: TaskStart[] = [];
  const runner = {
    start: (task: TaskStart) => void begun.push(task),
    stop: (one: TaskRef, graceMs?: number) => {
      stopped.push(one);
      graces.push(graceMs);
    },
    send: () => {
      throw new RangeError("a fault");
    },
    respond: () => {},
  };
  const errors: unknown[] = [];
  const log = { warn: () => {}, error: ({ reason }: JsonObject) => void errors.push(reason) };
  const host = new TaskHost({
    nodeId: "h",
    host: () => "h/1",
    leaseMs,
    ownLeaseLeftMs,
    runner,
    slots,
    clock,
    log,
  });
  slots.onGranted = (key, lease) => host.granted(key, lease);
  const owner = new Owner(host);
  owner.hello("a/1");
  owner.send({ kind: "request", key: "j/1/1", number: 1, pool: "default", slots: 1 });
  owner.send({ kind: "start", task: taskOf(ref), outputs: [] });
  owner.take();
  return { time, host, slots, owner, stopped, graces, errors, begun };
}

test("the next start of an owner's node is answered when the attempts of the one before have ended", () => {
  const { host, slots, owner, stopped } = started();
  const next = new Owner(host);
  next.hello("a/2");
  assert.deepEqual(stopped, [ref]);
  assert.ok(owner.isClosed);
  assert.deepEqual(next.take(), []);
  host.taskEnded(ref, { kind: "interrupted", reason: "stopped" });
  assert.deepEqual(next.take()[0], { host: "h/1", received: 0 });
  assert.deepEqual(owner.take(), []);
  assert.equal(slots.snapshot().default?.in_use, 0);
});

test("an owner that comes back over a new connection gets what it has missed", () => {
  const { host, owner } = started();
  owner.onClose();
  host.taskEvents(ref, [{ type: "log", payload: { n: 1 } }]);
  host.taskEnded(ref, done);
  const next = new Owner(host);
  next.hello("a/1", 1);
  const [welcome, ...missed] = next.take();
  assert.deepEqual(welcome, { host: "h/1", received: 2 });
  assert.deepEqual(
    missed.map((frame) => ("message" in frame ? frame.message?.kind : null)),
    ["events", "ended"],
  );
});

test("an owner that comes back gets the end of its last attempt, which was lost with the connection", () => {
  const { host, owner } = started();
  host.taskEnded(ref, done);
  owner.onClose();
  const next = new Owner(host);
  next.hello("a/1", 1);
  const [welcome, missed] = next.take();
  assert.deepEqual(welcome, { host: "h/1", received: 2 });
  assert.deepEqual(missed, { seq: 2, received: 2, message: { kind: "ended", ref, outcome: done } });
});

test("an owner is told the latest count of free slots when it connects, and while it is connected", () => {
  const { host, slots, owner } = started();
  const told = ({ got }: Owner) => got.splice(0).flatMap((frame) => ("free" in frame ? [frame.free] : []));
  owner.onClose();
  for (let n = 0; n < 2_000; n++) host.tellFree(["default"]);
  assert.equal(host.backpressure(ref), null);
  slots.request("k/1/1", "gpu", 1);
  const next = new Owner(host);
  next.hello("a/1", 1);
  assert.deepEqual(told(next), [{ default: 1, gpu: 2 }]);
  slots.release("k/1/1");
  host.tellFree(["gpu"]);
  assert.deepEqual(told(next), [{ gpu: 3 }]);
  slots.request("k/1/1", "gpu", 2);
  slots.request("k/2/1", "gpu", 2);
  host.tellFree(["gpu"]);
  assert.deepEqual(told(next), [{ gpu: 0 }], "somebody waits for it");
});

test("an attempt is not read on while its own owner has not confirmed 1,000 messages", async () => {
  const { host, owner } = started();
  const other = new Owner(host);
  other.hello("b/1");
  const theirs = { ...ref, jobId: "k" };
  other.send({ kind: "request", key: "k/1/1", number: 1, pool: "default", slots: 1 });
  other.send({ kind: "start", task: taskOf(theirs), outputs: [] });
  // The grant was the first one.
  for (let n = 2; n <= 1_000; n++) {
    assert.equal(host.backpressure(ref), null);
    host.taskEvents(ref, []);
  }
  const room = host.backpressure(ref);
  assert.ok(room !== null);
  assert.equal(host.backpressure(theirs), null);
  assert.equal(host.backpressure({ ...ref, jobId: "own" }), null);
  host.taskEvents(ref, []);
  const isFree = isResolved(room);
  owner.onFrame({ seq: 0, received: 1 });
  assert.ok(!(await isFree()));
  owner.onFrame({ seq: 0, received: 2 });
  assert.ok(await isFree());
  assert.equal(host.backpressure(ref), null);
});

test("what is not read on is read to its end when its session is over", async () => {
  const { host } = started();
  for (let n = 2; n <= 1_000; n++) host.taskEvents(ref, []);
  const room = host.backpressure(ref);
  assert.ok(room !== null);
  const isFree = isResolved(room);
  host.endAll();
  assert.ok(await isFree());
  assert.equal(host.backpressure(ref), null);
});

test("an owner that hangs up while nothing of it runs has its session ended, else it may come back", () => {
  const { host, owner } = started();
  owner.onClose();
  const next = new Owner(host);
  next.hello("a/1", 1);
  host.taskEnded(ref, done);
  next.onFrame({ seq: 0, received: 2 });
  next.onClose();
  const last = new Owner(host);
  last.hello("a/1", 2);
  assert.deepEqual(last.take(), [{ host: "h/1", received: null }]);
});

test("one that says nothing first is cut off", () => {
  const { host } = started();
  const silent = new Owner(host);
  silent.send({ kind: "stop", ref });
  assert.ok(silent.isClosed);
  assert.ok(host.has(ref));
});

test("a session in which a message could not be handled is over, and the fault is logged", () => {
  const { host, owner, stopped, errors } = started();
  owner.send({ kind: "send", ref, envelope: {} as Envelope });
  assert.match(String(errors), /^RangeError: a fault\n {4}at /);
  assert.ok(owner.isClosed);
  assert.deepEqual(stopped, [ref]);
  const next = new Owner(host);
  next.hello("a/1", 1);
  host.taskEnded(ref, { kind: "interrupted", reason: "stopped" });
  assert.deepEqual(next.take(), [{ host: "h/1", received: null }]);
});

test("an owner that says no time is cut off, and what runs of it goes on", () => {
  const { host, owner, stopped, errors } = started();
  const next = new Owner(host);
  next.onFrame({ owner: "a/1", received: 1 } as Hello);
  assert.ok(next.isClosed);
  assert.deepEqual(next.got, []);
  owner.onFrame({ pong: 1 } as Pong);
  assert.ok(owner.isClosed);
  assert.deepEqual([stopped, errors], [[], []]);
});

test("a request whose resources cannot be read is refused, and so placed elsewhere", () => {
  const { owner, slots } = started();
  for (const cpuMillis of ["1000", -1, null]) {
    const demand = { cpuMillis, memoryBytes: 0, diskBytes: 0, gpus: 0 } as Amounts;
    owner.send({ kind: "request", key: "j/2/1", number: 7, pool: "default", slots: 1, demand });
    const [answer] = owner.take();
    assert.deepEqual(answer, { ...answer, message: { kind: "refused", key: "j/2/1", number: 7 } });
  }
  assert.ok(!owner.isClosed);
  assert.equal(slots.snapshot().default?.in_use, 1);
});

test("what the version before does not tell of a command is nothing", () => {
  const { begun } = started();
  assert.deepEqual(begun, [
    { ref, config: { kind: "executor", module: null, demand: null, ports: [], volumes: [] } },
  ]);
});

test("slots are granted by the shares that owners tell; one that tells none that can be read has a usual one", () => {
  const { owner, slots, host } = started();
  owner.send({ kind: "request", key: "j/2/1", number: 1, pool: "default", slots: 1 });
  const shares = [
    undefined,
    { job: "j", priority: "urgent", weight: 1 } as unknown as Share,
    { job: "j", priority: "high", weight: 101 } as const,
    { job: "one", priority: "normal", weight: 1 } as const,
    { job: "one", priority: "high", weight: 1 } as const,
  ];
  for (const [n, share] of shares.entries()) {
    const request = { kind: "request", key: `j/${n + 3}/1`, number: 1, pool: "default", slots: 1 } as const;
    owner.send(share === undefined ? request : { ...request, share });
  }
  owner.take();
  assert.equal(slots.snapshot().default?.queued, 5);
  const granted: string[] = [];
  slots.onGranted = (key) => {
    granted.push(key.split("/").at(-2)!);
    if (granted.length < 5) slots.release(key);
  };
  host.taskEnded(ref, { kind: "interrupted", reason: "stopped" });
  assert.deepEqual(granted, ["7", "3", "6", "4", "5"]);
});

test("a node that has no lease yet takes no owner", () => {
  let leftMs = LEASE_MS;
  const { host } = started(LEASE_MS, () => leftMs);
  const other = new Owner(host);
  leftMs = 0;
  other.hello("b/1");
  assert.ok(other.isClosed);
  leftMs = LEASE_MS;
  const later = new Owner(host);
  later.hello("b/1");
  assert.ok(!later.isClosed);
});

test("an owner that waits for its earlier attempts to end is cut off when the host's lease is lost", () => {
  const { host } = started();
  const next = new Owner(host);
  next.hello("a/2");
  host.endAll();
  assert.ok(next.isClosed);
  host.taskEnded(ref, { kind: "interrupted", reason: "stopped" });
  assert.deepEqual(next.take(), []);
});

test("an owner that had to wait for an answer has had its lease meanwhile", async () => {
  const { time, host } = started();
  const next = new Owner(host);
  next.hello("a/2", null, 5_000);
  const beganMs = time.nowMs;
  time.plan(1_000, null, () => host.taskEnded(ref, { kind: "interrupted", reason: "stopped" }));
  while (!next.isClosed) assert.ok(await time.step());
  assert.equal(time.nowMs - beganMs, 2_000);
});

test("an owner can stop and write to its own attempts only", () => {
  const { host, stopped } = started();
  const other = new Owner(host);
  other.hello("b/1");
  other.send({ kind: "stop", ref });
  assert.deepEqual(stopped, []);
});

test("attempts are ended a few seconds before the last answered ping is a lease ago", async () => {
  const { time, owner, stopped, graces } = started();
  const beganMs = time.nowMs;
  while (time.nowMs < beganMs + 6_000) await time.step();
  const ping = owner.got.findLast((frame) => "ping" in frame);
  assert.ok(ping !== undefined && "ping" in ping);
  const askedMs = time.nowMs;
  owner.onFrame({ pong: ping.ping, validMs: 12_000 });
  while (stopped.length === 0) assert.ok(await time.step());
  assert.ok(time.nowMs <= askedMs + 12_000 - 3_000, `${time.nowMs - askedMs} ms later`);
  assert.ok(time.nowMs >= beganMs + LEASE_MS - 3_000);
  // They are gone well before it is over.
  assert.deepEqual(graces, [1_000]);
});

test("attempts end before the rest of its own lease that an owner told of first, without any answer", async () => {
  const { time, host, stopped, slots } = started();
  host.taskEnded(ref, done);
  const late = new Owner(host);
  const beganMs = time.nowMs;
  late.hello("b/1", null, 5_000);
  const own = { ...ref, jobId: "k" };
  late.send({ kind: "request", key: "k/1/1", number: 1, pool: "default", slots: 1 });
  late.send({ kind: "start", task: taskOf(own), outputs: [] });
  assert.equal(slots.snapshot().default?.in_use, 1);
  while (stopped.length === 0) assert.ok(await time.step());
  assert.deepEqual([stopped, time.nowMs - beganMs], [[own], 2_000]);
});

test("an answer can make the time shorter that a hello gave, which was long on its way", async () => {
  const { time, owner, stopped } = started(60_000);
  const beganMs = time.nowMs;
  owner.hello("a/1", 1);
  const ping = owner.got.findLast((frame) => "ping" in frame);
  assert.ok(ping !== undefined && "ping" in ping);
  owner.onFrame({ pong: ping.ping, validMs: 4_000 });
  while (stopped.length === 0) assert.ok(await time.step());
  assert.equal(time.nowMs - beganMs, 1_000);
});

test("with the shortest lease too attempts go on while their owner answers", async () => {
  const leaseMs = 10_000;
  const { time, owner, stopped } = started(leaseMs);
  const beganMs = time.nowMs;
  while (time.nowMs < beganMs + 6 * leaseMs && stopped.length === 0) {
    assert.ok(await time.step());
    // The owner renews its own lease five times in a lease, and a little late.
    for (const frame of owner.got.splice(0))
      if ("ping" in frame) owner.onFrame({ pong: frame.ping, validMs: leaseMs - leaseMs / 5 - 500 });
  }
  assert.deepEqual(stopped, []);
});

test("a host that is drained refuses what waits and what comes, and ends at its deadline what still runs", async () => {
  const { time, host, owner, stopped, slots } = started();
  slots.request("own/1/1", "default", 1);
  const kinds = () => owner.take().map((frame) => ("message" in frame ? frame.message?.kind : null));
  owner.send({ kind: "request", key: "j/2/1", number: 2, pool: "default", slots: 1 });
  host.drain(time.nowMs + 5_000);
  owner.send({ kind: "request", key: "j/3/1", number: 3, pool: "default", slots: 1 });
  assert.deepEqual(kinds(), ["refused", "refused"]);
  assert.equal(slots.snapshot().default?.queued, 0);
  const beganMs = time.nowMs;
  while (stopped.length === 0) assert.ok(await time.step());
  assert.deepEqual(stopped, [ref]);
  assert.equal(time.nowMs, beganMs + 5_000);
  host.taskEnded(ref, { kind: "interrupted", reason: "stopped" });
  assert.equal(slots.snapshot().default?.in_use, 1);
  owner.take();
  host.undrain();
  owner.send({ kind: "request", key: "j/3/1", number: 4, pool: "default", slots: 1 });
  assert.deepEqual(kinds(), ["granted"]);
});

test("an attempt whose slots were granted before a drain runs until the deadline, and not behind it", async () => {
  const { time, host, owner, stopped } = started();
  host.taskEnded(ref, done);
  owner.send({ kind: "request", key: "j/2/1", number: 2, pool: "default", slots: 1 });
  host.drain(time.nowMs + 5_000);
  const late = { ...ref, taskSeq: 2 };
  const beganMs = time.nowMs;
  while (time.nowMs < beganMs + 5_000) await time.step();
  owner.send({ kind: "start", task: taskOf(late), outputs: [] });
  assert.deepEqual(stopped, [late]);
});
