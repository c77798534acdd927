// A home that has lost its database or its secret key: the start is refused, says what to do, and changes nothing; who
// goes on knowingly keeps the files until they confirm their removal.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startHere } from "../support/command-line.ts";
import { call, completed, createJob, startGateway } from "../support/gateway-api.ts";
import { answer, executor, graph } from "../support/graphs.ts";
import { refusedStartHere, startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const writer = graph("writer", [
  executor(
    "write",
    `: > kept; printf %s "$0" > "$SVC_OUTPUT_DIR/out.txt"; ${answer({ complete_run: { ok: true } })}`,
  ),
]);

/** Every path of a home that belongs to its database. */
async function contentOf(home: string): Promise<readonly string[]> {
  const paths = await readdir(home, { recursive: true });
  return paths.filter((path) => /^(blobs|bundles|runs|evidence)\//.test(path) && !path.includes("incoming"));
}

describe("a home that was used", { concurrency: 1 }, () => {
  let home = "";
  let content: readonly string[] = [];
  const restartedWith = (args: readonly string[]): Promise<Program> =>
    startGateway({ home, args: ["up", ...args] });

  before(async () => {
    home = await temporaryHome();
    await using program = await startGatewayHere({ home });
    const jobId = await createJob(program, writer, { resolved_configuration: { api_token: "s3cr3t" } });
    const { run } = await completed(program, jobId);
    assert.equal(run.status, "completed");
    await call(program, "GET", `/runs/${run.run_id}/artifacts`);
    await program.stop();
    content = await contentOf(home);
    assert.ok(
      ["blobs/", "bundles/", "runs/"].every((folder) => content.some((path) => path.startsWith(folder))),
    );
  });
  after(() => rm(home, { recursive: true, force: true }));

  const lost: readonly (readonly [string, (file: string) => Promise<void>])[] = [
    ["missing", (file) => rm(file)],
    ["empty", (file) => truncate(file)],
  ];
  for (const [how, lose] of lost) {
    test(`without its database (${how}) it is refused by every way to start, and keeps what it holds`, async () => {
      const file = join(home, "troupe.db");
      const bytes = await readFile(file);
      await lose(file);
      for (const command of ["up", "gateway", "runtime"]) {
        const { code, text } = await refusedStartHere({ home, args: [command] });
        assert.equal(code, 1);
        assert.ok(text.includes(`The database ${file} is ${how}`), text);
        assert.match(text, /blobs\/, bundles\/, runs\//);
        assert.match(text, /troupe restore FILE/);
        assert.match(text, /--new-database/);
      }
      const { code, out } = await startHere(["doctor"], home).ended;
      assert.equal(code, 1);
      assert.ok(out.includes(`is ${how}, but SVC_HOME holds`), out);
      assert.deepEqual(await contentOf(home), content);
      await writeFile(file, bytes);
      await using program = await startGatewayHere({ home });
      assert.equal((await call(program, "GET", "/runs")).data?.toString().length !== 0, true);
    });
  }

  test("without its secret key it is refused while encrypted values are stored", async () => {
    const key = join(home, "secret.key");
    await rename(key, `${key}.away`);
    const { code, text } = await refusedStartHere({ home, args: ["up"] });
    assert.equal(code, 1);
    assert.ok(text.includes(`The secret key ${key} is missing`), text);
    assert.match(text, /--new-key/);
    await assert.rejects(readFile(key), { code: "ENOENT" });
    const knowing = await restartedWith(["--new-key"]);
    await knowing.stop();
    await rename(`${key}.away`, key);
  });

  test("started with --new-database, it keeps the files until somebody confirms", async () => {
    await rm(join(home, "troupe.db"));
    await using program = await restartedWith(["--new-database"]);
    // Old enough for a sweep.
    for (const folder of ["bundles", "runs", "evidence"]) {
      for (const name of await readdir(join(home, folder))) {
        if (name !== "incoming") await utimes(join(home, folder, name), 1, 1);
      }
    }
    const gc = (...args: string[]) =>
      startHere(["gc", "--url", program.url, "--json", ...args], home).ended.then(({ code, out, err }) => {
        assert.equal(code, 0, err);
        return { report: JSON.parse(out), err };
      });
    const held = await gc();
    assert.equal(held.report.needs_confirmation, true);
    assert.match(held.err, /--confirm/);
    assert.deepEqual(await contentOf(home), content);
    const { report } = await gc("--confirm");
    assert.equal(report.needs_confirmation, false);
    assert.ok(report.bundles.count > 0 && report.leftovers.count > 0);
    assert.notDeepEqual(await contentOf(home), content);
  });
});

test("a home that holds nothing yet starts, whatever empty folders there are", async () => {
  const home = await temporaryHome();
  try {
    await writeFile(join(home, "troupe.db"), "");
    for (const folder of ["blobs", "bundles/incoming", "runs"]) {
      await mkdir(join(home, folder), { recursive: true });
    }
    await using program = await startGatewayHere({ home });
    assert.equal((await call(program, "GET", "/health")).status, "ok");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

// Such a start succeeded once. The count beside the database says what no folder does: something was acknowledged, such as
// a job that has left no files.
test("without a database, but with a count of acknowledged commits, the start is refused though no file is left", async () => {
  const home = await temporaryHome();
  try {
    await using first = await startGatewayHere({ home });
    await createJob(first, writer);
    await first.stop();
    for (const folder of ["blobs", "bundles", "runs", "evidence", "troupe.db"]) {
      await rm(join(home, folder), { recursive: true, force: true });
    }
    const { code, text } = await refusedStartHere({ home, args: ["up"] });
    assert.equal(code, 1);
    assert.match(text, /is missing, but SVC_HOME holds troupe\.db-commits \(acknowledged commits\)/);
    assert.match(text, /--new-database/);
    await using knowing = await startGatewayHere({ home, allowing: { newDatabase: true } });
    await knowing.stop();
    await using second = await startGatewayHere({ home });
    assert.equal((await call(second, "GET", "/health")).status, "ok");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
