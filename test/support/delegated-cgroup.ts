// A cgroup that is handed over to an ordinary user, as systemd does with `Delegate=yes`, for programs that tests start.

import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { cgroupsBelow, delegatedCgroup } from "../../src/execution/process/cgroups.ts";
import { withoutPrivileges } from "./privileges.ts";
import { until } from "./until.ts";

const own = delegatedCgroup();

/** Why there is none here, or false. */
export const noDelegatedCgroup: string | false =
  own === null && "cgroups cannot be made below the one that the tests run in";

export class DelegatedCgroup {
  readonly folder: string;
  /** Words for `ProgramOptions.through`: the program runs in the cgroup, without the rights of root. */
  readonly through: readonly string[];

  /** @param home the program's, after which it is named */
  constructor(home: string) {
    this.folder = join(own ?? "", `troupe-test-${basename(home).replaceAll(" ", "-")}`);
    mkdirSync(this.folder);
    const procs = join(this.folder, "cgroup.procs");
    this.through = ["sh", "-c", `echo 0 > "$0" && exec "$@"`, procs, ...withoutPrivileges];
  }

  /** Kills what is in it, also what a failed test has left, and removes it. */
  async remove(): Promise<void> {
    writeFileSync(join(this.folder, "cgroup.kill"), "1");
    const inside = () => readFileSync(join(this.folder, "cgroup.events"), "utf8").includes("populated 1");
    await until("nothing is left in the cgroup", () => !inside());
    for (const name of cgroupsBelow(this.folder)) if (name.includes("=")) rmdirSync(join(this.folder, name));
    rmdirSync(this.folder);
  }
}
