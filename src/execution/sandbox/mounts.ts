// What a sandbox shows of its machine, in the order in which it is made, whatever makes it.
//
// - Programs and libraries of the system, read-only; of /etc what they need and no secrets; nothing of /home, /root, /var,
//   /run, /sys and SVC_HOME but what is the worker's own.
// - What a policy names is looked at through all symlinks: none leads to what no sandbox is shown.

import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isClosedPath } from "../../engine/manifest/sandbox-policy.ts";
import { isInside } from "../../lib/paths.ts";
import { isDevice } from "../devices.ts";
import { AttemptFailure } from "../runner/attempt.ts";
import type { WorkerPlaces } from "../runner/worker-contract.ts";
import { inside } from "./places.ts";

export type Words = readonly string[];

/** Beside /usr, as the machine has them: folders, or symlinks into it. */
const SYSTEM = ["/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"];
const SETTINGS = [
  "/etc/alternatives",
  "/etc/fonts",
  "/etc/pki/ca-trust/extracted",
  "/etc/pki/tls/certs",
  "/etc/ssl/certs",
];
/** They are copied into each sandbox: that takes less time than mounts. */
const SETTINGS_FILES = ["/etc/ld.so.cache", "/etc/localtime", "/etc/services", "/etc/ssl/openssl.cnf"];
const EVERYBODY_READS = 0o004;

/** Files of /etc that are ours, by their names. */
export const ownSettings: Readonly<Record<string, string>> = {
  passwd: "root:x:0:0:root:/:/bin/false\nsandbox:x:65534:65534:sandbox:/tmp:/bin/sh\n",
  group: "root:x:0:\nsandbox:x:65534:\n",
  hosts: "127.0.0.1 localhost\n::1 localhost\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

/** Something at a path inside. */
export type Shown =
  | { readonly kind: "mount"; readonly path: string; readonly from: string; readonly isReadOnly: boolean }
  /** Everybody may look into it. */
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly to: string }
  /** A copy, which everybody reads. */
  | { readonly kind: "file"; readonly path: string; readonly from: string };

export const readOnly = (from: string, path = from): Shown => ({
  kind: "mount",
  path,
  from,
  isReadOnly: true,
});
export const writable = (from: string, path: string): Shown => ({
  kind: "mount",
  path,
  from,
  isReadOnly: false,
});
export const folder = (path: string): Shown => ({ kind: "folder", path });

/** The folders on the way to a path, from the top. */
function pathsAbove(path: string): readonly string[] {
  const above = dirname(path);
  return above === "/" ? [] : [...pathsAbove(above), above];
}

const foldersAbove = (path: string): readonly Shown[] => pathsAbove(path).map(folder);

/** Programs and libraries of the system, and files of /etc. @param ownFolder where our own ones are, by their names */
export function systemShown(ownFolder: string): readonly Shown[] {
  const linked = SYSTEM.flatMap((path): readonly Shown[] => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) return [{ kind: "link", path, to: readlinkSync(path) }];
    return found?.isDirectory() ? [readOnly(path)] : [];
  });
  const shown = SETTINGS.filter((path) => existsSync(path)).flatMap((path) => [
    ...foldersAbove(path),
    readOnly(path),
  ]);
  const own = Object.keys(ownSettings).map((name) => [`/etc/${name}`, join(ownFolder, name)] as const);
  const system = SETTINGS_FILES.filter((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.isFile() && (found.mode & EVERYBODY_READS) !== 0;
  });
  const copied = [...own, ...system.map((path) => [path, path] as const)].flatMap(
    ([path, from]): readonly Shown[] => [...foldersAbove(path), { kind: "file", path, from }],
  );
  return [readOnly("/usr"), ...linked, ...shown, ...copied];
}

/**
 * @param outside where the worker's things are on the machine
 * @param seen where it finds them
 */
export function workerMounts(outside: WorkerPlaces, seen: WorkerPlaces): readonly Shown[] {
  const { resources, models } = outside.brought;
  return [
    folder("/sandbox"),
    ...foldersAbove(seen.workspace),
    writable(outside.workspace, seen.workspace),
    readOnly(outside.files.folder, inside.attempt),
    writable(outside.files.output, inside.output),
    writable(outside.runFolder, inside.runFolder),
    readOnly(realpathSync(process.execPath), inside.node),
    ...(outside.volumes.length > 0 ? [folder(inside.volumes)] : []),
    ...outside.volumes.map(({ need, path }, index) => {
      const to = seen.volumes[index]!.path;
      return need.isReadOnly ? readOnly(path, to) : writable(path, to);
    }),
    ...(resources === null ? [] : targetsIn(resources, inside.resources)),
    ...(models === null ? [] : targetsIn(models, inside.models)),
  ];
}

/** What the links in a folder lead to. */
function targetsIn(links: string, to: string): readonly Shown[] {
  const targets = readdirSync(links).map((name) => readOnly(realpathSync(join(links, name)), join(to, name)));
  return [folder(to), ...targets];
}

/** @throws AttemptFailure when one is not there, or may not be shown */
export function policyMounts(paths: readonly string[], home: string): readonly Shown[] {
  if (paths.length === 0) return [];
  const realHome = realpathSync(home);
  return [...paths].sort().flatMap((path) => {
    const real = realPathOf(path);
    if (isClosedPath(real) || isInside(realHome, real) || isInside(real, realHome))
      throw unmet(`"${path}" is, or leads to, what no sandbox is shown`);
    // Programs of the system are there already.
    return isInside("/usr", real) ? [] : [...foldersAbove(path), readOnly(real, path)];
  });
}

export interface Device {
  readonly path: string;
  /** Behind all symlinks. */
  readonly real: string;
  /** The folders on the way to it, from the top. */
  readonly above: readonly string[];
}

/** @throws AttemptFailure when one is not there */
export function devicesAt(paths: readonly string[]): readonly Device[] {
  return [...new Set(paths)].map((path) => {
    const real = realPathOf(path);
    if (!isDevice(real) || !isInside("/dev", real)) throw unmet(`"${path}" is no device`);
    return { path, real, above: pathsAbove(path) };
  });
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw unmet(code === "ENOENT" ? `"${path}" does not exist` : `"${path}" cannot be reached (${code})`);
  }
}

function unmet(why: string): AttemptFailure {
  return new AttemptFailure(
    "sandbox.policy_unmet",
    `The policy of the sandbox names what this machine cannot give it: ${why}.`,
  );
}
