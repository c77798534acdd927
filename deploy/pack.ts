// Makes dist/, which `npm pack` puts into the package: the program as JavaScript, since Node runs no TypeScript under
// node_modules. The tree keeps its shape, so what the program finds beside its own files it finds there too; the command starts
// a bundle of it, which takes half the time. `node deploy/pack.ts FOLDER` makes it there.

import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const [dist = join(root, "dist")] = process.argv.slice(2);
const TESTS = /(?:^|\/)(?:test-[^/]*|[^/]*\.test)\.ts$/;
/** Imports, and the files that a worker thread or a child process is started with. */
const RELATIVE_TS = /"(\.{1,2}\/[^"\n]+)\.ts"/g;

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
for (const file of globSync(["package.json", "src/**/*.*", "sdk/src/**/*.ts"], { cwd: root })) {
  if (TESTS.test(file) || file.endsWith(".d.ts")) continue;
  const target = join(dist, file);
  mkdirSync(dirname(target), { recursive: true });
  if (!file.endsWith(".ts")) {
    cpSync(join(root, file), target);
    continue;
  }
  const script = stripTypeScriptTypes(readFileSync(join(root, file), "utf8"));
  writeFileSync(target.replace(/\.ts$/, ".js"), script.replace(RELATIVE_TS, '"$1.js"'));
}
cpSync(join(root, "examples"), join(dist, "examples"), {
  recursive: true,
  filter: (source) => !source.endsWith("__pycache__"),
});

await bundle(join(dist, "src", "main.js"), join(dist, "program"));
