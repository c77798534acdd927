// Where jobs are, as the rows of jobs and nodes say.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeRecord } from "./nodes.ts";
import { type JobHead, Places } from "./places.ts";

function world() {
  const owners = new Map<string, string>();
  const nodes: Pick<NodeRecord, "owner" | "address" | "status">[] = [];
  let nowMs = 0;
  let reads = 0;
  const places = new Places({
    jobs: {
      ownerOf: async (jobId) => owners.get(jobId) ?? null,
      runOf: async () => null,
      heads: async (ids) =>
        new Map(
          ids.map((id): [string, JobHead] => [
            id,
            { owner: owners.get(id) ?? null, seq: 1, isEnd: id === "over" },
          ]),
        ),
    },
    nodes: {
      async present() {
        reads++;
        return [...nodes] as unknown as readonly NodeRecord[];
      },
    },
    clock: { steadyMs: () => nowMs },
  });
  return {
    owners,
    nodes,
    places,
    reads: () => reads,
    pass(ms: number) {
      nowMs += ms;
    },
  };
}

test("a job is where its owner's node is reached, or nowhere while that is lost", async () => {
  const { owners, nodes, places, pass } = world();
  owners.set("j", "b/1").set("lost", "c/1");
  nodes.push({ owner: "b/1", address: "b:1", status: "ready" });
  assert.deepEqual(await places.placeOf("j"), { owner: "b/1", address: "b:1" });
  assert.deepEqual(await places.placeOf("lost"), { owner: "c/1", address: null });
  assert.equal(await places.placeOf("none"), null);
  for (const status of ["lost", "left"] as const) {
    nodes[0] = { owner: "b/1", address: "b:1", status };
    pass(1_000);
    assert.deepEqual(await places.placeOf("j"), { owner: "b/1", address: null });
  }
  nodes[0] = { owner: "b/1", address: "b:1", status: "draining" };
  pass(1_000);
  assert.deepEqual(await places.placeOf("j"), { owner: "b/1", address: "b:1" });
});

test("the nodes are read once a second, however many jobs a lost one has left", async () => {
  const { owners, nodes, places, reads, pass } = world();
  const jobs = Array.from({ length: 20 }, (_, i) => `j${i}`);
  for (const jobId of jobs) owners.set(jobId, "b/1");
  const sources = async () => [...(await places.heads(jobs)).values()].map(({ source }) => source);
  assert.ok((await sources()).every((source) => source === null));
  assert.equal(reads(), 1);
  nodes.push({ owner: "b/1", address: "b:1", status: "ready" });
  pass(1_000);
  assert.ok((await sources()).every((source) => source?.address === "b:1"));
  assert.equal(reads(), 2);
});

test("a node that has begun since is known at once", async () => {
  const { owners, nodes, places } = world();
  owners.set("j", "b/1").set("new", "c/1");
  nodes.push({ owner: "b/1", address: "b:1", status: "ready" });
  await places.placeOf("j");
  nodes.push({ owner: "c/1", address: "c:1", status: "ready" });
  assert.deepEqual(await places.placeOf("new"), { owner: "c/1", address: "c:1" });
});

test("those who look at one moment share a reading, and one who needs a newer one has it", async () => {
  const { owners, nodes, places, reads } = world();
  owners.set("j", "b/1").set("new", "c/1");
  nodes.push({ owner: "b/1", address: "b:1", status: "ready" });
  const looks = Array.from({ length: 50 }, () => places.living());
  nodes.push({ owner: "c/1", address: "c:1", status: "ready" });
  const place = places.placeOf("new");
  await Promise.all(looks);
  assert.deepEqual(await place, { owner: "c/1", address: "c:1" });
  assert.equal(reads(), 2);
});

test("nobody streams what is over", async () => {
  const { owners, nodes, places } = world();
  owners.set("over", "b/1");
  nodes.push({ owner: "b/1", address: "b:1", status: "ready" });
  assert.equal((await places.heads(["over"])).get("over")?.source, null);
});
