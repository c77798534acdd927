// Writes src/web/vendor: the browser libraries of the console, out of the npm packages in devDependencies. The console has
// no build step, so its pages import these files as they are. Run `npm run vendor` after a package has changed; a test
// compares the files with the packages.

import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Library {
  readonly package: string;
  readonly from: string;
  readonly file: string;
}

const libraries: readonly Library[] = [
  { package: "preact", from: "dist/preact.mjs", file: "preact.js" },
  { package: "preact", from: "hooks/dist/hooks.mjs", file: "preact-hooks.js" },
  { package: "htm", from: "dist/htm.mjs", file: "htm.js" },
  { package: "@preact/signals-core", from: "dist/signals-core.mjs", file: "signals-core.js" },
  { package: "@preact/signals", from: "dist/signals.mjs", file: "signals.js" },
];

/** What the libraries import, by the file that has it here: browsers do not know packages. */
const fileOf = new Map([
  ["preact", "preact.js"],
  ["preact/hooks", "preact-hooks.js"],
  ["@preact/signals-core", "signals-core.js"],
]);

const root = new URL("../", import.meta.url);

/** Contents by name, as they must be in src/web/vendor. */
export function vendoredFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const licenses = new Map<string, string>();
  const list = libraries.map(({ package: name, from, file }) => {
    const folder = new URL(`node_modules/${name}/`, root);
    const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
    licenses.set(name, readFileSync(new URL("LICENSE", folder), "utf8").trim());
    const content = withRelativeImports(readFileSync(new URL(from, folder), "utf8"));
    files.set(file, content);
    return { file, package: name, version, license, sha256: hash("sha256", content) };
  });
  files.set("vendored.json", `${JSON.stringify(list, null, 2)}\n`);
  const texts = [...licenses].map(([name, text]) => `${name}\n\n${text}\n`);
  files.set("LICENSES.txt", texts.join(`\n${"-".repeat(80)}\n\n`));
  return files;
}

function withRelativeImports(script: string): string {
  return script
    .replace(/\n?\/\/# sourceMappingURL=.*\n?$/, "\n")
    .replaceAll(/\bfrom"([^"./][^"]*)"/g, (_all, name: string) => {
      const file = fileOf.get(name);
      if (file === undefined) throw new Error(`A vendored library imports ${name}, which is not vendored.`);
      return `from"./${file}"`;
    });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, content] of vendoredFiles()) {
    writeFileSync(new URL(`src/web/vendor/${name}`, root), content);
  }
}
