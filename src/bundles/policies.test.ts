// Policies of sandboxes that are files of a bundle.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { bundleFiles, makePlace, refusals, zipOf } from "../../test/support/bundles.ts";

test("the policies of sandboxed nodes are read with the bundle, and every mistake is named", async () => {
  await using place = await makePlace();
  const nodes = ["missing.json", "broken.json", "wrong.json", "fine.json"].map((policy, i) => ({
    node_id: String(i),
    agent_type: "executor",
    config: { runner_module: "Sandbox", command: ["true"], policy },
  }));
  const manifest = { manifest_version: "1.0", graph_id: "boxed", entrypoints: ["0"], nodes };
  const files = bundleFiles({
    "manifest.json": JSON.stringify(manifest),
    "payloads/broken.json": "{",
    "payloads/wrong.json": '{"limits": {"processes": 0}, "other": 1}',
    "payloads/fine.json": '{"limits": {"processes": 9}}',
  });
  assert.deepEqual(await refusals(place.bundles.registerZip({ file: Readable.from([zipOf(files)]) })), [
    "/payloads/missing.json missing_policy",
    "/payloads/broken.json invalid_json",
    "/payloads/wrong.json#/other unknown_field",
    "/payloads/wrong.json#/limits/processes out_of_range",
  ]);
});
