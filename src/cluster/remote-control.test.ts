// Control of jobs that another node holds, over real sockets: the same answers and errors as from an engine.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { PlayedEngine, peersWith, SECRET, startNode } from "../../test/support/nodes.ts";
import { until } from "../../test/support/until.ts";
import { EngineUnavailable, JobUnwritable } from "../engine/batch.ts";
import type { Letter } from "../engine/job/messages.ts";
import type { JobControl } from "../engine/job-control.ts";
import type { HumanRequest } from "../engine/journal.ts";
import { type JobPlace, RemoteControl } from "./remote-control.ts";
import type { Peers } from "./wire/peers.ts";

const message = { agentId: "a", type: "t", body: { n: 1 }, correlationId: null, ttlMs: null };
const given = { requestId: "q", decision: "yes", comment: null, dataJson: null, principal: "p" };
const letter = (body: unknown): Letter =>
  ({ deadLetterId: "dl", agentId: "a", message: { body } }) as unknown as Letter;
const request: HumanRequest = {
  requestId: "q",
  eventSeq: 4,
  agentId: "a",
  taskSeq: 1,
  prompt: "?",
  allowedDecisions: ["yes"],
  dataSchemaJson: null,
  defaultAction: null,
  status: "answered",
  createdAtMs: 1,
  expiresAtMs: null,
  response: { decision: "yes", comment: null, dataJson: null, principal: "p", respondedAtMs: 2 },
};

/** This node, which holds nothing unless a test decides. */
function doorTo(peers: Peers, ...places: readonly (JobPlace | null)[]) {
  const engine = new PlayedEngine();
  engine.isHolding = false;
  let looks = 0;
  const placeOf = async () => places[Math.min(looks++, places.length - 1)] ?? null;
  const control = new RemoteControl({ engine, owner: () => "node_a/1", placeOf, peers });
  return { control, engine, looks: () => looks };
}

const calls: readonly (readonly [
  keyof JobControl,
  (control: JobControl) => Promise<unknown>,
  readonly unknown[],
])[] = [
  ["cancel", (control) => control.cancel("j"), [{ kind: "done", status: "cancelled" }]],
  ["pause", (control) => control.pause("j"), [{ kind: "done", status: "paused" }]],
  ["resume", (control) => control.resume("j"), [{ kind: "done", status: "running" }]],
  ["prioritize", (control) => control.prioritize("j", "high"), [{ kind: "done", status: "queued" }]],
  [
    "deliver",
    (control) => control.deliver("j", message),
    [{ kind: "accepted", messageId: "msg_1" }, { kind: "unknown_agent" }],
  ],
  [
    "answerHuman",
    (control) => control.answerHuman("j", given),
    [{ kind: "answered", request }, { kind: "already_closed", request }, { kind: "unknown_request" }],
  ],
  [
    "retryDeadLetters",
    (control) => control.retryDeadLetters("j", [letter(1)]),
    [
      { kind: "done", retried: ["dl"] },
      { kind: "done", retried: [] },
    ],
  ],
];

