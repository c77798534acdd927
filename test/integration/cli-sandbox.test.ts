// `troupe sandbox`: the sandboxes of a package, tried here without a server.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { graph } from "../support/manifests.ts";
import { temporaryHome } from "../support/program.ts";
import { noSandboxes } from "../support/sandboxes.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
let folder: string;
let home: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-package-"));
  home = await temporaryHome();
  await mkdir(join(folder, "payloads"));
  await writeFile(join(folder, "payloads", "data.txt"), "of the package\n");
});
after(() => Promise.all([folder, home].map((path) => rm(path, { recursive: true, force: true }))));

const write = (...nodes: readonly JsonObject[]) =>
  writeFile(join(folder, "manifest.json"), JSON.stringify(graph("boxed", nodes)));
const node = (name: string, sandbox: JsonObject, more: JsonObject = {}): JsonObject => ({
  node_id: name,
  agent_type: "executor",
  config: { runner_module: "Sandbox", command: ["false"], sandbox, ...more },
});
const sandbox = (...words: readonly string[]) => startHere(["sandbox", ...words], home).ended;

describe("troupe sandbox", { skip: noSandboxes }, () => {
  test("starts each sandbox, and says which hosts cannot be reached", async () => {
    await write(node("good", {}), node("far", { network: { allow: ["127.0.0.1:1"] } }));
    const { code, out } = await sandbox("check", folder, "--json");
    assert.equal(code, 1);
    const { items } = JSON.parse(out) as { items: readonly JsonObject[] };
    assert.deepEqual(items[0], { node_id: "good", ok: true, problem: null });
    assert.match(String(items[1]?.problem), /127\.0\.0\.1:1 cannot be reached/);
    await write(node("good", {}));
    assert.deepEqual((await sandbox("check", folder)).code, 0);
  });

  test("opens a shell in the sandbox of a node, and ends with its code", async () => {
    await write(node("worker", {}, { upload_path: "data.txt" }));
    // The shell has the terminal of the command.
    const { status, stdout } = spawnSync(process.execPath, [main, "sandbox", "shell", folder, "worker"], {
      env: { ...process.env, SVC_HOME: home },
      input: "cat data.txt; id -u; exit 7\n",
      encoding: "utf8",
    });
    assert.deepEqual([status, stdout], [7, "of the package\n65534\n"]);
  });

  test("tells what a package lacks", async () => {
    await write(node("worker", {}));
    const unknown = await sandbox("shell", folder, "other");
    assert.deepEqual([unknown.code, unknown.out], [2, ""]);
    assert.match(unknown.err, /has no node other with a sandbox; it has worker/);
    await write({ node_id: "plain", agent_type: "executor", config: { command: ["true"] } });
    assert.match((await sandbox("check", folder)).err, /has no node with a sandbox/);
    assert.match((await sandbox("check", join(folder, "none"))).err, /is no folder/);
  });
});
