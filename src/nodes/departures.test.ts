// How a node is seen out, at exact moments: rows that the test sets, and a clock that it moves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HandClock } from "../../test/support/core.ts";
import type { NodeRecord } from "../cluster/nodes.ts";
import type { JsonObject } from "../engine/json.ts";
import type { OperationContext } from "../operations/progress.ts";
import { type ChangeWrites, Departures } from "./departures.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

class World {
  readonly clock = new HandClock();
  readonly done: string[] = [];
  row: NodeRecord | null = {
    nodeId: "n1",
    name: "one",
    owner: "n1/1",
    status: "ready",
    jobsOwned: 0,
    tasksRunning: 0,
    heartbeatAtMs: 1,
    drainUntilMs: null,
  } as NodeRecord;
  result: JsonObject | null = null;
  readonly abort = new AbortController();

  set(more: Partial<NodeRecord>): void {
    this.row = { ...this.row!, ...more };
  }

  run(last: "end" | "remove" = "end", request: JsonObject = { deadline_seconds: 60 }) {
    const world = this;
    const context = {
      get operation() {
        return { target: "n1", request, result: world.result };
      },
      signal: this.abort.signal,
      step: async () => {},
      skip: async () => {},
      progress: () => {},
      remember: async (result: JsonObject) => {
        this.result = result;
      },
    } as unknown as OperationContext;
    const orders = {
      find: async () => this.row,
      order: async () => {
        this.done.push("drain");
        this.set({ status: "draining", drainUntilMs: 60_000 });
        return this.row;
      },
    };
    const writes = {
      nodes: { end: async () => this.done.push("end"), remove: async () => this.done.push("remove") },
    } as unknown as ChangeWrites;
    const ending = new Departures({ orders, clock: this.clock }, last)
      .run(context)
      .then(({ commit }) => commit!(writes, 0));
    ending.catch(() => {});
    return ending;
  }

  /** The next look, at a row that was changed. */
  async look(more: Partial<NodeRecord>): Promise<void> {
    await settled();
    this.set(more);
    this.clock.fire();
    await settled();
  }
}

test("a node goes when it says that nothing is left, and knew that it is drained when it said so", async () => {
  const world = new World();
  const ending = world.run();
  await world.look({});
  await world.look({ heartbeatAtMs: 2 });
  assert.deepEqual(world.done, ["drain"]);
  await world.look({ heartbeatAtMs: 3, jobsOwned: 1 });
  await world.look({ heartbeatAtMs: 4, jobsOwned: 0, tasksRunning: 1 });
  assert.deepEqual(world.done, ["drain"]);
  await world.look({ heartbeatAtMs: 5, tasksRunning: 0 });
  assert.deepEqual(world.done, ["drain", "end"]);
  await ending;
});

test("a node goes when what is left does not end behind its deadline", async () => {
  const world = new World();
  const ending = world.run("remove");
  for (const heartbeatAtMs of [2, 3, 75_000]) await world.look({ heartbeatAtMs, jobsOwned: 1 });
  assert.deepEqual(world.done, ["drain"]);
  await world.look({ heartbeatAtMs: 75_001 });
  assert.deepEqual(world.done, ["drain", "remove"]);
  await ending;
});

test("a node that is lost meanwhile goes at once, and so does one that is forced to", async () => {
  const world = new World();
  const ending = world.run();
  await world.look({ status: "lost" });
  await ending;
  await world.run("remove", { force: true });
  assert.deepEqual(world.done, ["drain", "end", "remove"]);
});

test("a node whose drain is taken back stays, also for a program that has taken the operation over", async () => {
  const world = new World();
  const ending = world.run("remove");
  await world.look({ drainUntilMs: null, status: "ready" });
  assert.deepEqual(world.done, ["drain"]);
  await assert.rejects(ending, { code: "node_stays", message: /its drain was taken back/ });
  await assert.rejects(world.run("remove"), { code: "node_stays" });
  assert.deepEqual(world.done, ["drain"]);
});

test("a node whose program starts again has not left, and is asked again if it is to be removed", async () => {
  const world = new World();
  const leaving = world.run();
  await world.look({ owner: "n1/2", drainUntilMs: null, status: "ready" });
  assert.deepEqual(world.done, ["drain"]);
  await assert.rejects(leaving, { code: "node_stays", message: /its program was started again/ });
  const removing = world.run("remove");
  for (const heartbeatAtMs of [6, 7, 8]) await world.look({ heartbeatAtMs });
  await removing;
  assert.deepEqual(world.done, ["drain", "drain", "remove"]);
});

test("nothing is done to a node when the program that sees it out stops", async () => {
  const world = new World();
  const ending = world.run();
  await settled();
  world.abort.abort();
  await assert.rejects(ending, { name: "OperationInterrupted" });
  assert.deepEqual(world.done, ["drain"]);
});
