// A cgroup that is handed over to an ordinary user, as systemd does with `Delegate=yes`, for programs that tests start.

import { chownSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { cgroupsBelow, delegatedCgroup } from "../../src/cgroups.ts";
import { until } from "./until.ts";

/** Of "nobody", who owns nothing. */
const USER = 65_534;
const isRoot = process.getuid?.() === 0;
const own = delegatedCgroup();

/** Why there is none here, or false. */
export const noDelegatedCgroup: string | false =
  own === null && "cgroups cannot be made below the one that the tests run in";

export class DelegatedCgroup {
  readonly folder: string;
  /** Words for `ProgramOptions.through`: the program runs in the cgroup, and not as root. */
  readonly through: readonly string[];

  /** @param home the program's, which is handed over too */
  constructor(home: string) {
    this.folder = join(own ?? "", `troupe-test-${basename(home).replaceAll(" ", "-")}`);
    mkdirSync(this.folder);
    const asUser = isRoot ? ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"] : [];
    const procs = join(this.folder, "cgroup.procs");
    if (isRoot) for (const path of [home, this.folder, procs]) chownSync(path, USER, USER);
    this.through = ["sh", "-c", `echo 0 > "$0" && exec "$@"`, procs, ...asUser];
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
