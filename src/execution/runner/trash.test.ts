import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Clock } from "../../engine/ports.ts";
import { Trash } from "./trash.ts";

/** A folder to work in, a clock that the test moves, and what was warned of. */
class World {
  readonly root = mkdtempSync(join(tmpdir(), "troupe-trash-"));
  readonly folder = join(this.root, "trash");
  readonly warnings: string[] = [];
  readonly timers = new Set<() => void>();
  readonly #clock: Clock = {
    nowMs: () => 0,
    steadyMs: () => 0,
    soon: (run) => run(),
    after: (_delayMs, run) => {
      this.timers.add(run);
      return () => void this.timers.delete(run);
    },
  };

  open(): Trash {
    const warn = (_fields: object, message: string) => void this.warnings.push(message);
    return new Trash(this.root, this.folder, this.#clock, { warn, error: warn });
  }

  /** A folder as an attempt leaves it. */
  attempt(name: string): string {
    const path = join(this.root, name);
    mkdirSync(join(path, "out"), { recursive: true });
    writeFileSync(join(path, "input.json"), "{}");
    return path;
  }

  get waiting(): readonly string[] {
    return readdirSync(this.folder);
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

describe("trash", () => {
  it("is out of the way at once, and removed when its time comes", async () => {
    using world = new World();
    const trash = world.open();
    const path = world.attempt("1-1");
    await trash.discard(path);
    assert.equal(existsSync(path), false);
    assert.equal(world.waiting.length, 1);
    assert.equal(world.timers.size, 1);
    for (const run of world.timers) run();
    await trash.close();
    assert.equal(existsSync(world.folder), false);
    await trash.close();
  });

  it("is removed whatever a worker made of it, and links are not followed", async () => {
    using world = new World();
    const trash = world.open();
    mkdirSync(join(world.root, "elsewhere"));
    writeFileSync(join(world.root, "elsewhere/kept"), "");
    const path = world.attempt("1-1");
    symlinkSync(join(world.root, "elsewhere"), join(path, "link"));
    mkdirSync(join(path, "out/deep/er"), { recursive: true });
    writeFileSync(join(path, "out/deep/large"), Buffer.alloc(1024 * 1024 + 1));
    writeFileSync(join(path, "large"), Buffer.alloc(1024 * 1024 + 1));
    chmodSync(join(path, "out/deep"), 0o000);
    const many = world.attempt("2-1");
    for (let i = 0; i < 500; i++) writeFileSync(join(many, `a file with quite a long name ${i}`), "");
    const closed = world.attempt("3-1");
    chmodSync(closed, 0o000);
    for (const folder of [path, many, closed]) {
      await trash.discard(folder);
      assert.equal(existsSync(folder), false);
    }
    await trash.close();
    assert.equal(existsSync(world.folder), false);
    assert.deepEqual(readdirSync(join(world.root, "elsewhere")), ["kept"]);
    assert.deepEqual(world.warnings, []);
  });

  it("leaves what a symlink leads to that took the place of a folder, or of one on the way to it", async () => {
    using world = new World();
    const trash = world.open();
    const elsewhere = world.attempt("elsewhere");
    world.attempt("elsewhere/1-1");
    symlinkSync(elsewhere, join(world.root, "1-1"));
    await trash.discard(join(world.root, "1-1"));
    symlinkSync(elsewhere, join(world.root, "attempts"));
    await assert.rejects(trash.discard(join(world.root, "attempts/1-1")), { name: "SymlinkInPath" });
    await trash.close();
    assert.deepEqual(readdirSync(elsewhere).sort(), ["1-1", "input.json", "out"]);
    assert.deepEqual(readdirSync(join(elsewhere, "1-1")), ["input.json", "out"]);
  });

  it("is removed where it is when it cannot be moved", async () => {
    using world = new World();
    const trash = world.open();
    const path = world.attempt("1-1");
    rmSync(world.folder, { recursive: true });
    await trash.discard(path);
    assert.equal(existsSync(path), false);
    await trash.close();
  });

  it("of a runtime that was killed is removed by the next one, beside what is new", async () => {
    using world = new World();
    await world.open().discard(world.attempt("1-1"));
    world.timers.clear();
    const trash = world.open();
    assert.equal(world.timers.size, 1);
    await trash.discard(world.attempt("2-1"));
    assert.equal(world.waiting.length, 2);
    await trash.close();
    assert.equal(existsSync(world.folder), false);
  });

  it("does not pile up: past the bound it is removed before more is taken in", async () => {
    using world = new World();
    const trash = world.open();
    let most = 0;
    for (let i = 1; i <= 300; i++) {
      await trash.discard(world.attempt(`${i}-1`));
      most = Math.max(most, world.waiting.length);
    }
    assert.ok(most <= 256, String(most));
    await trash.close();
  });
});
