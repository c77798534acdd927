// The pages of README.md, docs and their neighbours: every link and anchor leads somewhere.

import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "..");
const pages = globSync(["*.md", "docs/*.md", "examples/**/*.md", "sdk/*.md", "bench/*.md"], {
  cwd: root,
}).map((name) => join(root, name));

/** A page's lines that are not inside of a code block. */
function proseOf(page: string): string {
  return readFileSync(page, "utf8").replaceAll(/^```.*?^```$/gms, "");
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of proseOf(page).matchAll(/^#{1,6} (.+)$/gm)) {
    const text = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .trim()
      .toLowerCase();
    const slug = text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

test("every relative link leads to a file, and every anchor to a heading", () => {
  const broken: string[] = [];
  let seen = 0;
  for (const page of pages) {
    for (const [, target = ""] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      seen++;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : resolve(dirname(page), path);
      const known = existsSync(file) && (anchor === undefined || anchorsOf(file).has(anchor));
      if (!known) broken.push(`${relative(root, page)}: ${target}`);
    }
  }
  assert.ok(seen > 50, `${seen} links were found`);
  assert.deepEqual(broken, []);
});

test("every page is in README.md", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  for (const page of globSync("docs/*.md", { cwd: root })) assert.ok(readme.includes(`(${page})`), page);
});

test("every page that a source file names exists", () => {
  const sources = globSync("{src,sdk,test,deploy,bench}/**/*.{ts,js,mjs,yml,service}", {
    cwd: root,
    exclude: (name) => name.includes("node_modules"),
  });
  assert.ok(sources.length > 100);
  for (const source of sources) {
    const named = readFileSync(join(root, source), "utf8").matchAll(/\bdocs\/[a-z-]+\.md\b/g);
    for (const [page] of named) assert.ok(existsSync(join(root, page)), `${source} names ${page}`);
  }
});

test("every file of the project that a page names exists", () => {
  const missing: string[] = [];
  let seen = 0;
  for (const page of globSync(["README.md", "CONTRIBUTING.md", "docs/*.md"], { cwd: root })) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [path] of text.matchAll(/(?<![\w/.-])(?:src|test|deploy|examples)\/[\w/.*-]*\w/g)) {
      seen++;
      if (globSync(path, { cwd: root }).length === 0) missing.push(`${page}: ${path}`);
    }
  }
  assert.ok(seen > 40, `${seen} files were found`);
  assert.deepEqual(missing, []);
});
