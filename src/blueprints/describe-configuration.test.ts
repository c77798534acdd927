// Local folders as a whole: settings that leave each other alone, and paths that lead the worker to the copy.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import { readLocalFolders } from "./describe-configuration.ts";

/** The graph of one node. */
function graphOf(config: JsonObject) {
  const parsed = parseManifest({
    manifest_version: "1.0",
    graph_id: "graph",
    entrypoints: ["work"],
    nodes: [{ node_id: "work", agent_type: "executor", config: { command: ["true"], ...config } }],
  });
  assert.ok(parsed.kind === "valid", JSON.stringify(parsed));
  return parsed.graph;
}

const folder = (more: JsonObject = {}): JsonObject => ({
  config_path: "documents.folder",
  payload_path: "worker/mn_local_inputs",
  runtime_path: "mn_local_inputs",
  ...more,
});

test("a setting that holds another one, or belongs to another folder, is refused", () => {
  const other = (more: JsonObject) => folder({ config_path: "b.x", payload_path: "worker/b", ...more });
  const table: readonly (readonly [readonly JsonObject[], readonly string[]])[] = [
    [[folder({ linked_config_paths: ["documents"] })], ["0/linked_config_paths/0"]],
    [[folder({ linked_config_paths: ["documents.folder.x"] })], ["0/linked_config_paths/0"]],
    [[folder({ linked_config_paths: ["a.b", "a"] })], ["0/linked_config_paths/1"]],
    [[folder(), other({ config_path: "documents" })], ["1/config_path"]],
    [[folder({ linked_config_paths: ["b.x"] }), other({})], ["1/config_path"]],
    [[folder(), other({ linked_config_paths: ["documents.folder"] })], ["1/linked_config_paths/0"]],
    // One of the two may be given: both lead the worker to it.
    [[folder({ linked_config_paths: ["in"] }), other({ linked_config_paths: ["in"] })], []],
    [[folder({ linked_config_paths: ["documents.folder2", "documents2"] })], []],
  ];
  for (const [folders, expected] of table) {
    const read = readLocalFolders({ local_inputs: { folders } }, graphOf({ upload_path: "worker" }));
    const found = read.problems.map(({ path, code }) => `${path} ${code}`);
    assert.deepEqual(
      found,
      expected.map((place) => `/local_inputs/folders/${place} overlaps`),
    );
  }
});

test("a runtime_path at which no node finds the folder is a warning with where it is", () => {
  const warned = (config: JsonObject) => {
    return readLocalFolders({ local_inputs: { folders: [folder()] } }, graphOf(config)).warnings;
  };
  const found = [
    { upload_path: "worker", workdir: "worker" },
    { upload_path: "worker/", workdir: "./worker/" },
    { upload_path: "worker", upload_as: "in", workdir: "in" },
    { upload_path: "worker", upload_as: "." },
    { upload_path: ".", workdir: "worker" },
    { upload_path: "worker/mn_local_inputs" },
    { upload_path: "worker", workdir: "/sandbox/job/worker" },
  ];
  for (const config of found) assert.deepEqual(warned(config), [], JSON.stringify(config));
  for (const [config, place] of [
    [{ upload_path: "worker" }, "worker/mn_local_inputs"],
    [{ upload_path: "worker", upload_as: "in" }, "in/mn_local_inputs"],
    [{ upload_path: ".", workdir: "worker/sub" }, "../mn_local_inputs"],
  ] as const) {
    const [warning] = warned(config);
    assert.equal(warning?.path, "/local_inputs/folders/0/runtime_path");
    assert.ok(warning?.message.endsWith(`the node "work" has the folder at "${place}"`), warning?.message);
  }
});

test("the maximum number of settings is accepted", () => {
  const folders = Array.from({ length: 100 }, (_, i) =>
    folder({
      config_path: `documents.folder_${i}`,
      payload_path: `worker/inputs_${i}`,
      linked_config_paths: Array.from({ length: 100 }, (_, j) => `reader.number_${i}.input_${j}`),
    }),
  );
  const { problems } = readLocalFolders({ local_inputs: { folders } }, null);
  assert.deepEqual(problems, []);
});
