// Taking over the work of lost programs, on names alone; on real records: store/sql/work-owners.test.ts and
// launch/shared-runs.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HandClock } from "../../test/support/core.ts";
import { Takeover } from "./takeover.ts";

function start(given: { readonly owner?: string | null } = {}) {
  const clock = new HandClock();
  const scene = {
    owner: given.owner === undefined ? "me/1" : given.owner,
    owners: [] as (string | null)[],
    living: new Set<string>(),
    isBroken: false,
    closed: null as string | null,
    /** What was done, in order. */
    done: [] as string[],
    warned: 0,
  };
  const takeover = new Takeover({
    ownership: {
      owner: () => scene.owner,
      living: async () => {
        scene.done.push("living");
        return scene.living;
      },
    },
    records: {
      owners: async () => {
        if (scene.isBroken) throw new Error("the test has broken the store");
        scene.done.push("owners");
        return scene.owners;
      },
      takeOver: async (lost, owner) => void scene.done.push(`${lost.join(" ")} to ${owner}`),
      leaveRuns: async (owner) => void scene.done.push(`runs of ${owner} left`),
    },
    closed: () => scene.closed,
    settle: async () => void scene.done.push("settle"),
    clock,
    log: { warn: () => void scene.warned++, error: () => {} },
  });
  const clear = () => scene.done.splice(0);
  return {
    scene,
    takeover,
    /** Lets the next look come. @returns what it did */
    async look(): Promise<readonly string[]> {
      clear();
      clock.fire();
      await clock.whenTimers(1);
      return clear();
    },
    async lost(): Promise<readonly string[]> {
      clear();
      takeover.lost();
      await clock.whenTimers(1);
      return clear();
    },
    timers: () => clock.timers,
  };
}

test("a program that is alone looks at nothing", async () => {
  const { takeover, scene, timers } = start({ owner: null });
  await takeover.start();
  assert.deepEqual([scene.done, timers()], [[], 0]);
});

test("a start takes over what lost programs have left, before it goes on", async () => {
  const { takeover, scene, timers } = start();
  scene.owners = ["me/1", "lost/1", "living/1", null];
  scene.living = new Set(["living/1", "me/1"]);
  await takeover.start();
  assert.deepEqual(scene.done, ["owners", "living", "lost/1  to me/1"]);
  assert.equal(timers(), 1);
  await takeover.stop();
});

test("a start fails when the records cannot be read", async () => {
  const { takeover, scene } = start();
  scene.isBroken = true;
  await assert.rejects(takeover.start(), /broken/);
});

test("it is looked at again after a while, with one statement when there is nothing of others", async () => {
  const under = start();
  await under.takeover.start();
  assert.deepEqual(await under.look(), ["owners"]);
  under.scene.owners = ["living/1"];
  under.scene.living = new Set(["living/1"]);
  assert.deepEqual(await under.look(), ["owners", "living"]);
  under.scene.living.clear();
  assert.deepEqual(await under.look(), ["owners", "living", "living/1 to me/1", "settle"]);
  await under.takeover.stop();
});

test("what another program has given to this one is begun at the next look", async () => {
  const under = start();
  await under.takeover.start();
  under.scene.owners = ["me/1"];
  assert.deepEqual(await under.look(), ["owners", "settle"]);
  await under.takeover.stop();
});

test("while a program is drained it takes nothing over, and leaves its runs to others", async () => {
  const under = start();
  await under.takeover.start();
  under.scene.closed = "drained";
  under.scene.owners = ["me/1", "lost/1", null];
  assert.deepEqual(await under.look(), ["owners", "runs of me/1 left"]);
  under.scene.owners = [null];
  assert.deepEqual(await under.look(), ["owners"]);
  under.scene.closed = null;
  assert.deepEqual(await under.look(), ["owners", "living", " to me/1", "settle"]);
  await under.takeover.stop();
});

test("every sixth look sees to what is this program's already", async () => {
  const under = start();
  await under.takeover.start();
  const looks: (readonly string[])[] = [];
  for (let n = 0; n < 6; n++) looks.push(await under.look());
  assert.deepEqual(
    looks.map((look) => look.includes("settle")),
    [false, false, false, false, false, true],
  );
  await under.takeover.stop();
});

test("when a program is lost, its work and what it was asked to do here are seen to at once", async () => {
  const under = start();
  await under.takeover.start();
  assert.deepEqual(await under.lost(), ["owners", "settle"]);
  await under.takeover.stop();
});

test("what a program has taken on under a name that it has lost is its own again under the next", async () => {
  const under = start();
  await under.takeover.start();
  under.scene.owners = ["me/1"];
  under.scene.owner = "me/2";
  assert.deepEqual(await under.look(), ["owners", "living", "me/1 to me/2", "settle"]);
  await under.takeover.stop();
});

test("a look that fails is made again, and nothing looks after the stop", async () => {
  const under = start();
  await under.takeover.start();
  under.scene.isBroken = true;
  assert.deepEqual(await under.look(), []);
  assert.equal(under.scene.warned, 1);
  under.scene.isBroken = false;
  assert.deepEqual(await under.look(), ["owners"]);
  await under.takeover.stop();
  under.takeover.lost();
  await under.takeover.stop();
  assert.deepEqual([under.scene.done, under.timers()], [[], 0]);
});
