// What a package needs, and what it brings along for all its runs: manifest `requirements`, `resources`, `models`.

import { type Fields, oneOf } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { readRequiredServices } from "../engine/manifest/services.ts";
import type { RequiredService } from "../engine/service.ts";
import { commandWords, nameList, type Reading } from "./describe-reading.ts";
import type { DeclaredModel, DeclaredResource, Requirements } from "./package-description.ts";

const ITEMS_MAX = 100;
const RESOURCE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const SHA256 = /^[0-9a-f]{64}$/i;
const PREPARE_TIMEOUT_SECONDS = 600;
const DAY_SECONDS = 86_400;
const BYTES = { min: 1, max: Number.MAX_SAFE_INTEGER };

const platforms = ["aix", "android", "darwin", "freebsd", "linux", "openbsd", "sunos", "win32"] as const;
const requirementFields = [
  "commands",
  "environment",
  "platforms",
  "cpu_cores",
  "memory_bytes",
  "disk_bytes",
  "pools",
  "models",
  "services",
] as const;

/** @param elsewhere services that the manifest requires under `required_services` */
export function readRequirements(manifest: Reading, elsewhere: readonly RequiredService[]): Requirements {
  const fields = manifest.fields.object("requirements");
  manifest.warnOfUnknown(fields, requirementFields);
  return {
    commands: nameList(fields, "commands", ITEMS_MAX, (name) =>
      /[\s/]/.test(name) ? "it must be the name of a program on the PATH, without a path" : null,
    ),
    environment: nameList(fields, "environment", ITEMS_MAX, (name) =>
      name.includes("=") ? 'a variable\'s name holds no "="' : null,
    ),
    platforms: nameList(fields, "platforms", ITEMS_MAX, (name) =>
      platforms.some((one) => one === name) ? null : `it must be ${oneOf(platforms)}`,
    ),
    cpuCores: fields.number("cpu_cores", { min: 0.01, max: 100_000 }, null),
    memoryBytes: fields.integer("memory_bytes", BYTES, null),
    diskBytes: fields.integer("disk_bytes", BYTES, null),
    pools: readPools(fields.object("pools")),
    models: nameList(fields, "models", ITEMS_MAX),
    services: withoutDoubles([...elsewhere, ...readRequiredServices(fields, "services")]),
  };
}

function readPools(pools: Fields): Readonly<Record<string, number>> {
  const names = Object.keys(pools.source).slice(0, ITEMS_MAX);
  const found = names.flatMap((name) => {
    const slots = pools.integer(name, { min: 1, max: 1_000_000 }, null);
    return slots === null ? [] : [[name, slots] as const];
  });
  return Object.fromEntries(found);
}

function withoutDoubles(services: readonly RequiredService[]): readonly RequiredService[] {
  const byKey = new Map(services.map((one) => [JSON.stringify([one.name, one.tags, one.node]), one]));
  return [...byKey.values()];
}

/** A manifest's `resources` may also be an object: then it declares ports alone. */
export function readResources(manifest: Reading): readonly DeclaredResource[] {
  const { fields } = manifest;
  if (!Array.isArray(fields.raw("resources"))) return [];
  const names = new Set<string>();
  return fields.objects("resources", ITEMS_MAX, (resource) => {
    manifest.warnOfUnknown(resource, ["name", "title", "from", "prepare", "timeout_seconds"]);
    const name = readOwnName(resource, "name", names);
    const title = resource.text("title");
    const from = resource.relativePath("from");
    const prepare = commandWords(resource, "prepare");
    const range = { min: 0.001, max: DAY_SECONDS };
    const timeoutSeconds = resource.number("timeout_seconds", range, PREPARE_TIMEOUT_SECONDS);
    if (name !== null && !RESOURCE_NAME.test(name)) {
      const allowed = 'up to 64 letters, digits, ".", "_" and "-", and a letter or digit first';
      resource.report("name", "invalid_value", `is ${quoted(name)}: it must have ${allowed}`);
    }
    return name === null ? null : { name, title, from, prepare, timeoutSeconds };
  });
}

export function readModels(manifest: Reading): readonly DeclaredModel[] {
  const ids = new Set<string>();
  return manifest.fields.objects("models", ITEMS_MAX, (model) => {
    manifest.warnOfUnknown(model, ["model_id", "path", "sha256"]);
    const modelId = readOwnName(model, "model_id", ids);
    const isPlaced = model.isGiven("path", "a path inside payloads/, or an absolute one");
    const given = model.raw("path");
    const isAbsolute = typeof given === "string" && given.startsWith("/");
    const path = isPlaced ? (isAbsolute ? model.path("path") : model.relativePath("path")) : null;
    const sha256 = model.name("sha256", null);
    if (sha256 !== null && !SHA256.test(sha256)) {
      model.report("sha256", "invalid_value", `is ${quoted(sha256)}: it must have 64 hex digits`);
    }
    if (modelId === null || path === null) return null;
    return { modelId, path, sha256: sha256?.toLowerCase() ?? null };
  });
}

/** A name that no other of its list has; null when it is missing, wrong or taken. */
function readOwnName(fields: Fields, field: string, taken: Set<string>): string | null {
  const name = fields.requiredName(field);
  if (name === null) return null;
  if (!taken.has(name)) {
    taken.add(name);
    return name;
  }
  fields.report(field, "duplicate", `is ${quoted(name)}, which another one has already`);
  return null;
}
