// The folders of its user's that a launch takes along (config `local_inputs.folders`, spec "packaging" 2 to 6): each is
// listed, copied to its payload_path, and named by its runtime_path in the configuration from then on.
//
// - A value is native (an absolute path on this machine) or staged (its runtime_path: the package ships the folder,
//   or a launch has copied it); both are accepted, nothing else is.
// - A blank value means that there is no such folder; whether that will do is for rules and schemas to decide.
// - The runtime's own home is never taken along, neither whole nor in parts.
// - No message shows a value that has a secret's name: a caller who launches may declare folders, and must not learn
//   the job's secrets by them.

import { realpath, stat } from "node:fs/promises";
import { basename, isAbsolute, join, posix } from "node:path";
import type { LocalFolder } from "../../blueprints/package-description.ts";
import { shown } from "../../bundles/problem.ts";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import { MASK } from "../../engine/sealed.ts";
import { isInside } from "../../lib/paths.ts";
import { partsOf } from "../../lib/text.ts";
import { holdsSecret, looksSecret } from "../../security/secret-detection.ts";
import { canSetAt, isBlank, pointerOf, valueAt, withValuesAt } from "./config-paths.ts";
import type { Found, LaunchProblem } from "./findings.ts";
import { type FolderScan, scanFolder } from "./scan-folder.ts";

/** A folder that the launch uses. */
export type UsedFolder =
  | { readonly kind: "shipped"; readonly declared: LocalFolder }
  | {
      readonly kind: "native";
      readonly declared: LocalFolder;
      /** For people. */
      readonly name: string;
      readonly scan: FolderScan;
    };

export interface FolderPlan extends Found {
  readonly used: readonly UsedFolder[];
}

export interface FolderPlanning {
  readonly declared: readonly LocalFolder[];
  readonly configuration: JsonObject;
  /** The package's payload; null while it is not there: staged values are taken for good then. */
  readonly payload: string | null;
  /** SVC_HOME. */
  readonly home: string;
  readonly signal: AbortSignal;
}

/** Looks at all declared folders. @throws the signal's reason when it is aborted */
export async function planFolders(planning: FolderPlanning): Promise<FolderPlan> {
  const used: UsedFolder[] = [];
  const errors: LaunchProblem[] = [];
  const warnings: LaunchProblem[] = [];
  for (const declared of planning.declared) {
    const value = valueAt(planning.configuration, declared.configPath);
    if (isBlank(value)) continue;
    try {
      const folder = await look(declared, value!, planning);
      errors.push(...unsettable(declared, planning.configuration));
      used.push(folder);
      warnings.push(...skippedIn(folder));
    } catch (error) {
      if (!(error instanceof FolderRefused)) throw error;
      errors.push(problem(declared, error.code, error.message));
    }
  }
  return { used, errors, warnings };
}

