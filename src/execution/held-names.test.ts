import assert from "node:assert/strict";
import { test } from "node:test";
import { noAmounts, portClaim } from "../engine/resources.ts";
import { type Free, freeBehind } from "./allotment.ts";
import { HeldNames } from "./held-names.ts";

test("names that thousands wait for are set aside, and those that nobody waits for are free", () => {
  const held = new HeldNames([portClaim(1)]);
  const waiting = Array.from({ length: 50_000 }, (_, n) => ({
    ...noAmounts,
    named: { claims: [portClaim(n + 2)], freePorts: 0 },
  }));
  const all: Free = { amounts: noAmounts, names: held };
  const { names } = waiting.reduce((left, demand) => freeBehind(left, demand, 1), all);
  assert.deepEqual(
    [1, 2, 50_001, 50_002].map((port) => names.isFree(portClaim(port))),
    [false, false, false, true],
  );
  assert.ok(held.isFree(portClaim(2)), "it is not held yet");
});
