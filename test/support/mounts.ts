// A home on a disk of its own: the program runs in its own mount namespace, where a small tmpfs lies over SVC_HOME.
//
// - The mount is seen by the program only, and goes with it.
// - Works for root, and for everybody where user namespaces are allowed; `whyNoMounts` reports it otherwise.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** Why the program cannot be given a disk of its own here; null when it can. */
export function whyNoMounts(): string | null {
  const tried = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], { encoding: "utf8" });
  if (tried.status === 0) return null;
  const said = tried.error?.message ?? tried.stderr.trim();
  return `needs a mount namespace of its own (unshare -rm), which this machine refuses: ${said}`;
}

export interface OwnDisk {
  /** Bytes in all. */
  readonly sizeBytes: number;
  /** Bytes of them that a file named "ballast" takes until it is removed. */
  readonly ballastBytes?: number;
  readonly readOnly?: boolean;
}

/** Words for `ProgramOptions.through` that lay a small disk over `home`. */
export function onOwnDisk(
  home: string,
  { sizeBytes, ballastBytes = 0, readOnly = false }: OwnDisk,
): string[] {
  const steps = [
    `mount -t tmpfs -o "size=$2${readOnly ? ",ro" : ""}" tmpfs "$1"`,
    ...(ballastBytes > 0 ? ['head -c "$3" /dev/zero > "$1/ballast"'] : []),
    "shift 3",
    'exec "$@"',
  ];
  return [
    "unshare",
    "-rm",
    "sh",
    "-c",
    steps.join(" && "),
    "sh",
    home,
    String(sizeBytes),
    String(ballastBytes),
  ];
}

/** A path as the program with this pid sees it, from outside its namespace. */
export function asSeenBy(pid: number, path: string): string {
  return join("/proc", String(pid), "root", path);
}
