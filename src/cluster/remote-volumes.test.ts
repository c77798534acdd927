// Asking another node, over a real socket, to remove its volume.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { peersWith, startNode } from "../../test/support/nodes.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { NodeRecord } from "./nodes.ts";
import { remoteVolumeRemoval } from "./remote-volumes.ts";

test("a volume is removed by the node that has it, and an error says what that one says", async () => {
  const removed: string[] = [];
  let answer = async () => {};
  await using node = await startNode({
    parts: {
      removeVolume: (name) => {
        removed.push(`b ${name}`);
        return answer();
      },
    },
  });
  using peers = peersWith();
  const record = (nodeId: string, status: string, volumes: readonly string[]) =>
    ({
      nodeId,
      name: nodeId,
      address: node.address,
      status,
      resources: { volumes },
    }) as unknown as NodeRecord;
  const records = [
    record("node_a", "ready", ["mine", "gone"]),
    record("node_b", "ready", ["cache"]),
    // Its address is another node's by now.
    record("node_c", "ready", ["moved"]),
    record("node_d", "lost", ["away"]),
  ];
  const remove = remoteVolumeRemoval({
    nodeId: "node_a",
    own: async (name) => {
      if (name !== "mine" && name !== "used") throw new DomainError("volume_not_found", `No ${name} here.`);
      if (name === "used") throw new DomainError("volume_in_use", "Wait.");
      removed.push(`a ${name}`);
    },
    nodes: { livingFirst: async () => records },
    peers,
  });
  await remove("mine");
  await remove("cache");
  assert.deepEqual(removed, ["a mine", "b cache"]);
  const domain = (name: string, code: string, message: RegExp) =>
    assert.rejects(remove(name), { name: "DomainError", code, message });
  await domain("used", "volume_in_use", /Wait/);
  await domain("none", "volume_not_found", /No none here/);
  await domain("gone", "volume_not_found", /No gone here/);
  await domain("away", "conflict", /"away" is on the node "node_d", which does not run/);
  await assert.rejects(remove("moved"), { name: "EngineUnavailable", message: /another node/ });
  answer = async () => {
    throw new DomainError("volume_in_use", "A command has it.");
  };
  await domain("cache", "volume_in_use", /^A command has it\.$/);
  answer = async () => {
    throw new DomainError("volume_not_found", "It was removed.");
  };
  await domain("cache", "volume_not_found", /No cache here/);
  answer = async () => {
    throw new ConnectError("unimplemented", Code.Unimplemented);
  };
  await domain("cache", "conflict", /send the request to it/);
  await node.close();
  await assert.rejects(remove("cache"), { name: "EngineUnavailable", message: /cannot be reached/ });
});
