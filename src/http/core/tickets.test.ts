// Tickets: every change of one makes it worthless.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { Tickets } from "./tickets.ts";

const key = Buffer.alloc(32, 5);

test("a ticket opens its address once, as whom it was given to, at any gateway", () => {
  let nowMs = 1_000;
  const make = () => new Tickets({ key, nowMs: () => nowMs });
  const tickets = make();
  for (const address of ["/api/v1/runs/r/artifacts/a", "/api/v1/runs/r/artifacts/a?version=2&ticket=x"]) {
    const url = tickets.issue(address, "share:session_1");
    assert.ok(url.startsWith(address));
    assert.equal(make().take(url), "share:session_1");
    assert.equal(tickets.take(url), "share:session_1");
    assert.equal(tickets.take(url), null);
    assert.notEqual(tickets.issue(address, "token"), tickets.issue(address, "token"));
  }
  const late = tickets.issue("/api/v1/runs", "token");
  nowMs += 60_000;
  assert.equal(tickets.take(late), null);
});

test("one that was used is used however its MAC is written: the last letter has bits that say nothing", () => {
  const tickets = new Tickets({ key, nowMs: () => 1_000 });
  const url = tickets.issue("/api/v1/runs/run_1", "token");
  const others = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].map(
    (letter) => url.slice(0, -1) + letter,
  );
  assert.equal(others.filter((one) => tickets.take(one) !== null).length, 1);
});

test("a ticket that was changed anywhere, or is for another address, opens nothing", () => {
  const tickets = new Tickets({ key, nowMs: () => 1_000 });
  const url = tickets.issue("/api/v1/runs/run_1", "token");
  assert.equal(new Tickets({ key: Buffer.alloc(32, 6), nowMs: () => 1_000 }).take(url), null);
  fc.assert(
    fc.property(fc.nat(url.length - 1), fc.constantFrom(..."abAB01._-/?&=%"), (at, letter) => {
      const changed = url.slice(0, at) + letter + url.slice(at + 1);
      // The last letter of a MAC has bits that say nothing.
      const isSame = changed === url || (at === url.length - 1 && tickets.take(changed) === "token");
      assert.ok(isSame || tickets.take(changed) === null);
    }),
  );
});
