// Which test files share a process. A process of its own costs a file half a second of the processor, for loading and
// warming up what its neighbours load as well; so the unit tests of a part of the program share one, and so do those of an
// API, and the tests of the whole program that concern one thing.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** A file that changes or measures its process has one of its own. */
const TOUCHES_ITS_PROCESS =
  /process\.(?:env\.\w+ = |chdir\(|umask\(|on\(|once\(|memoryUsage|cpuUsage|exitCode = )|\.mock\.|setFlagsFromString|\/proc\/self/;

/** The hook that ends the commands of failed tests works for the first file of a process only. */
const STARTS_COMMANDS = /import \{[^}]*\bstart\b[^}]*\} from "\.\.\/support\/command-line\.ts"/;

/** The runner would not know to which suite of a group the tests behind it belong (untracked-promises.ts). */
const WAITS_WHILE_IT_LOADS = /^(?:(?:const|let) .* = )?await /m;

/** They take longest, and have a process each. */
export const LONGEST =
  /^test\/[a-z]+\/(simulation|kill|lost-nodes|package|dashboard|waiting-stops|retention|traces|hostile-workers|gateway-fire-[a-z]+)\.test\.ts$/;

/** By the first word of a file's name in test/integration, whose process it shares; the others share another one. */
const FAMILIES: Readonly<Record<string, string>> = {
  blueprint: "blueprint",
  cli: "cli",
  gateway: "gateway",
  hostile: "hostile",
  several: "several",
  // Mostly of several nodes, at one PostgreSQL.
  adjacent: "nodes",
  doors: "nodes",
  node: "nodes",
  nodes: "nodes",
  postgres: "nodes",
  reconcile: "nodes",
};

/** @returns the name of the group whose process a file may share, or null */
function groupOf(file: string): string | null {
  if (/^test\/integration\//.test(file)) {
    if (LONGEST.test(file)) return null;
    const [word = ""] = basename(file).split("-");
    return `test/integration/${FAMILIES[word] ?? "others"}`;
  }
  if (/^(?:sdk|test\/gateway|test\/runtime)\//.test(file)) return dirname(file);
  // Those of Chromium that kill no program.
  if (/^test\/browser\/(?:console(?:-jobs|-logs|-repair)?|docs|runtime-protocol)\.test/.test(file))
    return "test/browser";
  return /^src\/[^/]+/.exec(file)?.[0] ?? null;
}

/**
 * Files as the runner is to be given them, each of which gets a process: a group's file stands where the first of its
 * members stood.
 *
 * @param files relative to `root`
 * @param into where a file is made for each group
 */
export function grouped(root: string, files: readonly string[], into: string): readonly string[] {
  const needsItsOwn = (file: string) => {
    const source = readFileSync(join(root, file), "utf8");
    return [TOUCHES_ITS_PROCESS, STARTS_COMMANDS, WAITS_WHILE_IT_LOADS].some((what) => what.test(source));
  };
  const processes = Map.groupBy(files, (file) => {
    const group = groupOf(file);
    return group === null || needsItsOwn(file) ? file : group;
  });
  return [...processes].map(([name, members]) => {
    if (members.length === 1) return String(members[0]);
    const path = join(into, `${name.replaceAll("/", "-")}.test.mjs`);
    writeFileSync(path, groupSource(root, members));
    return path;
  });
}

/** One after the other, each in a suite of its own, which a file that `import()` loads would not be: its hooks are for its tests. */
function groupSource(root: string, members: readonly string[]): string {
  const files = members.map((name) => ({ name, path: join(root, name) }));
  return [
    'import { createRequire } from "node:module";',
    'import { describe } from "node:test";',
    "const require = createRequire(import.meta.url);",
    `for (const { name, path } of ${JSON.stringify(files, null, 2)})`,
    "  await describe(name, () => void require(path));",
    "",
  ].join("\n");
}
