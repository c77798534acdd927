// The vendored libraries: exactly what the packages in devDependencies have.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { vendoredFiles } from "../../../deploy/vendor.ts";

const folder = new URL("./", import.meta.url);

test("every vendored file is what `npm run vendor` writes, and nothing else is served", async () => {
  const expected = vendoredFiles();
  for (const [name, content] of expected) {
    assert.equal(await readFile(new URL(name, folder), "utf8"), content, `${name}: run npm run vendor`);
  }
  const served = (await readdir(folder)).filter((name) => name.endsWith(".js"));
  assert.deepEqual(served.toSorted(), [...expected.keys()].filter((name) => name.endsWith(".js")).toSorted());
});
