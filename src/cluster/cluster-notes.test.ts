// Notes of changes from other nodes, over real sockets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { peersWith, startNode } from "../../test/support/nodes.ts";
import { until } from "../../test/support/until.ts";
import { systemClock } from "../app/clock.ts";
import { ChangeNotes, everything, type Note } from "../runs/change-notes.ts";
import { EventFeed } from "../runs/feed.ts";
import { ClusterNotes } from "./cluster-notes.ts";
import type { NodeRecord } from "./nodes.ts";

const rowOf = (name: string, address: string | null) =>
  ({
    nodeId: `node_${name}`,
    owner: `node_${name}/1`,
    name,
    address,
    status: "ready",
  }) as unknown as NodeRecord;
const line = (type: string, payload: object = {}) =>
  `{"timestamp":"","type":"${type}","agent_id":null,"payload":${JSON.stringify(payload)}}`;
const runOf = (jobId: string): Note => ({ topic: "runs", id: "", jobId, status: "" });

/** Node "a", which knows of these rows. */
function listening(peers: ReturnType<typeof peersWith>, rows: readonly NodeRecord[]) {
  const feed = new EventFeed();
  const present = { rows: [rowOf("a", null), ...rows] };
  const notes = new ClusterNotes({
    own: new ChangeNotes(feed),
    nodes: { present: async () => present.rows },
    owner: () => "node_a/1",
    peers,
    clock: systemClock,
  });
  const told: Note[] = [];
  const source = notes.listen((note) => void told.push(note));
  const { ready } = source;
  return { feed, present, told, ready, [Symbol.dispose]: () => source.stop() };
}

test("changes of all nodes are told, each record of another one once for many changes", async () => {
  await using node = await startNode();
  using peers = peersWith();
  using here = listening(peers, [rowOf("b", node.address)]);
  await here.ready;
  assert.deepEqual(here.told, [], "nothing was missed before");
  here.feed.published("here-1", 1, [line("job_running")]);
  for (let seq = 1; seq <= 500; seq++) node.feed.published("there-1", seq, [line("log")]);
  node.feed.published("there-1", 501, [line("human_input_requested", { request_id: "ship" })]);
  const question: Note = { topic: "human", id: "ship", jobId: "there-1", status: "pending" };
  await until("the question", () => here.told.some(({ topic }) => topic === "human"));
  assert.deepEqual(here.told[0], runOf("here-1"));
  assert.ok(here.told.some(({ jobId, topic }) => jobId === "there-1" && topic === "runs"));
  assert.deepEqual(here.told.at(-1), question);
  assert.ok(here.told.length < 20, `${here.told.length}`);
});

test("a node whose stream is lost, and one that joins, may have changed anything before they stream again", async () => {
  const node = await startNode();
  using peers = peersWith();
  using here = listening(peers, [rowOf("b", node.address)]);
  await here.ready;
  await node.close();
  await using again = await startNode({ port: node.port });
  await until("its stream begins again", () => here.told.length > 0);
  assert.deepEqual(here.told[0], everything);
  again.feed.published("there-2", 1, [line("job_running")]);
  await until("its change", () => here.told.some(({ jobId }) => jobId === "there-2"));
  await using joined = await startNode();
  const before = here.told.length;
  here.present.rows.push(rowOf("c", joined.address));
  await until("the new node streams", () => here.told.length > before);
  assert.deepEqual(here.told[before], everything);
  assert.equal(again.warnings.length + joined.warnings.length, 0);
});

test("who listens is not kept waiting by a node that does not answer", async () => {
  using peers = peersWith();
  using here = listening(peers, [rowOf("b", "127.0.0.1:1")]);
  await here.ready;
});
