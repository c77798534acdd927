import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { eventually, realClock } from "../../../test/support/execution.ts";
import { ModulePool, type ModuleThread, type ThreadRequest } from "./module-pool.ts";

describe("the pool of module threads", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-modules-"));
    for (const name of ["a.mjs", "b.mjs"]) writeFileSync(join(folder, name), "export function handle() {}");
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  function requester(pool: ModulePool) {
    const threads: ModuleThread[] = [];
    return {
      threads,
      ask: (name: string): ThreadRequest => {
        const request = {
          path: join(folder, name),
          start: (thread: ModuleThread) => threads.push(thread),
          takenBack: false,
        };
        pool.request(request);
        return request;
      },
    };
  }

  it("has no more threads than it may, and serves those who wait in order", async () => {
    const pool = new ModulePool(realClock, 2);
    const { threads, ask } = requester(pool);
    for (const name of ["a.mjs", "a.mjs", "a.mjs", "b.mjs"]) ask(name);
    assert.equal(threads.length, 2);
    const [first, second] = threads;
    assert.ok(first !== undefined && second !== undefined && first !== second);
    pool.giveBack(first);
    assert.equal(threads[2], first);
    // The fourth is of another module: an idle thread ends to make room.
    pool.giveBack(second);
    await eventually(() => threads.length === 4);
    assert.equal(threads[3]?.path, join(folder, "b.mjs"));
    await Promise.all([first, threads[3]].map((thread) => thread !== undefined && pool.discard(thread)));
    await pool.close();
  });

  it("passes over requests that were taken back", async () => {
    const pool = new ModulePool(realClock, 1);
    const { threads, ask } = requester(pool);
    ask("a.mjs");
    const second = ask("a.mjs");
    ask("a.mjs");
    second.takenBack = true;
    const [first] = threads;
    assert.ok(first !== undefined);
    pool.giveBack(first);
    assert.equal(threads.length, 2);
    pool.giveBack(first);
    assert.equal(threads.length, 2);
    await pool.close();
  });

  it("ends threads that were idle for long, and replaces one that ended by itself", async () => {
    const idle: (() => void)[] = [];
    const clock = {
      ...realClock,
      after: (_delayMs: number, run: () => void) => {
        idle.push(run);
        return () => {};
      },
    };
    const pool = new ModulePool(clock, 1);
    const { threads, ask } = requester(pool);
    ask("a.mjs");
    const [first] = threads;
    assert.ok(first !== undefined);
    pool.giveBack(first);
    idle[0]?.();
    ask("a.mjs");
    await eventually(() => threads.length === 2);
    const second = threads[1];
    assert.ok(second !== undefined && second !== first);
    pool.giveBack(second);
    await second.worker.terminate();
    ask("a.mjs");
    await eventually(() => threads.length === 3);
    assert.notEqual(threads[2], second);
    if (threads[2] !== undefined) await pool.discard(threads[2]);
    await pool.close();
  });
});
