// Whether the machine has what a package requires; and the models among that.
//
// - Every requirement that is not met is one sentence with what to do next.
// - Messages tell nothing of the machine that the package does not require.
// - Of several blueprints that have a model, the launch's own comes first, and what was installed by itself last; a package that
//   declares what its file must be gets no other one.
// - No two models share a name in SVC_MODELS_DIR, and a name is one on every file system.

import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { delimiter, join } from "node:path";
import type { PackageDescription, Requirements } from "../../blueprints/package-description.ts";
import type { BlueprintRecords } from "../../blueprints/records.ts";
import { folderName } from "../../lib/paths.ts";
import { bytesText } from "../../lib/text.ts";
import type { Services } from "../../services/services.ts";
import { type LaunchProblem, SERVICE_UNAVAILABLE } from "./findings.ts";
import type { LaunchPackage } from "./resolved-launch.ts";

const NAME_CHARS_MAX = 200;

/** What additions have made. */
export type PreparedAssets = Pick<BlueprintRecords, "assets" | "modelOwners" | "installedModel">;

export interface ModelPlaces {
  readonly blueprints: PreparedAssets;
  /** Where a model's file of this content is; null when it is not there. */
  readonly modelFile: (modelId: string, sha256: string) => Promise<string | null>;
}

export interface Machine {
  /** SVC_HOME. */
  readonly home: string;
  readonly runtimeEnv: Readonly<Record<string, string | undefined>>;
  /** Slots of each pool. */
  readonly pools: Readonly<Record<string, number>>;
  readonly blueprints: PreparedAssets;
  readonly services: Pick<Services, "unmet" | "unmetLately">;
}

/** While the blueprint is not added, what its addition makes is not asked for. */
type Subject = Pick<LaunchPackage, "blueprintId" | "fingerprint" | "description">;

/**
 * @param bytesToCopy bytes that will be copied beside what the package itself asks for
 * @returns what is not met; empty when a run may be accepted
 */
export async function unmetRequirements(
  subject: Subject,
  bytesToCopy: number,
  machine: Machine,
): Promise<readonly LaunchProblem[]> {
  const { requirements } = subject.description;
  const found = await Promise.all([
    unmetCommands(requirements.commands, machine),
    unmetEnvironment(requirements.environment, machine),
    unmetMachine(requirements),
    unmetDisk((requirements.diskBytes ?? 0) + bytesToCopy, machine),
    unmetPools(requirements.pools, machine),
    missingAssets(subject, machine.blueprints),
    unmetServices(requirements, machine),
  ]);
  return found.flat();
}

/** What of the requirements additions of blueprints make, and removals take away; for a run's own transaction. */
export async function missingAssets(
  subject: Subject,
  assets: PreparedAssets,
): Promise<readonly LaunchProblem[]> {
  const models = await unmetModels(subject, assets);
  return subject.fingerprint === null ? models : [...models, ...(await unmetResources(subject, assets))];
}

const unmet = (code: string, message: string): LaunchProblem => ({ part: "launch", path: "", code, message });

