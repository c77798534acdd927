// `troupe services` with pages that a test gives.

import assert from "node:assert/strict";
import { test } from "node:test";
import { testCall } from "../../test/support/test-call.ts";
import { services } from "./services.ts";
import type { ServerCall } from "./session.ts";

const service = (name: string) => ({
  name,
  status: "passing",
  node: "node1",
  address: "127.0.0.1",
  port: 80,
  public_url: null,
  run_id: "run_1",
  tags: [],
  checks: [],
});

/** The lines on stdout and stderr when these pages are answered. */
async function printed(
  pages: readonly { readonly items: readonly object[]; readonly unreachable_nodes: readonly string[] }[],
) {
  const call = testCall();
  const client = {
    services: {
      list: () => ({
        pages: async function* () {
          yield* pages;
        },
      }),
    },
  };
  await services({ ...call, client } as unknown as ServerCall);
  return call;
}

test("each service is shown with its node, and after all of them the nodes that do not answer", async () => {
  const { out, err } = await printed([
    { items: [service("a"), service("b")], unreachable_nodes: ["node2"] },
    { items: [service("c")], unreachable_nodes: ["node2", "node3"] },
  ]);
  assert.deepEqual(
    out.slice(1).map((line) => line.split(/ +/).slice(0, 4)),
    ["a", "b", "c"].map((name) => [name, "passing", "node1", "127.0.0.1:80"]),
  );
  assert.deepEqual(err, ["Without those of nodes that do not answer now: node2, node3."]);
});

test("when all nodes answer, nothing is said of them", async () => {
  assert.deepEqual((await printed([{ items: [service("a")], unreachable_nodes: [] }])).err, []);
});
