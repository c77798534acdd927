// How a program looks for a node that lets it in; the nodes are played by the test.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { OperationContext } from "../operations/progress.ts";
import { type Join, Joining, JoinProblem } from "./joining.ts";

const addresses = Array.from({ length: 30 }, (_, n) => `node${n}:55052`);

/** @returns the operation's end, and whom it has asked; none of them answers */
function join({ isAsked = () => {} }: { isAsked?: (abort: AbortController) => void } = {}) {
  const asked: string[] = [];
  const abort = new AbortController();
  const played = {
    nodesOf: async () => addresses,
    welcome: async (address: string) => {
      asked.push(address);
      isAsked(abort);
      throw new JoinProblem(`${address} cannot be reached`, true);
    },
  } as unknown as Join;
  const joining = new Joining(played, { operationEvents: async () => ({ lines: [] }) as never });
  joining.ask("op_1", { token: {}, place: { databaseUrl: "postgres://x/y" } } as never);
  const context = { operation: { operationId: "op_1" }, signal: abort.signal, step: async () => {} };
  return { asked, end: joining.run(context as unknown as OperationContext) };
}

test("a program that stops asks no further node to let it in", async () => {
  const { asked, end } = join({ isAsked: (abort) => abort.abort() });
  await assert.rejects(end, { name: "OperationInterrupted" });
  assert.deepEqual(asked, addresses.slice(0, 1));
});

test("a program that joins asks ten nodes at most", async () => {
  const { asked, end } = join();
  await assert.rejects(end, { code: "join_failed", message: "node9:55052 cannot be reached" });
  assert.deepEqual(asked, addresses.slice(0, 10));
});
