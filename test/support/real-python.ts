// Where `python3` is a script that looks for the one to start, as pyenv's is, each start of a worker in Python has some thirty
// processes more, and takes 0.16 s of the processor in place of 0.06; a run of all tests has hundreds. Its programs find the
// one that is started in the end.

import { spawnSync } from "node:child_process";
import { delimiter, dirname } from "node:path";

/** @returns the variable with which programs find it, or none where there is no Python */
export function realPython(): Readonly<Record<string, string>> {
  const { status, stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], {
    encoding: "utf8",
  });
  if (status !== 0) return {};
  return { PATH: [dirname(stdout.trim()), process.env.PATH].join(delimiter) };
}
