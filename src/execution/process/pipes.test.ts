import assert from "node:assert/strict";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { FifoSupply } from "./pipes.ts";

describe("the supply of pipes", () => {
  it("hands out each pipe once, and more than one batch of them", async () => {
    const root = mkdtempSync(join(tmpdir(), "troupe-fifos-"));
    const supply = new FifoSupply(join(root, "pipes"));
    const taken = new Set<string>();
    for (let i = 0; i < 150; i++) for (const path of await supply.take(4)) taken.add(path);
    assert.equal(taken.size, 600);
    assert.ok([...taken].every((path) => lstatSync(path).isFIFO()));
    await supply.close();
    await supply.close();
    assert.equal(existsSync(join(root, "pipes")), false);
    rmSync(root, { recursive: true });
  });

  it("removes what a killed runtime has left, and is not disturbed by what its mkfifo still makes", async () => {
    const root = mkdtempSync(join(tmpdir(), "troupe-fifos-"));
    mkdirSync(join(root, "earlier"));
    writeFileSync(join(root, "earlier/1"), "");
    const supply = new FifoSupply(root);
    assert.equal(existsSync(join(root, "earlier")), false);
    for (let i = 1; i <= 48; i++) writeFileSync(join(root, String(i)), "");
    assert.equal((await supply.take(3)).length, 3);
    await supply.close();
    assert.equal(existsSync(root), false);
  });

  it("says why no pipe can be made", async () => {
    const root = mkdtempSync(join(tmpdir(), "troupe-fifos-"));
    const supply = new FifoSupply(root);
    rmSync(root, { recursive: true });
    await assert.rejects(supply.take(3), /mkfifo failed in .* with exit code 1: /);
    await supply.close();
  });
});
