// Which test files share a process. A process of its own costs a file a third of a second of the processor, most of it for
// loading what its neighbours load as well; so the unit tests of one folder share one, and so do those of an API.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** A file that changes or measures its process has one of its own. */
const TOUCHES_ITS_PROCESS =
  /process\.(?:env\.\w+ = |chdir\(|umask\(|on\(|once\(|memoryUsage|cpuUsage|exitCode = )|\.mock\.|setFlagsFromString|\/proc\/self/;

/** Unit tests, and those of the APIs, whose servers run in the process of their test. */
const mayShare = (file: string) => /^(?:src|sdk\/src|test\/gateway|test\/runtime)\//.test(file);

/**
 * Files as the runner is to be given them, each of which gets a process: a folder's file stands where the first of its
 * members stood.
 *
 * @param files relative to `root`
 * @param into where a file is made for each folder
 */
export function grouped(root: string, files: readonly string[], into: string): readonly string[] {
  const touches = (file: string) => TOUCHES_ITS_PROCESS.test(readFileSync(join(root, file), "utf8"));
  const processes = Map.groupBy(files, (file) => (mayShare(file) && !touches(file) ? dirname(file) : file));
  return [...processes].map(([name, members]) => {
    if (members.length === 1) return String(members[0]);
    const path = join(into, `${name.replaceAll("/", "-")}.test.mjs`);
    writeFileSync(path, groupSource(root, members));
    return path;
  });
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
