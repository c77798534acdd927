import assert from "node:assert/strict";
import { test } from "node:test";
import { peersWith, startNode } from "../../../test/support/nodes.ts";
import type { Connection, FromHost, FromOwner } from "../tasks/messages.ts";
import { openTaskStreams, TaskStream } from "./task-stream.ts";

/** What comes over a connection, awaited. */
class End<Out, In> {
  readonly connection: Connection<Out, In>;
  readonly closed = Promise.withResolvers<void>();
  #frames: In[] = [];
  #wake = () => {};

  constructor(connection: Connection<Out, In>) {
    this.connection = connection;
    connection.onFrame = (frame) => {
      this.#frames.push(frame);
      this.#wake();
    };
    connection.onClose = () => this.closed.resolve();
  }

  async next(): Promise<In> {
    while (this.#frames.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#frames.shift()!;
  }
}

const hello = { owner: "node_a/1", received: null, validMs: 15_000 };

async function connected() {
  const accepted = Promise.withResolvers<End<FromHost, FromOwner>>();
  const accept = (connection: Connection<FromHost, FromOwner>) => accepted.resolve(new End(connection));
  const node = await startNode({ parts: { host: { accept } } });
  const peers = peersWith();
  const owner = new End(openTaskStreams(peers, () => node.address)("node_b"));
  owner.connection.write(hello);
  return { node, peers, owner, host: await accepted.promise };
}

test("frames come in order at both ends, those of megabytes too", async () => {
  const { node, peers, owner, host } = await connected();
  assert.deepEqual(await host.next(), hello);
  host.connection.write({ host: "node_b/1", received: 0 });
  assert.deepEqual(await owner.next(), { host: "node_b/1", received: 0 });
  const line = "ä".repeat(3_000_000);
  const ref = { jobId: "j", taskSeq: 1, attempt: 1 };
  owner.connection.write({ seq: 1, received: 0, message: { kind: "respond", ref, line } });
  owner.connection.write({ pong: 7, validMs: 1 });
  assert.deepEqual(await host.next(), { seq: 1, received: 0, message: { kind: "respond", ref, line } });
  assert.deepEqual(await host.next(), { pong: 7, validMs: 1 });
  peers.close();
  await node.close();
});

test("an end that closes is not told, the other one is", async () => {
  for (const closing of ["owner", "host"] as const) {
    const ends = await connected();
    const [near, far] = closing === "owner" ? [ends.owner, ends.host] : [ends.host, ends.owner];
    near.closed.promise.then(() => assert.fail("it was told"));
    near.connection.close();
    await far.closed.promise;
    ends.peers.close();
    await ends.node.close();
  }
});

test("both ends are told when the connection is lost", async () => {
  const { node, peers, owner, host } = await connected();
  peers.close();
  await Promise.all([owner.closed.promise, host.closed.promise]);
  await node.close();
});

test("a stream to a node that cannot be reached, or has no address, is closed", async () => {
  using peers = peersWith();
  for (const address of ["127.0.0.1:1", null]) {
    const end = new End(openTaskStreams(peers, () => address)("node_b"));
    end.connection.write(hello);
    await end.closed.promise;
  }
});

test("a stream that brings no JSON is closed, and one whose frame fails tells why", async () => {
  const ended: string[] = [];
  async function* parts(...texts: string[]) {
    try {
      for (const part of texts) yield { part, isLast: true };
      assert.fail("it is read on");
    } finally {
      ended.push(texts.join(" "));
    }
  }
  const stream = new TaskStream<never, number>();
  let isClosed = false;
  stream.onClose = () => {
    isClosed = true;
  };
  await stream.take(parts("1", "{", "2"));
  assert.ok(isClosed);

  const fails = new TaskStream<never, number>();
  const fault = new Error("a fault");
  fails.onFrame = () => {
    throw fault;
  };
  await assert.rejects(fails.take(parts("1", "2")), fault);
  assert.deepEqual(ended, ["1 { 2", "1 2"]);
});
