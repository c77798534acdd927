// Resources of blueprints on disk: folders that are made once and are there for all runs.
//
//   resources/<blueprint>/<name>              a link to the version that runs find
//   resources/<blueprint>/<name>~<version>/   a version, whole
//   resources/<blueprint>/<name>~<version>.part/, .payload/   one that is being made; gone when that has ended, and of
//                                             a killed process with the next addition
//
// - A version is complete and on disk before its name exists, and is never changed afterwards by anybody here.
// - The link is moved from version to version in one step: it never leads to nothing, nor to half of something.
// - A run keeps the version that it has found (`folders`): versions go when no run of the blueprint is open.
// - What prepares a resource works in the resource's own folder and on a copy of the payload.

import { lstat, mkdir, readlink, rename, rm, rmdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { makeRedactor } from "../execution/output/redaction.ts";
import type { RunSideCommand, SideCommandEnd } from "../execution/process/side-command.ts";
import { StagingError, stage } from "../execution/runner/staging.ts";
import { KeyedMutex } from "../lib/async.ts";
import { bytesIn, namesIn, syncFolder, syncTree } from "../lib/files.ts";
import { OpenFolder } from "../lib/open-folder.ts";
import { folderName, joinInside } from "../lib/paths.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { OperationFailed, OperationInterrupted } from "../operations/failures.ts";
import type { DeclaredResource } from "./package-description.ts";
import type { BlueprintAsset } from "./records.ts";

const PRINTED_CHARS_MAX = 2_000;
/** No resource has a "~" in its name. */
const HALF_MADE = /~(?:link|.*\.part|.*\.payload)$/;

export interface ResourceRequest {
  readonly blueprintId: string;
  readonly resource: DeclaredResource;
  readonly version: string;
  /** The package's payloads/ folder. */
  readonly payload: string;
  /** The package's configuration in plaintext, and the texts in it that must not be shown. */
  readonly configuration: { readonly json: string; readonly secrets: readonly string[] };
  readonly signal: AbortSignal;
}

export class Resources {
  readonly #home: string;
  readonly #runCommand: RunSideCommand;
  /** By the folder of a version: it is made once at a time. */
  readonly #turns = new KeyedMutex();

  /** @param parts.home SVC_HOME */
  constructor(parts: { readonly home: string; readonly runCommand: RunSideCommand }) {
    this.#home = parts.home;
    this.#runCommand = parts.runCommand;
  }

  /** Removes what was being made when a process was killed; to be called before anything is made. */
  async sweep(): Promise<void> {
    const root = join(this.#home, "resources");
    for (const blueprint of await namesIn(root)) {
      for (const name of await namesIn(join(root, blueprint))) {
        if (HALF_MADE.test(name)) await removeTree(join(root, blueprint, name));
      }
    }
  }

  /** Whether this version is there, whole. */
  async has(blueprintId: string, name: string, version: string): Promise<boolean> {
    return isThere(join(this.#folder(blueprintId), versionName(name, version)));
  }

  /** @returns the version that runs find; null when there is none */
  async current(blueprintId: string, name: string): Promise<string | null> {
    const target = await readlink(join(this.#folder(blueprintId), name)).catch(() => null);
    if (target === null || !target.startsWith(`${name}~`)) return null;
    const version = target.slice(name.length + 1);
    return (await this.has(blueprintId, name, version)) ? version : null;
  }

  /**
   * Makes a version, if it is not there; nothing is left of one that cannot be made.
   *
   * @throws OperationFailed `resource_failed`; OperationInterrupted, or the signal's reason, when it is aborted; errors of
   *   the system as they come
   */
  make(request: ResourceRequest): Promise<void> {
    const { blueprintId, resource, version } = request;
    const whole = join(this.#folder(blueprintId), versionName(resource.name, version));
    return this.#turns.run(whole, async () => {
      if (!(await isThere(whole))) await this.#make(request, whole);
    });
  }

  async #make(request: ResourceRequest, whole: string): Promise<void> {
    const { blueprintId, resource } = request;
    const root = this.#folder(blueprintId);
    await mkdir(root, { recursive: true, mode: 0o700 });
    const part = `${whole}.part`;
    const payload = `${whole}.payload`;
    const clear = () => Promise.all([removeTree(part), removeTree(payload)]);
    await clear();
    try {
      await mkdir(part);
      await copyFrom(request, part);
      if (resource.prepare !== null) await this.#prepare(request, resource.prepare, { part, payload });
      await syncTree(part, request.signal);
      await rename(part, whole);
      await syncFolder(root);
      await syncFolder(join(this.#home, "resources"));
    } finally {
      await clear();
    }
  }

  /** Lets runs that come find this version. @returns its bytes */
  async show(blueprintId: string, name: string, version: string): Promise<number> {
    const root = this.#folder(blueprintId);
    const bytes = await bytesIn(join(root, versionName(name, version)));
    if ((await this.current(blueprintId, name)) === version) return bytes;
    const link = join(root, `${name}~link`);
    await rm(link, { force: true });
    await symlink(versionName(name, version), link);
    await rename(link, join(root, name));
    await syncFolder(root);
    return bytes;
  }

  /** Bytes of all versions of a resource. */
  async bytes(blueprintId: string, name: string): Promise<number> {
    let bytes = 0;
    for (const path of await this.#versions(blueprintId, name)) bytes += await bytesIn(path);
    return bytes;
  }

  /** Removes a resource with all its versions. */
  async remove(blueprintId: string, name: string): Promise<void> {
    const root = this.#folder(blueprintId);
    await rm(join(root, name), { force: true });
    for (const path of await this.#versions(blueprintId, name)) await removeTree(path);
    // Fails while there are others.
    await rmdir(root).catch(() => {});
  }

  /**
   * Removes what is neither the version that runs find nor the one that is about to be; to be called while no run of
   * the blueprint is open.
   *
   * @param coming null when there is none
   */
  async tidy(blueprintId: string, name: string, coming: string | null): Promise<void> {
    const kept = [await this.current(blueprintId, name), coming].map((one) => versionName(name, one ?? ""));
    for (const path of await this.#versions(blueprintId, name)) {
      if (!kept.includes(basename(path))) await removeTree(path);
    }
  }

  /**
   * Removes the resources that no blueprint has.
   *
   * @param assets those of all blueprints, read when it is known what is on disk: each has its row before its first byte
   */
  async sweepUnowned(
    assets: () => Promise<readonly Pick<BlueprintAsset, "kind" | "blueprintId" | "assetId">[]>,
  ): Promise<void> {
    const root = join(this.#home, "resources");
    const found: { readonly folder: string; readonly name: string }[] = [];
    for (const folder of await namesIn(root)) {
      for (const name of await namesIn(join(root, folder))) found.push({ folder, name });
    }
    const ofResources = (await assets()).filter(({ kind }) => kind === "resource");
    const owned = new Set(
      ofResources.map(({ blueprintId, assetId }) => join(folderName(blueprintId), assetId)),
    );
    for (const { folder, name } of found) {
      const [resource = ""] = name.split("~");
      if (!owned.has(join(folder, resource))) await removeTree(join(root, folder, name));
    }
    for (const folder of new Set(found.map((one) => one.folder)))
      await rmdir(join(root, folder)).catch(() => {});
  }

  /** Where a blueprint's resources are now, by name; later versions change nothing of these folders. */
  async folders(blueprintId: string): Promise<ReadonlyMap<string, string>> {
    const root = this.#folder(blueprintId);
    const names = (await namesIn(root)).filter((name) => !name.includes("~"));
    const found = new Map<string, string>();
    for (const name of names) {
      const version = await this.current(blueprintId, name);
      if (version !== null) found.set(name, join(root, versionName(name, version)));
    }
    return found;
  }

  #folder(blueprintId: string): string {
    return join(this.#home, "resources", folderName(blueprintId));
  }

  /** Everything of a resource but its link. */
  async #versions(blueprintId: string, name: string): Promise<readonly string[]> {
    const root = this.#folder(blueprintId);
    return (await namesIn(root)).filter((one) => one.startsWith(`${name}~`)).map((one) => join(root, one));
  }

  async #prepare(
    { blueprintId, resource, payload, configuration, signal }: ResourceRequest,
    command: readonly string[],
    folders: { readonly part: string; readonly payload: string },
  ): Promise<void> {
    await mkdir(folders.payload);
    {
      using target = OpenFolder.open(folders.payload);
      await stage(payload, [{ path: ".", as: "." }], target);
    }
    const end = await this.#runCommand(
      {
        command: command.map((word) =>
          word.replaceAll("{node}", process.execPath).replaceAll("{payload_dir}", folders.payload),
        ),
        folder: folders.part,
        environment: {
          SVC_BLUEPRINT_ID: blueprintId,
          SVC_BLUEPRINT_CONFIG_JSON: configuration.json,
          SVC_PAYLOAD_DIR: folders.payload,
        },
        timeoutMs: resource.timeoutSeconds * 1_000,
      },
      signal,
    );
    const why = whyFailed(end, command[0] ?? "", resource.timeoutSeconds);
    const message =
      why ?? ((await isThere(folders.part)) ? null : "Its command has removed the folder that it worked in.");
    if (message === null) return;
    const printed = end.kind === "exited" || end.kind === "timed_out" ? this.#shown(end, configuration) : "";
    throw failed(resource.name, `${message}${printed}`);
  }

  /** The end of what a command printed, without secrets and without places of this machine. */
  #shown(
    { stderr, stdout }: { readonly stderr: string; readonly stdout: string },
    { secrets }: ResourceRequest["configuration"],
  ): string {
    const text = stderr.trim() === "" ? stdout : stderr;
    const redacted = makeRedactor(secrets).text(text).replaceAll(this.#home, "SVC_HOME").trim();
    if (redacted === "") return " It printed nothing.";
    const tail = redacted.length > PRINTED_CHARS_MAX ? `…${redacted.slice(-PRINTED_CHARS_MAX)}` : redacted;
    return ` It printed: ${tail}`;
  }
}

const VERSION_CHARS = 16;

/** The version that is made of a recipe; a forced addition's has `-` and more behind it. */
export function versionOf(recipe: string): string {
  return recipe.slice(0, VERSION_CHARS);
}

const versionName = (name: string, version: string) => `${name}~${version}`;

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null;
}

async function copyFrom({ resource, payload }: ResourceRequest, folder: string): Promise<void> {
  const { from, name } = resource;
  if (from === null) return;
  const source = joinInside(payload, from);
  const found = source === null ? null : await lstat(source).catch(() => null);
  if (found === null) {
    throw failed(
      name,
      `It is made from payloads/${from}, which the package does not have. Fix "from" in the manifest.`,
    );
  }
  try {
    using target = OpenFolder.open(folder);
    await stage(payload, [{ path: from, as: found.isDirectory() ? "." : basename(from) }], target);
  } catch (error) {
    if (error instanceof StagingError) throw failed(name, `payloads/${from} cannot be copied.`);
    throw error;
  }
}

/** @returns null when the command has done its work */
function whyFailed(end: SideCommandEnd, program: string, timeoutSeconds: number): string | null {
  switch (end.kind) {
    case "exited":
      if (end.code === 0) return null;
      return end.code === null
        ? "A signal ended its command."
        : `Its command ended with exit code ${end.code}.`;
    case "timed_out":
      return `Its command took longer than its timeout_seconds, ${timeoutSeconds} s.`;
    case "not_started":
      return `Its command "${program}" cannot be started (${end.reason}); check that it is on the runtime's PATH.`;
    case "aborted":
      throw new OperationInterrupted("the command that prepares a resource was interrupted");
    default:
      return end satisfies never;
  }
}

function failed(name: string, message: string): OperationFailed {
  return new OperationFailed("resource_failed", `The resource "${name}" could not be made. ${message}`);
}
