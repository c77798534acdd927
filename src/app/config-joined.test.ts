// A home that has joined a cluster: what it says in place of variables, and how it becomes a node's at its first start.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, beforeEach, test } from "node:test";
import { openSecretKey } from "../security/secret-key.ts";
import { type ClusterFile, readClusterFile, settleNode, writeClusterFile } from "../store/cluster-file.ts";
import { databaseFile } from "../store/home.ts";
import { openNodeIdentity } from "../store/node-identity.ts";
import { type Command, type Config, describeConfig, loadConfig } from "./config.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-joined-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const URL_TEXT = "postgres://troupe:secret@db.example.org/troupe";
const file: ClusterFile = {
  database_url: URL_TEXT,
  name: "node2",
  labels: { zone: "b", gpu: "l4" },
  address: "10.0.0.2:55052",
  settling: null,
  joining: null,
};

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(folder, "h-"));
});

const load = (env: Record<string, string> = {}, command: Command = "up") =>
  loadConfig({ SVC_HOME: home, ...env }, command);

function configOf(env?: Record<string, string>): Config {
  const loaded = load(env);
  assert.ok(loaded.kind === "ok");
  return loaded.config;
}

/** An empty one, as a program leaves it that was alone. */
function makeDatabase(): void {
  const connection = new DatabaseSync(databaseFile(home));
  for (const table of ["jobs", "job_definitions", "runs", "bundles", "blueprints"])
    connection.exec(`CREATE TABLE IF NOT EXISTS ${table} (id TEXT)`);
  connection.close();
}

test("a home that has joined has values of variables, and variables win", async () => {
  await writeClusterFile(home, file);
  const { databaseUrl, nodeName, nodeLabels, nodeAddress, secretTexts } = configOf();
  assert.deepEqual(
    [databaseUrl, nodeName, nodeLabels, nodeAddress],
    [URL_TEXT, "node2", file.labels, file.address],
  );
  assert.ok(secretTexts.includes("secret"));
  const other = configOf({ SVC_NODE_NAME: "x", SVC_NODE_LABELS: " " });
  assert.deepEqual([other.nodeName, other.nodeLabels], ["x", file.labels]);
  const rows = describeConfig(other).filter(({ from }) => from !== "default");
  assert.deepEqual(
    rows.map(({ variable, from }) => [variable, from]),
    [
      ["SVC_HOME", "environment"],
      ["SVC_DATABASE_URL", "cluster.json"],
      ["SVC_NODE_NAME", "environment"],
      ["SVC_NODE_LABELS", "cluster.json"],
      ["SVC_NODE_ADDRESS", "cluster.json"],
    ],
  );
  assert.ok(!JSON.stringify(rows).includes("secret"));
});

test("a damaged file stops a server, and no command that only talks to one", () => {
  const damaged = Object.keys(file).map((field) => ({ ...file, [field]: undefined }));
  const wrong = [
    { database_url: 1 },
    { labels: [] },
    { labels: { zone: 1 } },
    { settling: { keys: [] } },
    { joining: {} },
  ];
  const texts = [...damaged, ...wrong.map((one) => ({ ...file, ...one })), [], null].map((one) =>
    JSON.stringify(one),
  );
  for (const text of ['{"database_url":', ...texts]) {
    writeFileSync(join(home, "cluster.json"), text);
    assert.match(JSON.stringify(load()), /cluster\.json is damaged\. Restore it/, text);
    assert.equal(load({}, "client").kind, "ok");
  }
});

test("the first start puts the key and the identity in place, however often it is cut off", async () => {
  await openSecretKey({ home, given: [] });
  const keys = [Buffer.alloc(32, 7).toString("base64"), Buffer.alloc(32, 8).toString("base64")];
  const settling = { node_id: "node_2", keys };
  for (let n = 0; n < 2; n++) {
    await writeClusterFile(home, { ...file, settling });
    makeDatabase();
    await settleNode(home);
    assert.ok(!existsSync(databaseFile(home)));
    assert.deepEqual(readFileSync(join(home, "secret.key"), "utf8").trim().split("\n"), keys);
    const { nodeId, isInPlace } = await openNodeIdentity(home, () => "other");
    assert.deepEqual([nodeId, isInPlace], ["node_2", false], "no living node loses its lease to it");
    assert.deepEqual(readClusterFile(home), file);
  }
  makeDatabase();
  await settleNode(home);
  assert.ok(existsSync(databaseFile(home)), "a node that has settled loses no database");
});

test("a home that holds what would be lost does not become a node's", async () => {
  await writeClusterFile(home, { ...file, settling: { node_id: "node_2", keys: [] } });
  makeDatabase();
  mkdirSync(join(home, "runs"));
  writeFileSync(join(home, "runs", "one"), "x");
  await assert.rejects(settleNode(home), /is to join a cluster \(cluster\.json\), but holds runs\//);
  assert.ok(existsSync(databaseFile(home)));
});

test("a program that is given its keys leaves those of its home", async () => {
  const { id } = await openSecretKey({ home, given: [] });
  await writeClusterFile(home, { ...file, settling: { node_id: "node_2", keys: [] } });
  await settleNode(home);
  assert.equal((await openSecretKey({ home, given: [] })).id, id);
});
