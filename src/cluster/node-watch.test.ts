import assert from "node:assert/strict";
import { test } from "node:test";
import { JournalUnavailable } from "../engine/journal.ts";
import { NodeWatch } from "./node-watch.ts";
import type { NodeRecord } from "./nodes.ts";

const row = (nodeId: string, start: string, status = "ready", leaseLeftMs = 9_000) =>
  ({ nodeId, owner: `${nodeId}/${start}`, status, address: `${nodeId}:1`, leaseLeftMs }) as NodeRecord;

async function watching() {
  let rows: readonly NodeRecord[] | Error = [];
  let next = () => {};
  const others: string[] = [];
  const over: string[] = [];
  const delays: number[] = [];
  const watch = new NodeWatch({
    nodeId: "a",
    records: {
      present: async () => {
        if (rows instanceof Error) throw rows;
        return rows;
      },
    },
    everyMs: 3_000,
    onOthers: (now) => void others.push(now.map(({ owner, status }) => `${owner} ${status}`).join()),
    onOver: (owners) => void over.push(...owners),
    clock: {
      after: (delayMs, run) => {
        delays.push(delayMs);
        next = run;
        return () => {
          next = () => {};
        };
      },
    },
    log: { warn: () => {}, error: () => {} },
  });
  await watch.start();
  const look = async (now: readonly NodeRecord[] | Error) => {
    rows = now;
    next();
    watch.wake();
    await new Promise((resolve) => setImmediate(resolve));
    return { others: others.splice(0), over: over.splice(0) };
  };
  return { watch, look, delays };
}

test("the others are told with each reading, the node itself apart", async () => {
  const { watch, look } = await watching();
  const seen = await look([row("a", "1"), row("b", "1"), row("c", "1", "lost")]);
  assert.deepEqual(seen.others.at(-1), "b/1 ready,c/1 lost");
  assert.equal(watch.addressOf("b"), "b:1");
  assert.equal(watch.addressOf("d"), null);
  watch.stop();
  assert.deepEqual((await look([row("b", "2")])).others, []);
});

test("an owner is over once when its node is lost, has left or has another owner", async () => {
  const { look } = await watching();
  await look(["b", "d", "e", "f"].map((node) => row(node, "1")));
  const now = [row("b", "1", "lost"), row("e", "2"), row("f", "1", "draining")];
  assert.deepEqual((await look(now)).over, ["b/1", "d/1", "e/1"]);
  assert.deepEqual((await look(now)).over, []);
});

test("a reading that fails changes nothing, and the next one follows", async () => {
  const { look } = await watching();
  await look([row("b", "1")]);
  const failed = await look(new JournalUnavailable("The database does not answer."));
  assert.deepEqual(failed, { others: [], over: [] });
  assert.deepEqual((await look([])).over, ["b/1"]);
});

test("a lease that ends before the next reading is read when it ends; one that is over, or the own, is not waited for", async () => {
  const { look, delays } = await watching();
  await look([row("b", "1", "ready", 12_000), row("c", "1", "ready", 400)]);
  await look([row("a", "1", "ready", 100), row("b", "1", "ready", 9_000), row("c", "1", "lost", -20)]);
  assert.deepEqual(delays, [405, 3_000]);
});

test("a node that is alone reads nothing until it is told of others", async () => {
  const { watch, look, delays } = await watching();
  assert.deepEqual(delays, []);
  await look([row("a", "1"), row("b", "1")]);
  watch.wake();
  assert.deepEqual(delays, [3_000]);
  assert.deepEqual((await look([row("a", "1")])).over, ["b/1"]);
  assert.deepEqual(delays, [3_000]);
  assert.deepEqual((await look(new JournalUnavailable("No answer."))).others, []);
  assert.deepEqual(delays, [3_000, 3_000], "what cannot be read may have others");
});
