// A home is private, whatever the umask was and however it was made before.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, lstat, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startHere } from "../support/command-line.ts";
import { call, completed, createJob, runtimeApiOf, startGateway, walk } from "../support/gateway-api.ts";
import { answer, executor, graph } from "../support/graphs.ts";
import { temporaryHome } from "../support/program.ts";
import * as runtime from "../support/runtime-api.ts";

const writer = graph("writer", [
  executor(
    "write",
    `mkdir sub; echo own > sub/own.txt; echo out > "$SVC_OUTPUT_DIR/out.txt"; ${answer({ complete_run: { ok: true } })}`,
    { upload_path: "input", workdir: "input" },
  ),
]);
const files = { "payloads/input/run.sh": "#!/bin/sh\n", "config/default.json": { a: 1 } };

test("no path of a home that is used is open to others, also when it was made open before", async () => {
  const home = await temporaryHome();
  try {
    await chmod(home, 0o755);
    for (const folder of ["blobs", "runs", "tmp"]) await mkdir(join(home, folder), { mode: 0o755 });
    await writeFile(join(home, "lock.db"), "", { mode: 0o644 });
    const { out } = await startHere(["doctor"], home).ended;
    assert.match(out, /warn +privacy +other users of this machine may read or enter/);
    await using program = await startGateway({ home, through: ["sh", "-c", 'umask 022; exec "$@"', "sh"] });
    const api = await runtimeApiOf(program);
    const { run } = await completed(program, await createJob(program, writer, {}, files));
    for (const list of ["artifacts", "events", "logs", "timeline"]) {
      await walk(program, `/runs/${run.run_id}/${list}`);
    }
    const own = String(
      (await runtime.call(api, "POST", "/jobs", graph("own", [executor("a", "echo x > file")]))).id,
    );
    await runtime.historyOf(api, own);
    await call(program, "POST", "/system/gc", {});
    // It goes on where a folder is removed meanwhile, as those of attempts are.
    const { stdout } = spawnSync("find", ["."], { cwd: home, encoding: "utf8" });
    const paths = stdout
      .trim()
      .split("\n")
      .map((path) => path.replace(/^\.\//, ""));
    for (const folder of ["blobs", "bundles", "runs", "evidence"]) {
      assert.ok(
        paths.some((path) => path.startsWith(`${folder}/`)),
        folder,
      );
    }
    const open: string[] = [];
    for (const path of paths) {
      const found = await lstat(join(home, path)).catch(() => null);
      if (found === null || found.isSymbolicLink()) continue;
      if ((found.mode & 0o077) !== 0) open.push(`${(found.mode & 0o777).toString(8)} ${path}`);
    }
    assert.deepEqual(open, []);
    assert.doesNotMatch((await startHere(["doctor"], home).ended).out, /privacy/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
