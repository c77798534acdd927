// The packages as users get them: packed, installed from the tarball into an empty folder, and run by the Node that is on
// the PATH.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LICENCES_FILE } from "../../deploy/bundle.ts";
import { sized } from "../support/long.ts";
import { freePorts } from "../support/ports.ts";
import { programEnvironment, startProgram } from "../support/program.ts";
import { until } from "../support/until.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const folder = mkdtempSync(join(tmpdir(), "troupe package "));
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

/** Ends a test that would hang; none asserts on time. */
const limit = { timeout: 200_000 };
const home = join(folder, "home");
const prefix = join(folder, "prefix");
const troupe = join(prefix, "bin", "troupe");
const environment = () =>
  programEnvironment(join(home, "troupe"), {
    HOME: home,
    XDG_CACHE_HOME: join(home, "cache"),
    // Without the Node that came with the checkout.
    PATH: (process.env.PATH ?? "")
      .split(delimiter)
      .filter((place) => !place.includes("node_modules"))
      .join(delimiter),
    npm_config_cache: join(folder, "npm"),
    npm_config_prefer_offline: "true",
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
  });

async function run(cwd: string, command: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env: environment() });
  return stdout;
}

before(async () => {
  await mkdir(home);
  await mkdir(join(folder, "npm"));
  // What `npm ci` has fetched is not fetched again, and nothing is left in the tester's own cache.
  const { stdout } = await promisify(execFile)("npm", ["config", "get", "cache"]);
  symlinkSync(join(stdout.trim(), "_cacache"), join(folder, "npm", "_cacache"));
  await run(root, "npm", "pack", "--pack-destination", folder);
  await run(join(root, "sdk"), "npm", "pack", "--pack-destination", folder);
  await run(folder, "npm", "install", "--global", "--prefix", prefix, `./troupe-${version}.tgz`);
}, limit);

test("installed globally from its tarball, `troupe demo` writes the report", limit, async () => {
  const empty = join(folder, "empty");
  await mkdir(empty);
  assert.equal(await run(empty, troupe, "version"), `${version}\n`);
  await run(empty, troupe, "demo", "--save", "digest");
  assert.deepEqual((await readdir(join(empty, "digest"))).sort(), ["report.html", "report.md"]);
  assert.match(await readFile(join(empty, "digest", "report.md"), "utf8"), /\n## Write it down first\n/);
});

test("the licence of every library in the installed program is beside it", async () => {
  const [installed = ""] = await readdir(join(prefix, "lib", "node_modules"));
  const program = join(prefix, "lib", "node_modules", installed, "dist", "program");
  const licences = await readFile(join(program, LICENCES_FILE), "utf8");
  // Kysely's modules lose their names in the bundle; those of the others are kept.
  const libraries = new Set(["kysely"]);
  for (const file of (await readdir(program)).filter((name) => name.endsWith(".js"))) {
    const text = await readFile(join(program, file), "utf8");
    for (const [, name] of text.matchAll(/node_modules\/((?:@[\w.-]+\/)?[\w.-]+)\//g))
      libraries.add(name ?? "");
  }
  assert.ok(libraries.size > 40, `only ${[...libraries].join(", ")}`);
  for (const name of libraries) {
    const library = join(root, "node_modules", name);
    const [file] = (await readdir(library)).filter((entry) => /^licen[cs]e/i.test(entry));
    const text =
      file === undefined ? "Permission is hereby granted" : await readFile(join(library, file), "utf8");
    assert.ok(licences.includes(`\n${name} `), `${name} is missing`);
    assert.ok(licences.includes(text.trim()), `the licence of ${name} is missing`);
  }
});

test("installed, it serves without loading Node's TLS", limit, async () => {
  const tells = "process.on('exit',()=>console.log(process.moduleLoadList.join()))";
  await using served = await startProgram({
    launcher: join(prefix, "lib", "node_modules", "troupe", "bin", "troupe.mjs"),
    args: ["up"],
    env: { XDG_CACHE_HOME: join(home, "cache"), NODE_OPTIONS: `--import=data:text/javascript,${tells}` },
  });
  assert.equal((await fetch(`${served.api}/health`)).status, 200);
  await served.stop();
  assert.match(served.output(), /NativeModule http\b/);
  assert.doesNotMatch(served.output(), /NativeModule (tls|https|http2)\b/);
});

/** npx installs everything once more. */
const [how, program, words] = sized<readonly [string, string, readonly string[]]>(
  ["installed globally", troupe, []],
  ["by npx", "npx", ["--yes", "--package", `./troupe-${version}.tgz`, "troupe"]],
);

test(
  `${how} it serves the API and the docs, and the SDK from its tarball runs a blueprint there`,
  limit,
  async () => {
    const port = await freePorts(1);
    const child = spawn(program, [...words, "up"], {
      cwd: folder,
      env: { ...environment(), SVC_API_PORT: String(port) },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const ended = new Promise((resolve) => child.once("close", resolve));
    try {
      const url = `http://127.0.0.1:${port}`;
      await until(`it listens; it printed ${output}`, () => output.includes(`:${port}`));
      assert.equal((await fetch(`${url}/docs/reference.js`)).status, 200);

      const client = join(folder, "client");
      await mkdir(client);
      await writeFile(join(client, "package.json"), '{"type":"module","private":true}');
      await run(client, "npm", "install", `../troupe-sdk-${version}.tgz`);
      await writeFile(join(client, "digest.js"), DIGEST);
      assert.equal(await run(client, "node", "digest.js", url), "completed\nreport.html\nreport.md\n");
    } finally {
      process.kill(-(child.pid ?? 0), "SIGTERM");
      await ended;
    }
  },
);

const DIGEST = `
import { TroupeClient } from "@troupe/sdk";

const client = new TroupeClient({ baseUrl: process.argv[2] });
const { run_id } = await client.blueprints.run("document-digest");
for await (const _ of client.runs.follow(run_id));
console.log((await client.runs.get(run_id)).status);
const names = [];
for await (const { name } of client.runs.outputs(run_id)) names.push(name);
for (const name of names.sort()) console.log(name);
`;
