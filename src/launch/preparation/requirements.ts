// What a package requires of the machine, held against the machine.
//
// Q1. Every requirement that is not met is one sentence with what to do next.
// Q2. Nothing of the machine is said that the package has not asked for.

import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { delimiter, join } from "node:path";
import type { PackageDescription } from "../../blueprints/package-description.ts";
import type { RequiredService } from "../../engine/service.ts";
import { modelIdsOf, type PreparedAssets } from "./installed-models.ts";
import type { LaunchProblem } from "./preparation.ts";

/** Those of the services that are not passing, by name, each with a whole sentence that says why. */
export type UnmetServices = (
  required: readonly RequiredService[],
) => readonly { readonly service: string; readonly reason: string }[];

export interface Machine {
  /** SVC_HOME. */
  readonly home: string;
  readonly runtimeEnv: Readonly<Record<string, string | undefined>>;
  /** Slots of each pool. */
  readonly pools: Readonly<Record<string, number>>;
  readonly blueprints: PreparedAssets;
  readonly unmetServices: UnmetServices;
}

export interface RequirementsSubject {
  readonly blueprintId: string | null;
  /** False while the blueprint is not added: what its addition makes is not asked for. */
  readonly isAdded: boolean;
  readonly description: PackageDescription;
  /** Bytes that will be copied beside what the package itself asks for. */
  readonly bytesToCopy: number;
}

type AssetsSubject = Pick<RequirementsSubject, "blueprintId" | "isAdded" | "description">;

/** @returns what is not met; empty when a run may be accepted */
export async function unmetRequirements(
  subject: RequirementsSubject,
  machine: Machine,
): Promise<readonly LaunchProblem[]> {
  const { requirements } = subject.description;
  const found = await Promise.all([
    unmetCommands(requirements.commands, machine),
    unmetEnvironment(requirements.environment, machine),
    unmetMachine(requirements),
    unmetDisk((requirements.diskBytes ?? 0) + subject.bytesToCopy, machine),
    unmetPools(requirements.pools, machine),
    unmetAssets(subject, machine.blueprints),
    unmetServices(subject, machine),
  ]);
  return found.flat().map(asProblem);
}

/** What of the requirements additions of blueprints make, and removals take away; for a run's own transaction. */
export async function missingAssets(
  subject: AssetsSubject,
  assets: PreparedAssets,
): Promise<readonly LaunchProblem[]> {
  return (await unmetAssets(subject, assets)).map(asProblem);
}

async function unmetAssets(subject: AssetsSubject, assets: PreparedAssets): Promise<readonly Unmet[]> {
  const models = await unmetModels(subject, assets);
  return subject.isAdded ? [...models, ...(await unmetResources(subject, assets))] : models;
}

const asProblem = ([code, message]: Unmet): LaunchProblem => ({ part: "launch", path: "", code, message });

/** A code and its sentence. */
type Unmet = readonly [code: string, message: string];

