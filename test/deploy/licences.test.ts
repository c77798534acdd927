// The licences that are shipped with the packed program.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { licencesOf } from "../../deploy/licences.ts";

/** @returns the paths of the files, below a folder of their own */
function folderWith(t: TestContext, files: Readonly<Record<string, string>>): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "troupe licences "));
  t.after(() => rmSync(folder, { recursive: true }));
  return Object.entries(files).map(([path, text]) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    return join(folder, path);
  });
}

const described = (name: string, license: string, more: object = {}) =>
  JSON.stringify({ name, version: "1.2.3", license, ...more });

test("every library is there once, with its licence files and the notices in its code", (t) => {
  const files = folderWith(t, {
    "src/main.js": "/*! ours */",
    "node_modules/one/package.json": described("one", "MIT"),
    "node_modules/one/LICENSE": "of one\n",
    "node_modules/one/lib/a.js": "/*! copied from elsewhere */ 1",
    "node_modules/one/lib/b.js": "/* ordinary */ 2",
    "node_modules/one/node_modules/@two/parts/package.json": described("@two/parts", "Apache-2.0"),
    "node_modules/one/node_modules/@two/parts/LICENCE.txt": "of two",
    "node_modules/one/node_modules/@two/parts/NOTICE": "noted by two",
    "node_modules/one/node_modules/@two/parts/index.js": "/**\n * @license of a part\n */ 3",
    "node_modules/absent/package.json": described("absent", "MIT"),
  });
  const text = licencesOf(files.filter((file) => file.endsWith(".js")));
  assert.deepEqual(text.split(/\n\n(?:-+\n\n)?/), [
    "The program contains code of these libraries.",
    ...["one 1.2.3 (MIT)", "of one", "/*! copied from elsewhere */"],
    ...["@two/parts 1.2.3 (Apache-2.0)", "of two", "noted by two", "/**\n * @license of a part\n */\n"],
  ]);
});

test("of a library that only names the MIT licence, the text and its author are there", (t) => {
  const files = folderWith(t, {
    "node_modules/one/package.json": described("one", "MIT", { author: "Ada <ada@example.org>" }),
    "node_modules/one/index.js": "1",
  });
  const text = licencesOf(files);
  assert.match(text, /^one 1\.2\.3 \(MIT\)\n\nCopyright \(c\) Ada <ada@example\.org>\n\nPermission is/m);
});

test("of a library that only names the Apache licence, the text and the heads of its files are there", (t) => {
  const head = "// Copyright 2026 Ada\n// Terms of Ada.\n";
  const other = "// Copyright 2008 Bob\n// Redistribution is permitted.\n";
  const files = folderWith(t, {
    "node_modules/one/package.json": described("one", "(Apache-2.0 AND BSD-3-Clause)"),
    "node_modules/one/a.js": `${head}export {};\n// Copyright is no head here\n`,
    "node_modules/one/b.js": `${head}1`,
    "node_modules/one/c.js": `${other}2`,
  });
  const text = licencesOf(files);
  assert.match(text, /Apache License\s+Version 2\.0, January 2004/);
  assert.equal(text.split(head).length, 2);
  assert.equal(text.split(other).length, 2);
  assert.doesNotMatch(text, /no head here/);
});

test("a library whose licence is not known cannot be shipped", (t) => {
  const files = folderWith(t, {
    "node_modules/one/package.json": described("one", "BSD-3-Clause", { author: "Ada" }),
    "node_modules/one/index.js": "1",
  });
  assert.throws(() => licencesOf(files), /the licence of one is not known/);
});