async function unmetCommands(commands: readonly string[], { runtimeEnv }: Machine): Promise<LaunchProblem[]> {
  const folders = (runtimeEnv.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const missing: LaunchProblem[] = [];
  for (const command of commands) {
    const places = folders.map((folder) => join(folder, command));
    const isThere = (await Promise.all(places.map(isProgram))).includes(true);
    if (isThere) continue;
    const clause = `The package needs the program "${command}", which is not on the runtime's PATH`;
    missing.push(
      unmet("command_missing", `${clause}: install it, or start the runtime with a PATH that has it.`),
    );
  }
  return missing;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

function unmetEnvironment(names: readonly string[], { runtimeEnv }: Machine): LaunchProblem[] {
  return names
    .filter((name) => !Object.hasOwn(runtimeEnv, name) || (runtimeEnv[name] ?? "") === "")
    .map((name) => {
      const clause = `The package needs the variable ${name} in the runtime's environment`;
      return unmet("variable_missing", `${clause}: set it, and start the runtime again.`);
    });
}

function unmetMachine({ platforms, cpuCores, memoryBytes }: Requirements): LaunchProblem[] {
  const found: LaunchProblem[] = [];
  if (platforms.length > 0 && !platforms.includes(process.platform)) {
    const clause = `The package runs on ${platforms.join(" or ")}, and this machine is ${process.platform}`;
    found.push(unmet("wrong_platform", `${clause}: launch it on another machine.`));
  }
  const cores = availableParallelism();
  if (cpuCores !== null && cores < cpuCores) {
    const clause = `The package needs ${cpuCores} processor cores, and this machine has ${cores}`;
    found.push(unmet("too_few_cores", `${clause}: launch it on a larger one.`));
  }
  const memory = totalmem();
  if (memoryBytes !== null && memory < memoryBytes) {
    const clause = `The package needs ${bytesText(memoryBytes)} of memory, and this machine has ${bytesText(memory)}`;
    found.push(unmet("too_little_memory", `${clause}: launch it on a larger one.`));
  }
  return found;
}

async function unmetDisk(neededBytes: number, { home }: Machine): Promise<LaunchProblem[]> {
  if (neededBytes === 0) return [];
  const { bavail, bsize } = await statfs(home);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return [];
  const clause = `The launch needs ${bytesText(neededBytes)} on the disk of SVC_HOME, and ${bytesText(freeBytes)} are free`;
  return [unmet("too_little_disk", `${clause}: free some space (troupe gc), or choose a smaller folder.`)];
}

function unmetPools(required: Readonly<Record<string, number>>, { pools }: Machine): LaunchProblem[] {
  return Object.entries(required).flatMap(([pool, slots]): LaunchProblem[] => {
    const capacity = Object.hasOwn(pools, pool) ? pools[pool]! : 0;
    if (capacity >= slots) return [];
    const has = capacity === 0 ? "there is no such pool" : `it has ${capacity}`;
    const clause = `The package needs ${slots} ${slots === 1 ? "slot" : "slots"} of the executor pool "${pool}", and ${has}`;
    return [
      unmet("pool_too_small", `${clause}: raise SVC_EXECUTOR_POOL_CAPACITIES and start the runtime again.`),
    ];
  });
}

async function unmetModels(subject: Subject, blueprints: PreparedAssets): Promise<LaunchProblem[]> {
  const { fingerprint, description } = subject;
  const brought = description.models.map(({ modelId }) => modelId);
  const found: LaunchProblem[] = [];
  for (const modelId of modelIdsOf(description)) {
    // What an addition brings is there after it.
    if (fingerprint === null && brought.includes(modelId)) continue;
    const isBrought = (await blueprints.modelOwners(modelId)).length > 0;
    if (!isBrought && (await blueprints.installedModel(modelId)) === null)
      found.push(modelMissing(modelId, subject));
  }
  return found;
}

/** The problem of a model that is not installed. */
export function modelMissing(modelId: string, subject: Pick<LaunchPackage, "blueprintId">): LaunchProblem {
  const clause = `The package needs the model "${modelId}", which is not installed`;
  return unmet(
    "model_missing",
    `${clause}: install it (troupe models install ${modelId}), ${addition(subject)}, or add one that brings the model along.`,
  );
}

async function unmetResources(subject: Subject, blueprints: PreparedAssets): Promise<LaunchProblem[]> {
  const { blueprintId, description } = subject;
  if (description.resources.length === 0) return [];
  const assets = blueprintId === null ? [] : await blueprints.assets(blueprintId);
  const ready = new Set(
    assets.filter((one) => one.kind === "resource" && one.ready).map((one) => one.assetId),
  );
  return description.resources
    .filter(({ name }) => !ready.has(name))
    .map(({ name }) =>
      unmet("resource_missing", `The package's resource "${name}" is not prepared: ${addition(subject)}.`),
    );
}

/** What to do when something is missing that an addition makes. */
function addition({ blueprintId }: Pick<LaunchPackage, "blueprintId">): string {
  if (blueprintId !== null) return `add the blueprint ${blueprintId} again`;
  return "put the package into the catalog and add it as a blueprint";
}

async function unmetServices({ services }: Requirements, machine: Machine): Promise<LaunchProblem[]> {
  return (await machine.services.unmet(services)).map(({ service, reason }) =>
    unmet(SERVICE_UNAVAILABLE, `The package needs the service "${service}". ${reason}`),
  );
}

/** @returns the ids of all models that a package declares or requires, each once */
export function modelIdsOf({ models, requirements }: PackageDescription): readonly string[] {
  return [...new Set([...models.map(({ modelId }) => modelId), ...requirements.models])];
}

/**
 * Finds the file of a model.
 *
 * @param blueprintId the launch's own; null for an uploaded bundle
 * @returns null when it is not installed
 */
export async function findModel(
  modelId: string,
  { blueprintId, description }: Pick<LaunchPackage, "blueprintId" | "description">,
  { blueprints, modelFile }: ModelPlaces,
): Promise<string | null> {
  const wanted = description.models.find((one) => one.modelId === modelId)?.sha256 ?? null;
  const owners = await blueprints.modelOwners(modelId);
  const ownFirst = owners.toSorted((a, b) => Number(b === blueprintId) - Number(a === blueprintId));
  for (const owner of ownFirst) {
    const assets = await blueprints.assets(owner);
    const model = assets.find(({ kind, assetId, ready }) => kind === "model" && assetId === modelId && ready);
    if (model === undefined) continue;
    // An addition that continues, or has failed, may have brought the next package's content beside this one's.
    const sha256 = owner === blueprintId ? (wanted ?? model.recipe) : model.recipe;
    if (wanted !== null && sha256 !== wanted) continue;
    const file = await modelFile(modelId, sha256);
    if (file !== null) return file;
  }
  const sha256 = await blueprints.installedModel(modelId);
  if (sha256 === null || (wanted !== null && sha256 !== wanted)) return null;
  return modelFile(modelId, sha256);
}

/**
 * The name of a model in SVC_MODELS_DIR: its id, in which everything but letters, digits and "-_.~" is written as in
 * URLs (%2F), and so is a dot at its beginning.
 */
export function modelName(modelId: string): string {
  const name = encodeURIComponent(modelId.toWellFormed())
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/^\./, "%2E");
  return name.length <= NAME_CHARS_MAX ? name : folderName(modelId);
}
