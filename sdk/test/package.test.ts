// The client as a package: it builds without Node's types, and the README's examples check and run against the build.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runtimeApiOf, startGateway } from "../../test/support/gateway-api.ts";
import { programEnvironment } from "../../test/support/program.ts";
import { helloZip } from "./bundle.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "sdk-package "));
after(() => rmSync(folder, { recursive: true }));

const tsc = join(root, "node_modules/typescript/bin/tsc");
const installed = join(folder, "node_modules/@troupe/sdk");

function run(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: "utf8",
    env: programEnvironment(folder),
    timeout: 120_000,
  });
  assert.equal(status, 0, `${args.join(" ")}\n${stdout}${stderr}`);
  return stdout;
}

test("it builds with the types of browsers alone, and imports nothing", () => {
  run(tsc, "-p", join(root, "sdk/tsconfig.json"), "--outDir", join(installed, "dist"));
  copyFileSync(join(root, "sdk/package.json"), join(installed, "package.json"));
  const text = readFileSync(join(installed, "dist/index.js"), "utf8");
  assert.match(text, /from "\.\/client\.js"/);
  const { dependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
});

test("the README's examples fit the package's types, and do what they say", async () => {
  const readme = readFileSync(join(root, "sdk/README.md"), "utf8");
  const examples = [...readme.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1] ?? "");
  assert.equal(examples.length, 8);
  await using program = await startGateway();
  const runtime = await runtimeApiOf(program);
  const text = examples
    .join("\n")
    .replaceAll("http://127.0.0.1:54001", program.url)
    .replaceAll("http://127.0.0.1:4000", runtime.url)
    // More patience than an example needs: a busy machine may take long.
    .replaceAll("AbortSignal.timeout(10_000)", "AbortSignal.timeout(100_000)");
  writeFileSync(join(folder, "readme.ts"), text);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  mkdirSync(join(folder, "node_modules/@types"));
  symlinkSync(join(root, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
  symlinkSync(join(root, "node_modules/undici-types"), join(folder, "node_modules/undici-types"));
  const strict = { ...JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8")), include: ["readme.ts"] };
  // A user checks the declarations of packages too.
  strict.compilerOptions.skipLibCheck = false;
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(strict));
  run(tsc, "-p", "tsconfig.json");

  writeFileSync(join(folder, "digest.zip"), await helloZip());
  const first = run("readme.ts");
  assert.match(first, /^completed \{ greeting: 'hello' \}\nreport\.txt hello\n1 job_pending null\n/);
  assert.match(first, /job_completed null\n/);
  assert.match(first, /\nrun_\w+ (completed|goes on)\n/);
  assert.match(first, /\nAt 07:30, Monday through Friday \(Europe\/Berlin\) \[\n/);
  assert.match(first, /started run_/);
  assert.match(first, /\n1 job_pending\n(?:.*\n)*\d+ job_completed\n$/);
});
