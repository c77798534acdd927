// Where a service is reached that declares an address, from its own node and from elsewhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import { calledAt, checkedAt } from "./service-view.ts";

test("an address that stands for all of a machine's is called at its node, and checked on loopback", () => {
  for (const [declared, nodeHost, called, checked] of [
    [null, "10.0.0.7", "127.0.0.1", "127.0.0.1"],
    ["127.0.0.1", "10.0.0.7", "127.0.0.1", "127.0.0.1"],
    ["0.0.0.0", "10.0.0.7", "10.0.0.7", "127.0.0.1"],
    ["0.0.0.0", null, "127.0.0.1", "127.0.0.1"],
    ["::", "node1.example.org", "node1.example.org", "::1"],
    ["::", null, "::1", "::1"],
    ["0:0::0", null, "::1", "::1"],
    ["192.168.1.7", "10.0.0.7", "192.168.1.7", "192.168.1.7"],
    ["gpu1.example.org", "10.0.0.7", "gpu1.example.org", "gpu1.example.org"],
  ] as const) {
    assert.deepEqual([calledAt(declared, nodeHost), checkedAt(declared)], [called, checked], `${declared}`);
  }
});