describe("a job that another node holds", () => {
  for (const [verb, call, answers] of calls) {
    test(`${verb} gets the answer of its engine`, async () => {
      await using node = await startNode();
      using peers = peersWith();
      const { control } = doorTo(peers, { owner: node.owner, address: node.address });
      for (const answer of answers) {
        node.engine.answer = async () => answer;
        assert.deepEqual(await call(control), answer);
      }
      assert.deepEqual(new Set(node.engine.asked.map(([asked]) => asked)), new Set([verb]));
    });

    test(`${verb} fails with the error of its engine`, async () => {
      await using node = await startNode();
      using peers = peersWith();
      const { control } = doorTo(peers, { owner: node.owner, address: node.address });
      for (const mayRetry of [true, false]) {
        node.engine.answer = () => Promise.reject(new EngineUnavailable("The disk is full.", mayRetry));
        await assert.rejects(call(control), {
          name: "EngineUnavailable",
          message: "The disk is full.",
          mayRetry,
        });
      }
      node.engine.answer = () => Promise.reject(new JobUnwritable("Too long."));
      await assert.rejects(call(control), { name: "JobUnwritable", message: "Too long." });
    });

    test(`${verb} of a job whose node is lost is unavailable, and may be tried again`, async () => {
      using peers = peersWith();
      const { control } = doorTo(peers, { owner: "node_b/1", address: null });
      const text = /its node is lost and its jobs are being taken over/;
      await assert.rejects(call(control), { name: "EngineUnavailable", mayRetry: true, message: text });
    });
  }

  test("is asked with what the caller gave", async () => {
    await using node = await startNode();
    using peers = peersWith();
    const { control } = doorTo(peers, { owner: node.owner, address: node.address });
    node.engine.answer = async () => ({ kind: "unknown_agent" });
    await control.deliver("j", message);
    assert.deepEqual(node.engine.asked, [["deliver", "j", message]]);
  });

  test("is not open when its node says that it has ended meanwhile", async () => {
    await using node = await startNode();
    using peers = peersWith();
    const { control, looks } = doorTo(peers, { owner: node.owner, address: node.address }, null);
    assert.deepEqual(await control.cancel("j"), { kind: "not_open" });
    assert.equal(looks(), 2);
  });

  test("and that was taken over meanwhile is looked up again, once", async () => {
    await using before = await startNode();
    await using now = await startNode();
    before.engine.isHolding = false;
    now.owner = "node_c/1";
    now.engine.answer = async () => ({ kind: "done", status: "cancelled" });
    using peers = peersWith();
    const old = { owner: before.owner, address: before.address };
    const moved = doorTo(peers, old, { owner: now.owner, address: now.address });
    assert.deepEqual(await moved.control.cancel("j"), { kind: "done", status: "cancelled" });
    const stuck = doorTo(peers, old);
    assert.deepEqual(await stuck.control.cancel("j"), { kind: "not_open" });
    assert.equal(stuck.looks(), 2);
  });

  test("is not asked at a node that is another owner by now", async () => {
    await using node = await startNode();
    node.engine.answer = async () => ({ kind: "done", status: "cancelled" });
    using peers = peersWith();
    const { control } = doorTo(peers, { owner: "node_b/0", address: node.address });
    assert.deepEqual(await control.cancel("j"), { kind: "not_open" });
    assert.deepEqual(node.engine.asked, []);
  });

  test("and that this node has just taken over is asked here", async () => {
    using peers = peersWith();
    const { control, engine } = doorTo(peers, { owner: "node_a/1", address: null });
    engine.answer = async () => ({ kind: "done", status: "paused" });
    assert.deepEqual(await control.pause("j"), { kind: "done", status: "paused" });
  });

  test("large letters go in several calls", async () => {
    await using node = await startNode();
    using peers = peersWith();
    const { control } = doorTo(peers, { owner: node.owner, address: node.address });
    node.engine.answer = async () => ({ kind: "done", retried: ["x"] });
    const letters = Array.from({ length: 5 }, () => letter("b".repeat(600_000)));
    assert.deepEqual(await control.retryDeadLetters("j", letters), {
      kind: "done",
      retried: ["x", "x", "x", "x", "x"],
    });
  });
});

test("a job that is held here is asked here, and nobody looks for its owner", async () => {
  using peers = peersWith();
  const { control, engine, looks } = doorTo(peers, null);
  engine.isHolding = true;
  engine.answer = async () => ({ kind: "done", status: "running" });
  assert.deepEqual(await control.resume("j"), { kind: "done", status: "running" });
  assert.equal(looks(), 0);
});

describe("a node that does not answer", () => {
  test("because nothing listens there: nothing has happened", async () => {
    const node = await startNode();
    await node.close();
    using peers = peersWith();
    const { control } = doorTo(peers, { owner: node.owner, address: node.address });
    await assert.rejects(control.deliver("j", message), { name: "EngineUnavailable", mayRetry: true });
  });

  test("because it is silent: the call ends when its time to connect is over", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const over = Promise.withResolvers<() => void>();
    using peers = peersWith(SECRET, {
      after: (_ms, run) => {
        over.resolve(run);
        return () => {};
      },
    });
    const { port } = silent.address() as { port: number };
    const { control } = doorTo(peers, { owner: "node_b/1", address: `127.0.0.1:${port}` });
    const asked = control.deliver("j", message);
    let isOver = false;
    const failed = assert.rejects(asked, { name: "EngineUnavailable", mayRetry: true });
    void failed.finally(() => {
      isOver = true;
    });
    (await over.promise)();
    await until("the end of the call", () => isOver);
    await failed;
    silent.close();
  });

  test("because it died on the way: a message may have arrived, and is not to be sent again blindly", async () => {
    for (const [call, mayRetry] of [
      [(control: JobControl) => control.deliver("j", message), false],
      [(control: JobControl) => control.cancel("j"), true],
    ] as const) {
      const node = await startNode();
      const arrived = Promise.withResolvers<void>();
      node.engine.answer = () => {
        arrived.resolve();
        return new Promise(() => {});
      };
      using peers = peersWith();
      const { control } = doorTo(peers, { owner: node.owner, address: node.address });
      const asked = call(control);
      const failed = assert.rejects(asked, { name: "EngineUnavailable", mayRetry });
      await arrived.promise;
      await node.close();
      await failed;
    }
  });

  test("is called again once it is back", async () => {
    const before = await startNode();
    using peers = peersWith();
    const { control } = doorTo(peers, { owner: before.owner, address: before.address });
    before.engine.answer = async () => ({ kind: "done", status: "paused" });
    await control.pause("j");
    await before.close();
    await assert.rejects(control.pause("j"), { name: "EngineUnavailable" });
    await using now = await startNode({ port: before.port });
    now.engine.answer = async () => ({ kind: "done", status: "running" });
    assert.deepEqual(await control.resume("j"), { kind: "done", status: "running" });
  });
});
