// Puts and removals of one object by several programs, in every order of their steps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { type Content, type ObjectStore, SharedStoreUnavailable, type StoredObject } from "./object-store.ts";
import { Removals } from "./removals.ts";

const content: Content = { size: 3, sha256: "", read: async () => 0 };

/** A store in memory whose every step takes its turn, and whose clock goes on with each put. */
function memoryStore(step: (what: string) => Promise<unknown>) {
  const objects = new Map<string, StoredObject>();
  let nowMs = 1_000;
  const store: ObjectStore = {
    address: "memory",
    check: async () => {},
    async put(key, { size }) {
      await step(`put ${key}`);
      objects.set(key, { key, size, putAtMs: ++nowMs });
      await step(`put ${key}: answered`);
    },
    async find(key) {
      await step(`find ${key}`);
      const found = objects.get(key) ?? null;
      await step(`find ${key}: answered`);
      return found;
    },
    read: async () => null,
    async remove(key) {
      await step(`remove ${key}`);
      objects.delete(key);
    },
    async *pages(prefix) {
      await step(`list ${prefix}`);
      yield [...objects.values()].filter(({ key }) => key.startsWith(prefix));
    },
  };
  return { store, objects };
}

const OLD_MS = 5;

test("an object that is put while others remove an old one of its key stays, and no mark is left", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 3 }), async (scheduler, removers) => {
      const { store, objects } = memoryStore((what) => scheduler.schedule(Promise.resolve(), what));
      objects.set("blobs/aa", { key: "blobs/aa", size: 3, putAtMs: OLD_MS });
      const clock = {
        steadyMs: () => 0,
        after: (_ms: number, run: () => void) => {
          void scheduler.schedule(Promise.resolve(), "waited").then(run);
          return () => {};
        },
      };
      const all = [
        new Removals(store, "putter", clock).put("blobs/aa", content),
        ...Array.from({ length: removers }, (_, i) =>
          new Removals(store, `remover${i}`, clock).removeUnlessPutSince("blobs/aa", 500, false),
        ),
      ];
      await scheduler.waitFor(Promise.all(all));
      assert.deepEqual([...objects.keys()], ["blobs/aa"]);
      assert.ok((objects.get("blobs/aa")?.putAtMs ?? 0) > OLD_MS);
    }),
    { numRuns: 300 },
  );
});

test("a removal that took too long, or whose store is lost meanwhile, removes nothing", async () => {
  const { store, objects } = memoryStore(async () => {});
  objects.set("blobs/aa", { key: "blobs/aa", size: 3, putAtMs: OLD_MS });
  let steadyMs = 0;
  const late = new Removals(store, "late", { steadyMs: () => (steadyMs += 61_000), after: () => () => {} });
  assert.deepEqual(await late.removeUnlessPutSince("blobs/aa", 500, false), { kind: "kept" });
  const lost: ObjectStore = {
    ...store,
    put: () => Promise.reject(new SharedStoreUnavailable("memory", "did not answer")),
  };
  const losing = new Removals(lost, "losing", { steadyMs: () => 0, after: () => () => {} });
  await assert.rejects(losing.removeUnlessPutSince("blobs/aa", 500, false), SharedStoreUnavailable);
  assert.deepEqual([...objects.keys()], ["blobs/aa"]);
});

test("a put does not wait for the mark of a removal that was killed long ago", async () => {
  const { store, objects } = memoryStore(async () => {});
  objects.set("removing/blobs-aa.killed", { key: "removing/blobs-aa.killed", size: 0, putAtMs: -600_000 });
  const clock = { steadyMs: () => 0, after: () => assert.fail("it waits") };
  await new Removals(store, "putter", clock).put("blobs/aa", content);
  assert.ok(objects.has("blobs/aa"));
});
