// A hostile worker tries a hundred ways out of its sandbox, and the same ones without a sandbox. One process makes all of
// them: as root, whose sandboxes give root's rights up first, and as an ordinary user.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { testedEngine } from "../support/engines.ts";
import type { Attacked } from "../support/sandbox-attacked.ts";
import { noSandboxes } from "../support/sandboxes.ts";

const program = join(import.meta.dirname, "../support/sandbox-attacked.ts");
const isRoot = process.getuid?.() === 0;
const asOrdinaryUser = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
const ATTACKS_MIN = 100;

/** What works for anybody who is not in a sandbox, on any Linux. */
const worksOutside = [
  "lists_the_home",
  "reads_the_database",
  "reads_the_secret_key",
  "reads_another_run",
  "climbs_out_of_the_workspace",
  "sees_files_in_tmp",
  "sees_var",
  "reads_users_of_the_machine",
  "changes_its_input",
  "adds_to_the_attempts_folder",
  "replaces_its_event_stream",
  "replaces_the_output_folder",
  "writes_to_what_is_read_only",
  "links_a_file_into_the_output",
  "sees_other_processes",
  "signals_other_processes",
  "finds_the_runtimes_environment",
  "may_get_privileges",
  ...["pid", "ipc", "uts", "net", "mnt", "user", "cgroup"].map((kind) => `shares_the_${kind}_namespace`),
  "connects_to_an_abstract_socket",
  "connects_to_a_socket_of_the_machine",
  "connects_to_loopback",
  "starts_processes_without_end",
  "fills_tmp",
  "fills_shared_memory",
  "writes_a_large_file",
  "computes_without_end",
];

const worksForRoot = ["reads_shadow", "writes_to_usr", "writes_to_etc", "opens_core_pattern", "becomes_root"];

/**
 * What gVisor's own kernel answers in another way: it has no such calls, and refuses with another number. Nothing makes a setuid
 * file one there: the worker can get no privileges.
 */
const answeredByGvisor: readonly string[] =
  testedEngine === "gvisor" ? ["may_have_setuid_files", "uses_io_uring", "copies_anothers_descriptor"] : [];
/** An ordinary user's worker is user 0 there, without capabilities, and /dev is its own. */
const asUserOfGvisor: readonly string[] = testedEngine === "gvisor" ? ["becomes_root", "writes_to_dev"] : [];

/** Why these tests are skipped. */
function skipped(through: readonly string[]): string | false {
  if (noSandboxes !== false) return noSandboxes;
  if (!existsSync("/usr/bin/python3")) return "no /usr/bin/python3 here";
  const [file = "test", ...args] = [...through, "test", "-r", program];
  return spawnSync(file, args).status === 0 ? false : "the user has no access to these files";
}

for (const [who, through, works] of [
  ["root", [], [...worksOutside, ...worksForRoot]],
  ["an ordinary user", asOrdinaryUser, worksOutside],
] as const) {
  const skip = who === "root" && !isRoot ? "not root" : skipped(through);
  describe(`a hostile worker of ${who}`, { skip }, () => {
    let attacked: Attacked;
    before(() => {
      const words = [...through, process.execPath, "--disable-warning=ExperimentalWarning", program];
      const [file = "", ...args] = words;
      // A folder that is open to every user.
      const env = { ...process.env, TMPDIR: "/var/tmp", TROUPE_ATTACKED: "the runtime's own" };
      const { stdout, stderr } = spawnSync(file, args, { encoding: "utf8", env });
      assert.equal(stderr, "");
      attacked = JSON.parse(stdout) as Attacked;
    });

    test("gets nothing in a sandbox", () => {
      const attacks = Object.entries(attacked.sandboxed);
      assert.ok(attacks.length >= ATTACKS_MIN, `${attacks.length} attacks`);
      const known = who === "root" ? answeredByGvisor : [...answeredByGvisor, ...asUserOfGvisor];
      assert.deepEqual(
        attacks.filter(([name, [got]]) => got && !known.includes(name)),
        [],
      );
    });

    test("gets what it is after without one", () => {
      const failed = works.filter((name) => attacked.bare[name]?.[0] !== true);
      assert.deepEqual(
        failed.map((name) => [name, attacked.bare[name]]),
        [],
      );
    });

    test("leaves no artifact but its ordinary file", () => {
      assert.deepEqual(attacked.artifacts, ["ordinary.txt"]);
    });
  });
}
