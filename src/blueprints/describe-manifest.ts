// What a manifest declares beyond its graph: `input_schema`, `config_schema`, `secrets`, `requirements`, `resources`,
// `models` and `input_validation`.

import { isObject, type JsonObject } from "../engine/json.ts";
import { type Fields, kindOf, oneOf } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { readRequiredServices } from "../engine/manifest/services.ts";
import type { RequiredService } from "../engine/service.ts";
import { SECRET_PATHS_MAX } from "../security/secret-detection.ts";
import {
  commandWords,
  dottedPathProblem,
  extensionList,
  nameList,
  type Reading,
  requiredDottedPath,
} from "./describe-reading.ts";
import { schemaProblem } from "./json-schema.ts";
import {
  type DeclaredModel,
  type DeclaredResource,
  type InputRule,
  platforms,
  type Requirements,
  resourceName,
  ruleTypes,
  sha256Digits,
} from "./package-description.ts";
import { patternLimits } from "./patterns.ts";

const ITEMS_MAX = 100;
const RULES_MAX = 1_000;
const ENUM_MAX = 1_000;
const PREPARE_TIMEOUT_SECONDS = 600;
const DAY_SECONDS = 86_400;
const BYTES = { min: 1, max: Number.MAX_SAFE_INTEGER };
const NUMBERS = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE };

export function readSchema(manifest: Reading, name: string): JsonObject | null {
  const { source } = manifest.fields.object(name);
  if (!isObject(manifest.fields.raw(name))) return null;
  const clause = schemaProblem(source);
  if (clause === null) return source;
  manifest.fields.report(name, "invalid_schema", clause);
  return null;
}

/** The paths that the manifest names as secret are only checked here; src/security reads them. */
export function checkSecretPaths(manifest: Reading): void {
  nameList(manifest.fields, "secrets", SECRET_PATHS_MAX, dottedPathProblem);
}

/** @param elsewhere services that the manifest requires under `required_services` */
export function readRequirements(manifest: Reading, elsewhere: readonly RequiredService[]): Requirements {
  const fields = manifest.fields.object("requirements");
  return {
    commands: nameList(fields, "commands", ITEMS_MAX, (name) =>
      /[\s/]/.test(name) ? "it must be the name of a program on the PATH, without a path" : null,
    ),
    environment: nameList(fields, "environment", ITEMS_MAX, (name) =>
      name.includes("=") ? 'the name of a variable cannot contain "="' : null,
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
    const name = readOwnName(resource, "name", names);
    const title = resource.text("title");
    const from = resource.relativePath("from");
    const prepare = commandWords(resource, "prepare");
    const range = { min: 0.001, max: DAY_SECONDS };
    const timeoutSeconds = resource.number("timeout_seconds", range, PREPARE_TIMEOUT_SECONDS);
    if (name !== null && !resourceName.test(name)) {
      const allowed = 'up to 64 letters, digits, ".", "_" and "-", and a letter or digit first';
      resource.report("name", "invalid_value", `is ${quoted(name)}: it must have ${allowed}`);
    }
    return name === null ? null : { name, title, from, prepare, timeoutSeconds };
  });
}

export function readModels(manifest: Reading): readonly DeclaredModel[] {
  const ids = new Set<string>();
  return manifest.fields.objects("models", ITEMS_MAX, (model) => {
    const modelId = readOwnName(model, "model_id", ids);
    const isPlaced = model.isGiven("path", "a path inside payloads/, or an absolute one");
    const given = model.raw("path");
    const isAbsolute = typeof given === "string" && given.startsWith("/");
    const path = isPlaced ? (isAbsolute ? model.path("path") : model.relativePath("path")) : null;
    const sha256 = model.name("sha256", null);
    if (sha256 !== null && !sha256Digits.test(sha256)) {
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
  fields.report(field, "duplicate", `is ${quoted(name)}, which another one already has`);
  return null;
}

/** The rules over a run's configuration (CONTRACTS §6), which src/launch/preparation applies. */
export function readInputRules(manifest: Reading): readonly InputRule[] {
  const fields = manifest.fields.object("input_validation");
  return fields.objects("rules", RULES_MAX, (rule) => {
    const path = requiredDottedPath(rule, "path");
    const read = {
      required: rule.boolean("required", false),
      type: choiceOrNull(rule, "type", ruleTypes),
      enum: readEnum(rule),
      ...readBounds(rule),
      pattern: readPattern(rule),
      exists: choiceOrNull(rule, "exists", ["file", "folder"] as const),
      extensions: extensionList(rule, "extensions"),
      message: rule.text("message"),
    };
    return path === null ? null : { path, ...read };
  });
}

function choiceOrNull<Word extends string>(
  rule: Fields,
  name: string,
  allowed: readonly [Word, ...Word[]],
): Word | null {
  return rule.raw(name) === undefined ? null : rule.choice(name, allowed, allowed[0]);
}

function readEnum(rule: Fields): InputRule["enum"] {
  if (rule.raw("enum") === undefined) return null;
  const values = rule.list("enum", ENUM_MAX);
  if (values.length === 0 && Array.isArray(rule.raw("enum"))) {
    rule.report("enum", "empty", "is empty, so no value would match");
  }
  return values;
}

function readBounds(rule: Fields): Pick<InputRule, "min" | "max"> {
  const min = rule.number("min", NUMBERS, null);
  const max = rule.number("max", NUMBERS, null);
  if (min !== null && max !== null && min > max) {
    rule.report("min", "contradiction", `is ${min}, which is more than max, ${max}: no value would match`);
  }
  return { min, max };
}

/** As JSON Schema has them: not anchored, with the flag u. */
function readPattern(rule: Fields): string | null {
  const value = rule.raw("pattern");
  if (value === undefined) return null;
  if (typeof value !== "string") {
    rule.report("pattern", "wrong_type", `must be a regular expression as a string, not ${kindOf(value)}`);
  } else if (value.length > patternLimits.patternCharsMax) {
    const clause = `has ${value.length} characters: at most ${patternLimits.patternCharsMax} are allowed`;
    rule.report("pattern", "too_long", clause);
  } else {
    try {
      new RegExp(value, "u");
      return value;
    } catch (error) {
      const reason = (error as Error).message.replace(/^Invalid regular expression: /, "");
      rule.report("pattern", "invalid_pattern", `is not a regular expression: ${quoted(reason)}`);
    }
  }
  return null;
}
