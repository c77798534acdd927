import assert from "node:assert/strict";
import { test } from "node:test";
import { Timeline } from "../../../test/simulation/timeline.ts";
import { plainShare } from "../../engine/share.ts";
import {
  noActions,
  type TaskListener,
  type TaskOutcome,
  type TaskRef,
  type TaskStart,
} from "../../engine/task-port.ts";
import type { Connection, FromHost, FromOwner } from "./messages.ts";
import { TaskPeers } from "./peers.ts";

const stopped: TaskOutcome = { kind: "interrupted", reason: "stopped" };

/** An owner with one attempt on a host, which the test plays. */
function started(ownLeaseLeftMs = 15_000, engine: Partial<TaskListener> = {}) {
  const time = new Timeline();
  const sent: FromOwner[] = [];
  const ended: TaskRef[] = [];
  const errors: unknown[] = [];
  const free: unknown[] = [];
  const connection: Connection<FromOwner, FromHost> = {
    write: (frame) => void sent.push(frame),
    close: () => {},
    onFrame: () => {},
    onClose: () => {},
  };
  const peers = new TaskPeers(
    {
      owner: () => "a/1",
      leaseMs: 15_000,
      ownLeaseLeftMs: () => ownLeaseLeftMs,
      connect: () => connection,
      declaredOutputs: () => [],
      listener: () => ({
        taskEvents: () => {},
        taskActions: () => {},
        taskEnded: (ref) => void ended.push(ref),
        backpressure: () => null,
        ...engine,
      }),
      clock: {
        nowMs: () => time.nowMs,
        steadyMs: () => time.nowMs,
        after: (delayMs, run) => time.plan(delayMs, null, run),
        soon: (run) => void time.plan(0, null, run),
      },
      log: { warn: () => {}, error: ({ reason }) => void errors.push(reason) },
    },
    { granted: () => {}, refused: () => {}, free: (_, pools) => void free.push(pools), lost: () => {} },
  );
  const ref: TaskRef = { jobId: "j", taskSeq: 1, attempt: 1 };
  const lease = { leaseId: "l", pool: "default", slots: 1, node: "h" };
  peers.request("h", "j/1/1", { pool: "default", slots: 1, demand: null, share: plainShare("j") });
  connection.onFrame({ host: "h/1", received: 0 });
  connection.onFrame({ seq: 1, received: 1, message: { kind: "granted", key: "j/1/1", number: 1, lease } });
  peers.start("h", { ref, lease } as TaskStart);
  const kinds = () => sent.flatMap((frame) => ("message" in frame ? [frame.message?.kind] : []));
  return { time, peers, connection, sent, ref, ended, errors, free, kinds };
}

test("a host is told first how long the owner's own lease lasts, at most a whole one", () => {
  assert.deepEqual(started(4_000).sent[0], { owner: "a/1", received: null, validMs: 4_000 });
  assert.deepEqual(started(40_000).sent[0], { owner: "a/1", received: null, validMs: 15_000 });
});

test("attempts elsewhere are stopped, and waited for until all have ended", async () => {
  const { time, peers, connection, ref, ended, kinds } = started();
  const stopping = peers.stopAll(8_000);
  assert.deepEqual(kinds(), ["request", "start", "stop"]);
  connection.onFrame({ seq: 2, received: 3, message: { kind: "ended", ref, outcome: stopped } });
  assert.equal(await stopping, true);
  assert.deepEqual(ended, [ref]);
  assert.equal(await peers.stopAll(8_000), true);
  // No time has passed for it.
  assert.equal(time.nowMs, started().time.nowMs);
});

test("a host that does not answer in time may still run what it was told to stop", async () => {
  const { time, peers } = started();
  let isClear: boolean | null = null;
  void peers.stopAll(8_000).then((answer) => {
    isClear = answer;
  });
  while (isClear === null) assert.ok(await time.step());
  assert.equal(isClear, false);
});

test("attempts of a node that loses its lease while it waits for their ends may still run", async () => {
  const { peers } = started();
  const stopping = peers.stopAll(8_000);
  peers.close();
  assert.equal(await stopping, false);
});

test("an attempt is over with the start of its node that ran it", async () => {
  const { peers, ref, ended } = started();
  const stopping = peers.stopAll(8_000);
  peers.ended("h/1");
  assert.equal(await stopping, true);
  assert.deepEqual(ended, [ref]);
});

test("nothing is taken or confirmed while the engine has no room for more reports, and then all of it, once", async () => {
  const seen: unknown[] = [];
  let room = Promise.withResolvers<void>();
  const { time, connection, sent, ref, ended } = started(15_000, {
    taskEvents: (_, [event]) => void seen.push(event?.payload),
    backpressure: () => (seen.length === 2 || seen.length === 42 ? room.promise : null),
  });
  const report = (n: number) => {
    const events = [{ type: "log", payload: n }] as const;
    connection.onFrame({ seq: n + 1, received: 2, message: { kind: "events", ref, events } });
  };
  const confirmed = () =>
    sent.flatMap((frame) => ("received" in frame && frame.received !== null ? [frame.received] : [])).at(-1);
  for (let n = 1; n <= 50; n++) report(n);
  connection.onFrame({ ping: 1 });
  assert.deepEqual(sent.at(-1), { pong: 1, validMs: 15_000 });
  assert.deepEqual(seen, [1, 2]);
  const beganMs = time.nowMs;
  while (time.nowMs < beganMs + 3_000) await time.step();
  assert.equal(confirmed(), 3);

  connection.onClose();
  sent.length = 0;
  while (sent.length === 0) assert.ok(await time.step());
  assert.equal(confirmed(), 3);
  connection.onFrame({ host: "h/1", received: 2 });
  for (let n = 3; n <= 50; n++) report(n);
  connection.onFrame({ seq: 52, received: 2, message: { kind: "ended", ref, outcome: stopped } });
  assert.equal(seen.length, 2);

  room.resolve();
  room = Promise.withResolvers<void>();
  await Promise.resolve();
  assert.equal(seen.length, 42, "there is room for so many");
  assert.deepEqual(ended, []);
  room.resolve();
  await Promise.resolve();
  assert.deepEqual(
    seen,
    Array.from({ length: 50 }, (_, i) => i + 1),
  );
  assert.deepEqual(ended, [ref]);
});

test("an attempt is lost with a report of it that could not be handled, which is logged", () => {
  const { peers, connection, sent, ref, ended, errors } = started(15_000, {
    taskActions: () => {
      throw new RangeError("a fault");
    },
  });
  connection.onFrame({ seq: 2, received: 2, message: { kind: "actions", ref, actions: noActions } });
  assert.match(String(errors), /^RangeError: a fault\n {4}at /);
  assert.deepEqual(ended, [ref]);
  peers.know("h");
  assert.deepEqual(sent.at(-1), { owner: "a/1", received: null, validMs: 15_000 }, "a session begins");
});

test("a host that does not say how many slots are free is cut off, and its attempts go on", async () => {
  const { time, connection, sent, ended, errors, free } = started();
  connection.onFrame({ free: { default: 2 } });
  connection.onFrame({ free: { default: "many" } } as unknown as FromHost);
  assert.deepEqual([free, ended, errors], [[{ default: 2 }], [], []]);
  sent.length = 0;
  while (sent.length === 0) assert.ok(await time.step());
  assert.deepEqual(sent, [{ owner: "a/1", received: 1, validMs: 15_000 }], "it goes on");
});