class FolderRefused extends Error {
  override readonly name = "FolderRefused";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** A value for a message; what lies inside of a secret is one. */
function shownValue({ configPath }: LocalFolder, value: string): string {
  return shown(holdsSecret(value) || partsOf(configPath)?.some(looksSecret) ? MASK : value);
}

/** Linked settings that lie where there can be none, so that the worker would not find the folder by them. */
function unsettable(declared: LocalFolder, configuration: JsonObject): readonly LaunchProblem[] {
  const { configPath, linkedConfigPaths } = declared;
  return linkedConfigPaths
    .filter((path) => !canSetAt(configuration, path))
    .map((path) => {
      const clause = `${path} cannot be set to where ${configPath} is copied, as its linked_config_paths ask`;
      const message = `${clause}: on the way to it is a value that has no such part`;
      return { part: "configuration", path: pointerOf(path), code: "not_settable", message };
    });
}

function problem({ configPath }: LocalFolder, code: string, message: string): LaunchProblem {
  return { part: "configuration", path: pointerOf(configPath), code, message };
}

async function look(declared: LocalFolder, value: JsonValue, planning: FolderPlanning): Promise<UsedFolder> {
  const { configPath, runtimePath } = declared;
  if (typeof value !== "string" || value.includes("\0")) {
    throw new FolderRefused("wrong_type", `${configPath} must be the path of a folder`);
  }
  if (isSamePath(value, runtimePath)) return lookAtShipped(declared, planning.payload);
  if (!isAbsolute(value)) {
    const clause = `${configPath} is ${shownValue(declared, value)}: it must be the absolute path of a folder on this machine`;
    throw new FolderRefused(
      "not_absolute",
      `${clause}, or ${JSON.stringify(runtimePath)}, if the package ships it`,
    );
  }
  const root = await findRoot(declared, value, planning.home);
  const { allowedExtensions } = declared;
  const scan = await scanFolder(root, { allowedExtensions, signal: planning.signal }).catch(
    (error: unknown) => {
      planning.signal.throwIfAborted();
      const { code } = error as NodeJS.ErrnoException;
      throw new FolderRefused(
        "not_readable",
        `${configPath} names a folder that cannot be read (${code}): ${shownValue(declared, value)}`,
      );
    },
  );
  checkTakeable(declared, value, scan);
  return { kind: "native", declared, name: basename(root) || root, scan };
}

/** Worked out word by word: "./docs/" is "docs". */
function isSamePath(value: string, runtimePath: string): boolean {
  const plain = (path: string) => posix.join(path.trim(), ".").replace(/\/$/, "");
  return plain(value) === plain(runtimePath);
}

async function lookAtShipped(declared: LocalFolder, payload: string | null): Promise<UsedFolder> {
  const { configPath, payloadPath } = declared;
  const isThere = payload === null || (await isFolder(join(payload, payloadPath)));
  if (isThere) return { kind: "shipped", declared };
  const clause = `${configPath} names a folder that the package should ship at payloads/${payloadPath}, and it is not there`;
  throw new FolderRefused("not_found", `${clause}: give the absolute path of a folder on this machine`);
}

async function findRoot(declared: LocalFolder, value: string, home: string): Promise<string> {
  const { configPath } = declared;
  const named = shownValue(declared, value);
  let root: string;
  try {
    root = await realpath(value);
    if (!(await stat(root)).isDirectory()) {
      throw new FolderRefused("not_a_folder", `${configPath} must name a folder, and this is none: ${named}`);
    }
  } catch (error) {
    if (error instanceof FolderRefused) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = code === "ENOENT" || code === "ENOTDIR";
    const clause = isMissing ? "does not exist on this machine" : `cannot be read (${code})`;
    throw new FolderRefused(
      isMissing ? "not_found" : "not_readable",
      `${configPath} names a folder that ${clause}: ${named}`,
    );
  }
  const realHome = await realpath(home);
  if (!isInside(root, realHome) && !isInside(realHome, root)) return root;
  const clause = `${configPath} names a folder that holds, or belongs to, the runtime's own files`;
  throw new FolderRefused("not_allowed", `${clause}; choose another one: ${named}`);
}

function checkTakeable(declared: LocalFolder, value: string, scan: FolderScan): void {
  const { configPath, allowedExtensions } = declared;
  const [first] = scan.problems;
  if (first !== undefined) {
    const all = scan.problems.map(({ clause }) => clause).join("; ");
    throw new FolderRefused(first.code, `${configPath} cannot be taken: ${all}`);
  }
  if (scan.files.length > 0) return;
  const wanted = allowedExtensions === null ? "" : ` that ends in ${allowedExtensions.join(" or ")}`;
  const passedOver = scan.skipped.byExtension > 0 ? ` (${scan.skipped.byExtension} others were found)` : "";
  throw new FolderRefused(
    "no_files",
    `${configPath} names a folder without any file${wanted}${passedOver}: ${shownValue(declared, value)}`,
  );
}

function skippedIn(folder: UsedFolder): readonly LaunchProblem[] {
  if (folder.kind === "shipped") return [];
  const { declared, scan } = folder;
  const { byExtension, special } = scan.skipped;
  const found: LaunchProblem[] = [];
  const add = (code: string, clause: string) =>
    found.push(problem(declared, code, `${declared.configPath}: ${clause}`));
  if (byExtension > 0) {
    const taken = `${scan.files.length} ${scan.files.length === 1 ? "file is" : "files are"} taken`;
    const only = declared.allowedExtensions?.join(", ");
    add("files_skipped", `${taken}, ${byExtension} skipped, because only ${only} will do`);
  }
  if (special > 0) add("entries_skipped", `${special} skipped that are no files that can be copied`);
  return found;
}

/** The configuration of a worker: every folder under the name by which the worker finds it. */
export function withRuntimePaths(configuration: JsonObject, used: readonly UsedFolder[]): JsonObject {
  const settings = used.flatMap(({ declared: { configPath, linkedConfigPaths, runtimePath } }) =>
    [configPath, ...linkedConfigPaths].map((path) => ({ path, value: runtimePath })),
  );
  return withValuesAt(configuration, settings);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
