// A blueprint whose folder is edited after it was added: who runs it is told, and can run what the folder holds.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { testCatalog } from "../support/blueprint-catalog.ts";
import { startHere } from "../support/command-line.ts";
import { call } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const says = (text: string) => `printf %s ${text} > "$SVC_OUTPUT_DIR/said.txt"\n`;

const catalog = await testCatalog();
let program: Program;
let folder = "";
let work = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe edited "));
  const command = executor("work", ["sh", "say.sh"], { upload_path: "work", workdir: "work" });
  await catalog.write("speaker", graph("speaker", [command]), { "payloads/work/say.sh": says("old") });
  work = join(catalog.folder, "speaker/payloads/work/say.sh");
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const troupe = async (...args: string[]) => {
  const { code, out, err } = await startHere([...args, "--url", program.api], program.home).ended;
  assert.equal(code, 0, `troupe ${args.join(" ")}:\n${out}${err}`);
  return { out, err };
};

const blueprint = () => call(program, "GET", "/blueprints/speaker");
const isMarked = (modified: boolean) =>
  until(`modified: ${modified}`, async () => (await blueprint()).modified === modified);

let saved = 0;
/** `troupe blueprint run`. @returns what the worker said, and what the command noted */
async function run(...args: string[]) {
  const target = join(folder, String(++saved));
  const { out, err } = await troupe("blueprint", "run", "speaker", "--save", target, ...args);
  return { said: await readFile(join(target, "said.txt"), "utf8"), noted: out + err };
}

test("a run of an edited blueprint is what was added, and names what has changed; --refresh runs what the folder holds", async () => {
  const first = await run();
  assert.equal(first.said, "old");
  assert.doesNotMatch(first.noted, /changed/);

  await utimes(work, 1, 1);
  await writeFile(work, says("old"));
  assert.equal((await blueprint()).modified, false);

  await writeFile(work, says("new"));
  await isMarked(true);
  const second = await run();
  assert.equal(second.said, "old");
  assert.match(second.noted, /"payloads\/work\/say\.sh"/);
  assert.match(second.noted, /troupe blueprint run speaker --refresh/);

  assert.match((await troupe("blueprint", "list")).out, /speaker +added, modified/);
  assert.match((await troupe("blueprint", "show", "speaker")).out, /State +added, modified/);
  const { items } = await call(program, "GET", "/blueprints");
  assert.deepEqual(
    (items as { modified: boolean }[]).map(({ modified }) => modified),
    [true],
  );

  const codes = (answer: { readonly warnings?: unknown }) =>
    (answer.warnings as { code: string }[]).map(({ code }) => code);
  assert.deepEqual(codes(await call(program, "POST", "/blueprints/speaker/validate", {})), [
    "folder_changed",
  ]);
  const launched = await call(program, "POST", "/blueprints/speaker/runs", {});
  assert.deepEqual(codes(launched), ["folder_changed"]);

  const third = await run("--refresh");
  assert.equal(third.said, "new");
  assert.doesNotMatch(third.noted, /has changed/);
  assert.equal((await blueprint()).modified, false);
});

test("--refresh of a folder that is broken starts no run, and says why", async () => {
  const manifest = join(catalog.folder, "speaker/manifest.json");
  const whole = await readFile(manifest, "utf8");
  await writeFile(manifest, "{");
  await isMarked(true);
  const args = ["blueprint", "run", "speaker", "--refresh", "--url", program.api];
  const { code, err } = await startHere(args, program.home).ended;
  assert.equal(code, 1);
  assert.match(err, /manifest\.json/);
  await writeFile(manifest, whole);
  await isMarked(false);
});
