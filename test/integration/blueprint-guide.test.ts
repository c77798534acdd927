// docs/blueprints.md against the program: its session runs as it stands there, from an empty folder to a blueprint that
// takes a folder, checks it, shows a page and is passed on.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { startCatalogHere } from "../support/catalog-blueprints.ts";
import { launcher } from "../support/packed-program.ts";
import { programEnvironment } from "../support/program.ts";

const guide = await readFile(new URL("../../docs/blueprints.md", import.meta.url), "utf8");
const missing = ["bash", "curl", "python3"].find(
  (tool) => spawnSync(tool, ["--version"]).error !== undefined,
);

test("the guide's session runs as it stands", {
  skip: missing && `there is no ${missing}`,
  timeout: 200_000,
}, async (t) => {
  const blocks = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  assert.ok(blocks.length >= 8);
  const folder = await mkdtemp(join(tmpdir(), "troupe guide "));
  try {
    await mkdir(join(folder, "blueprints"));
    await using program = await startCatalogHere({
      env: { SVC_BLUEPRINT_CATALOG: join(folder, "blueprints") },
    });
    const troupe = `troupe() { "${process.execPath}" "${launcher}" "$@"; }`;
    const script = [troupe, ...blocks]
      .join("\n")
      .replaceAll("http://127.0.0.1:54001/api", `${program.url}/api`);
    const env = programEnvironment(join(folder, "home"), { SVC_API_PORT: new URL(program.url).port });
    // A group of its own, so that a session that hangs ends with all its commands.
    const shell = spawn("bash", ["-euo", "pipefail"], { cwd: folder, env, detached: true });
    t.after(() => {
      if (shell.exitCode === null && shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
    });
    shell.stdin.end(script);
    const [printed, complained] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, "exit"),
    ]);
    const all = `${printed}\n--- stderr\n${complained}`;
    assert.equal(shell.exitCode, 0, all);
    for (const line of ["Hello, Ada!", "Moin, world!", "Hello, Grace!", "Hello, Alan!"]) {
      assert.ok(printed.includes(`${line}\n`), `${line} is not in\n${all}`);
    }
    assert.match(printed, /^refused$/m);
    assert.match(complained, /\/inputs\/name/);
    assert.match(printed, /^refused: people\/wrong\.txt$/m);
    assert.match(printed, /"valid":\s?false.*wrong\.txt, line 1: too long for a name/);
    assert.match(printed, /^bundle_\w+$/m);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("the guide's links lead somewhere", async () => {
  const links = [...guide.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) => link);
  assert.ok(links.length >= 8);
  for (const link of new Set(links)) await readFile(new URL(link, new URL("../../docs/", import.meta.url)));
});
