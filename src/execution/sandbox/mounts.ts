// What a sandbox shows of its machine, as words for bubblewrap.
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

export const readOnly = (from: string, to = from): Words => ["--ro-bind", from, to];
const writable = (from: string, to: string): Words => ["--bind", from, to];
/** A folder that everybody may look into: what bubblewrap makes on the way to a mount is closed to all but its owner. */
export const folder = (path: string): Words => ["--perms", "0755", "--dir", path];

/** The folders on the way to a path, from the top. */
function foldersAbove(path: string): Words {
  const above = dirname(path);
  return above === "/" ? [] : [...foldersAbove(above), ...folder(above)];
}

/** A file of /etc, and where it is read from. */
export interface SettingsFile {
  readonly path: string;
  readonly from: string;
}

/** @param folder where our own ones are, by their names */
export function settingsFiles(folder: string): readonly SettingsFile[] {
  const own = Object.keys(ownSettings).map((name) => ({ path: `/etc/${name}`, from: join(folder, name) }));
  const system = SETTINGS_FILES.filter((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.isFile() && (found.mode & EVERYBODY_READS) !== 0;
  });
  return [...own, ...system.map((path) => ({ path, from: path }))];
}

/** @param settingsFrom the number of the first of the files of /etc, which are open */
export function systemMounts(settings: readonly SettingsFile[], settingsFrom: number): Words {
  const linked = SYSTEM.flatMap((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) return ["--symlink", readlinkSync(path), path];
    return found?.isDirectory() ? readOnly(path) : [];
  });
  const shown = SETTINGS.filter((path) => existsSync(path)).flatMap((path) => [
    ...foldersAbove(path),
    ...readOnly(path),
  ]);
  const copied = settings.flatMap(({ path }, index) => [
    ...foldersAbove(path),
    ...["--perms", "0444", "--file", String(settingsFrom + index), path],
  ]);
  return [...readOnly("/usr"), ...linked, ...shown, ...copied];
}

/**
 * @param outside where the worker's things are on the machine
 * @param seen where it finds them
 */
export function workerMounts(outside: WorkerPlaces, seen: WorkerPlaces): Words {
  const { resources, models } = outside.brought;
  return [
    ...folder("/sandbox"),
    ...foldersAbove(seen.workspace),
    ...writable(outside.workspace, seen.workspace),
    ...readOnly(outside.files.folder, inside.attempt),
    ...writable(outside.files.output, inside.output),
    ...writable(outside.runFolder, inside.runFolder),
    ...readOnly(realpathSync(process.execPath), inside.node),
    ...(outside.volumes.length > 0 ? folder(inside.volumes) : []),
    ...outside.volumes.flatMap(({ need, path }, index) => {
      const to = seen.volumes[index]!.path;
      return need.isReadOnly ? readOnly(path, to) : writable(path, to);
    }),
    ...(resources === null ? [] : targetsIn(resources, inside.resources)),
    ...(models === null ? [] : targetsIn(models, inside.models)),
  ];
}

/** What the links in a folder lead to. */
function targetsIn(links: string, to: string): Words {
  const targets = readdirSync(links).flatMap((name) =>
    readOnly(realpathSync(join(links, name)), join(to, name)),
  );
  return [...folder(to), ...targets];
}

/** @throws AttemptFailure when one is not there, or may not be shown */
export function policyMounts(paths: readonly string[], home: string): Words {
  if (paths.length === 0) return [];
  const realHome = realpathSync(home);
  return [...paths].sort().flatMap((path) => {
    const real = realPathOf(path);
    if (isClosedPath(real) || isInside(realHome, real) || isInside(real, realHome))
      throw unmet(`"${path}" is, or leads to, what no sandbox is shown`);
    // Programs of the system are there already.
    return isInside("/usr", real) ? [] : [...foldersAbove(path), ...readOnly(real, path)];
  });
}

export interface Device {
  readonly path: string;
  /** Behind all symlinks. */
  readonly real: string;
}

/** @throws AttemptFailure when one is not there */
export function devicesAt(paths: readonly string[]): readonly Device[] {
  return [...new Set(paths)].map((path) => {
    const real = realPathOf(path);
    if (!isDevice(real) || !isInside("/dev", real)) throw unmet(`"${path}" is no device`);
    return { path, real };
  });
}

export function deviceMounts(devices: readonly Device[]): Words {
  return devices.flatMap(({ path, real }) => [...foldersAbove(path), "--dev-bind", real, path]);
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
