// Which test files share a process. A process of its own costs a file a third of a second of the processor, most of it for
// loading what its neighbours load as well; so the unit tests of one part of the program share one.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** A file that changes or measures its process has one of its own. */
const TOUCHES_ITS_PROCESS =
  /process\.(?:env\.\w+ = |chdir\(|umask\(|on\(|once\(|memoryUsage|cpuUsage|exitCode = )|\.mock\.|setFlagsFromString|\/proc\/self/;

/** The parts: src/engine, src/http, …, sdk/src. */
const PART = /^(?:src|sdk(?=\/src))\/[^/]+(?=\/)/;

/**
 * Files as the runner is to be given them, each of which gets a process.
 *
 * @param files relative to `root`
 * @param folder where a file is made for each group
 */
export function grouped(root: string, files: readonly string[], folder: string): readonly string[] {
  const alone: string[] = [];
  const groups = new Map<string, string[]>();
  for (const file of files) {
    const part = PART.exec(file)?.[0];
    if (part === undefined || TOUCHES_ITS_PROCESS.test(readFileSync(join(root, file), "utf8")))
      alone.push(file);
    else groups.set(part, [...(groups.get(part) ?? []), file]);
  }
  for (const [part, members] of groups) {
    const path = join(folder, `${part.replaceAll("/", "-")}.test.mjs`);
    writeFileSync(path, groupSource(root, members));
    alone.push(path);
  }
  return alone;
}

/** One after the other, each in a suite of its own: its hooks are for its own tests. */
function groupSource(root: string, members: readonly string[]): string {
  const files = members.map((name) => ({ name, url: pathToFileURL(join(root, name)).href }));
  return [
    'import { describe } from "node:test";',
    `for (const { name, url } of ${JSON.stringify(files, null, 2)})`,
    "  await describe(name, () => import(url));",
    "",
  ].join("\n");
}
