// What an executor may be told. The runner's fields (runner_module, upload_path, upload_as, workdir, command,
// sandbox_upload_path, and whether a second run is safe) may stand in the node or in its config; config wins.

import { type ExecutorConfig, isKnownRunner, runnerModules, type Upload } from "../graph.ts";
import { isObject, type JsonValue } from "../json.ts";
import { isWithheldVariable } from "../withheld-variables.ts";
import { attemptsRange, executionDefaults, millisecondsRange, secondsRange } from "./agent-config.ts";
import { type Fields, kindOf } from "./fields.ts";
import { quoted } from "./problems.ts";

const SLOTS_MAX = 1_000_000;

/**
 * @param isStream whether the node's own type is "stream", which makes the executor long-lived
 */
export function executorConfig(node: Fields, config: Fields, isStream: boolean): ExecutorConfig {
  const isInNode = (name: string): boolean => config.raw(name) === undefined && node.raw(name) !== undefined;
  const having = (name: string): Fields => (isInNode(name) ? node : config);
  const longLived = config.text("lifecycle") === "long_lived" || isStream;
  return {
    kind: "executor",
    command: command(having("command")),
    pool: config.name("pool", "default"),
    poolSlots: config.integer("pool_slots", { min: 1, max: SLOTS_MAX }, 1),
    timeoutSeconds: config.number(
      "timeout_seconds",
      secondsRange,
      longLived ? 0 : executionDefaults.timeoutSeconds,
    ),
    maxAttempts: config.integer("max_attempts", attemptsRange, executionDefaults.maxAttempts),
    retryBackoffMs: config.number("retry_backoff_ms", millisecondsRange, executionDefaults.retryBackoffMs),
    environment: environment(config),
    passEnv: passEnv(config),
    uploadPaths: uploads(having("upload_path"), having("upload_as"), config),
    workdir: having("workdir").path("workdir"),
    sandboxUploadPath: having("sandbox_upload_path").path("sandbox_upload_path"),
    runnerModule: runnerModule(having("runner_module")),
    outputMessageType: config.isNull("output_message_type")
      ? null
      : config.name("output_message_type", "executor_result"),
    longLived,
    safeToRetry:
      having("idempotent").boolean("idempotent", true) &&
      having("safe_to_retry").boolean("safe_to_retry", true),
    runEvents: config.boolean("run_events", false),
    optional: config.boolean("optional", false),
  };
}

function runnerModule(holder: Fields): string {
  const given = holder.name("runner_module", "HostLocal");
  if (isKnownRunner(given)) return given;
  const known = runnerModules.map(quoted).join(", ");
  holder.report(
    "runner_module",
    "unknown_value",
    `is ${quoted(given)}: this runtime has the runner ${known} only`,
  );
  return "HostLocal";
}

function command(holder: Fields): readonly string[] | string {
  const value = holder.raw("command");
  const allowed = "a non-empty list of strings, or a non-empty string for the shell";
  if (value === undefined) {
    holder.report("command", "missing", `is missing: it must be ${allowed}`);
    return "";
  }
  if (typeof value !== "string" && !Array.isArray(value)) {
    holder.report("command", "wrong_type", `must be ${allowed}, not ${kindOf(value)}`);
    return "";
  }
  if (value.length === 0 || value[0] === "" || (typeof value === "string" && value.trim() === "")) {
    holder.report("command", "empty", `names no program: it must be ${allowed}`);
    return "";
  }
  if (typeof value === "string") return argument(holder, "command", value) ?? "";
  return value.map((word: JsonValue, i) => argument(holder, ["command", i], word) ?? "");
}

/** A string that can be handed to a program: the system ends it at a NUL. */
function argument(
  holder: Fields,
  place: string | readonly (string | number)[],
  value: JsonValue,
): string | null {
  if (typeof value !== "string") holder.report(place, "wrong_type", `must be a string, not ${kindOf(value)}`);
  else if (value.includes("\0")) {
    holder.report(place, "invalid_characters", "holds a NUL character, which no program can be given");
  } else return value;
  return null;
}

const noEnvironment: Readonly<Record<string, string>> = {};

function environment(config: Fields): Readonly<Record<string, string>> {
  const given = config.raw("environment");
  if (given === undefined) return noEnvironment;
  if (!isObject(given)) {
    config.report("environment", "wrong_type", `must be an object of names and values, not ${kindOf(given)}`);
    return noEnvironment;
  }
  const pairs: [string, string][] = [];
  for (const [name, value] of Object.entries(given)) {
    if (!isVariableName(config, ["environment", name], name)) continue;
    const isPlain = typeof value === "number" || typeof value === "boolean";
    const text = isPlain ? String(value) : argument(config, ["environment", name], value);
    if (text !== null) pairs.push([name, text]);
  }
  return Object.fromEntries(pairs);
}

function isVariableName(config: Fields, place: readonly (string | number)[], name: string): boolean {
  if (name !== "" && !name.includes("=") && !name.includes("\0")) return true;
  config.report(
    place,
    "invalid_name",
    `names the variable ${quoted(name)}: a name is not empty and holds no "="`,
  );
  return false;
}

const nothingPassed: readonly string[] = [];

function passEnv(config: Fields): readonly string[] {
  if (config.raw("pass_env") === undefined) return nothingPassed;
  const names: string[] = [];
  config.list("pass_env").forEach((value, i) => {
    const name = config.checkedName(["pass_env", i], value);
    if (name === null || !isVariableName(config, ["pass_env", i], name)) return;
    if (isWithheldVariable(name)) {
      const said = `names ${name}, which holds or leads to a secret of the runtime itself: no worker is given it`;
      config.report(["pass_env", i], "variable_withheld", said);
    } else names.push(name);
  });
  return names;
}

const noUploads: readonly Upload[] = [];

function uploads(pathHolder: Fields, nameHolder: Fields, config: Fields): readonly Upload[] {
  const isSingle = pathHolder.raw("upload_path") !== undefined;
  if (!isSingle && config.raw("upload_paths") === undefined) return noUploads;
  const found: Upload[] = [];
  if (isSingle) {
    const path = pathHolder.relativePath("upload_path");
    const as = nameHolder.relativePath("upload_as");
    if (path !== null) found.push({ path, as: as ?? baseName(path) });
  }
  config.list("upload_paths").forEach((value, i) => {
    const upload = oneUpload(config, i, value);
    if (upload !== null) found.push(upload);
  });
  return found;
}

function oneUpload(config: Fields, index: number, value: JsonValue): Upload | null {
  if (isObject(value)) {
    const place = ["upload_paths", index] as const;
    const path = config.checkedRelativePath([...place, "path"], value.path ?? null);
    const as = value.as == null ? null : config.checkedRelativePath([...place, "as"], value.as);
    return path === null ? null : { path, as: as ?? baseName(path) };
  }
  const path = config.checkedRelativePath(["upload_paths", index], value);
  return path === null ? null : { path, as: baseName(path) };
}

/** The last part of a path; "." for the payload as a whole. */
function baseName(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.at(-1) ?? ".";
}
