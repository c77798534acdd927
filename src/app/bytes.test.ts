// What the place of files costs a program that has all of them in its home.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const script = `
  const { registerHooks } = await import("node:module");
  const loaded = [];
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      loaded.push(found.url);
      return found;
    },
  });
  const { startProgram } = await import("./app.ts");
  const before = loaded.length;
  await import("../store/shared/shared-store.ts");
  const isShared = (url) => /store.shared.(?!object-store)|aws4fetch|yazl/.test(url);
  const count = (urls) => urls.filter(isShared).length;
  console.log(JSON.stringify([count(loaded.slice(0, before)), count(loaded.slice(before)) > 0]));
`;

test("a program without a shared store loads nothing of it", async () => {
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd,
  });
  assert.deepEqual(JSON.parse(stdout), [0, true]);
});