async function unmetCommands(commands: readonly string[], { runtimeEnv }: Machine): Promise<Unmet[]> {
  const folders = (runtimeEnv.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const missing: Unmet[] = [];
  for (const command of commands) {
    const places = folders.map((folder) => join(folder, command));
    const isThere = (await Promise.all(places.map(isProgram))).includes(true);
    if (isThere) continue;
    const said = `The package needs the program "${command}", which is not on the runtime's PATH`;
    missing.push(["command_missing", `${said}: install it, or start the runtime with a PATH that has it.`]);
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

function unmetEnvironment(names: readonly string[], { runtimeEnv }: Machine): Unmet[] {
  return names
    .filter((name) => !Object.hasOwn(runtimeEnv, name) || (runtimeEnv[name] ?? "") === "")
    .map((name) => {
      const said = `The package needs the variable ${name} in the runtime's environment`;
      return ["variable_missing", `${said}: set it, and start the runtime again.`];
    });
}

function unmetMachine(requirements: PackageDescription["requirements"]): Unmet[] {
  const { platforms, cpuCores, memoryBytes } = requirements;
  const unmet: Unmet[] = [];
  if (platforms.length > 0 && !platforms.includes(process.platform)) {
    const said = `The package runs on ${platforms.join(" or ")}, and this machine is ${process.platform}`;
    unmet.push(["wrong_platform", `${said}: launch it on another machine.`]);
  }
  const cores = availableParallelism();
  if (cpuCores !== null && cores < cpuCores) {
    const said = `The package needs ${cpuCores} processor cores, and this machine has ${cores}`;
    unmet.push(["too_few_cores", `${said}: launch it on a larger one.`]);
  }
  const memory = totalmem();
  if (memoryBytes !== null && memory < memoryBytes) {
    const said = `The package needs ${bytesText(memoryBytes)} of memory, and this machine has ${bytesText(memory)}`;
    unmet.push(["too_little_memory", `${said}: launch it on a larger one.`]);
  }
  return unmet;
}

async function unmetDisk(neededBytes: number, { home }: Machine): Promise<Unmet[]> {
  if (neededBytes === 0) return [];
  const { bavail, bsize } = await statfs(home);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return [];
  const said = `The launch needs ${bytesText(neededBytes)} on the disk of SVC_HOME, and ${bytesText(freeBytes)} are free`;
  return [["too_little_disk", `${said}: free some space (troupe gc), or choose a smaller folder.`]];
}

function unmetPools(required: Readonly<Record<string, number>>, { pools }: Machine): Unmet[] {
  return Object.entries(required).flatMap(([pool, slots]): Unmet[] => {
    const capacity = Object.hasOwn(pools, pool) ? pools[pool]! : 0;
    if (capacity >= slots) return [];
    const has = capacity === 0 ? "there is no such pool" : `it has ${capacity}`;
    const said = `The package needs ${slots} ${slots === 1 ? "slot" : "slots"} of the executor pool "${pool}", and ${has}`;
    return [["pool_too_small", `${said}: raise SVC_EXECUTOR_POOL_CAPACITIES and start the runtime again.`]];
  });
}

async function unmetModels(subject: AssetsSubject, blueprints: PreparedAssets): Promise<Unmet[]> {
  const { isAdded, description } = subject;
  const brought = description.models.map(({ modelId }) => modelId);
  const unmet: Unmet[] = [];
  for (const modelId of modelIdsOf(description)) {
    // What an addition brings is there after it.
    if (!isAdded && brought.includes(modelId)) continue;
    if ((await blueprints.modelOwners(modelId)).length === 0) unmet.push(modelMissing(modelId, subject));
  }
  return unmet;
}

/** What is said of a model that is not installed. */
export function modelMissing(modelId: string, subject: Pick<RequirementsSubject, "blueprintId">): Unmet {
  const said = `The package needs the model "${modelId}", which is not installed`;
  return ["model_missing", `${said}: ${addition(subject)}, or one that brings the model along.`];
}

async function unmetResources(subject: AssetsSubject, blueprints: PreparedAssets): Promise<Unmet[]> {
  const { blueprintId, description } = subject;
  if (description.resources.length === 0) return [];
  const assets = blueprintId === null ? [] : await blueprints.assets(blueprintId);
  const ready = new Set(
    assets.filter((one) => one.kind === "resource" && one.ready).map((one) => one.assetId),
  );
  return description.resources
    .filter(({ name }) => !ready.has(name))
    .map(({ name }) => [
      "resource_missing",
      `The package's resource "${name}" is not prepared: ${addition(subject)}.`,
    ]);
}

/** What to do when something is missing that an addition makes. */
function addition({ blueprintId }: Pick<RequirementsSubject, "blueprintId">): string {
  if (blueprintId !== null) return `add the blueprint ${blueprintId} again`;
  return "put the package into the catalog and add it as a blueprint";
}

function unmetServices({ description }: RequirementsSubject, machine: Machine): Unmet[] {
  return machine
    .unmetServices(description.requirements.services)
    .map(({ service, reason }) => [
      SERVICE_UNAVAILABLE,
      `The package needs the service "${service}". ${reason}`,
    ]);
}

/** The code of a service that is not there, which has a failure of its own. */
export const SERVICE_UNAVAILABLE = "service_unavailable";

/** A size for people: "1.2 GB". */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  for (; size >= 1_000 && unit < units.length - 1; unit++) size /= 1_000;
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
