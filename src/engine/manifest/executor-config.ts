// What an executor may be told. The runner's fields (runner_module, upload_path, upload_as, workdir, command,
// sandbox_upload_path, and whether a second run is safe) may be in the node or in its config; config wins.

import {
  type ExecutorConfig,
  isKnownRunner,
  isSandboxRunner,
  isWithheldVariable,
  type LlmNeed,
  type Upload,
} from "../graph.ts";
import { isObject, type JsonValue } from "../json.ts";
import { type Labels, noLabels } from "../labels.ts";
import { sandboxLabels } from "../sandbox.ts";
import { attemptsRange, executionDefaults, millisecondsRange, secondsRange } from "./agent-config.ts";
import type { Fields, Place } from "./fields.ts";
import { llmOf } from "./llm.ts";
import { quoted } from "./problems.ts";
import type { NodeResources } from "./resources.ts";
import { readPolicy, sandboxWorkspace } from "./sandbox-policy.ts";

export const SLOTS_MAX = 1_000_000;
const NODE_LABELS_MAX = 64;
const LABEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const LABEL_VALUE = /^[A-Za-z0-9._-]{0,63}$/;

interface ExecutorGiven {
  readonly isStream: boolean;
  readonly resources: NodeResources;
  /** Of the manifest. */
  readonly runLlm: LlmNeed | null;
}

/**
 * @param given.isStream whether the node's own type is "stream", which makes the executor long-lived
 */
export function executorConfig(
  node: Fields,
  config: Fields,
  { isStream, resources, runLlm }: ExecutorGiven,
): ExecutorConfig {
  const isInNode = (name: string): boolean => config.raw(name) === undefined && node.raw(name) !== undefined;
  const having = (name: string): Fields => (isInNode(name) ? node : config);
  const longLived = config.text("lifecycle") === "long_lived" || isStream;
  return {
    kind: "executor",
    command: command(having("command")),
    pool: config.name("pool", "default"),
    poolSlots: config.integer("pool_slots", { min: 1, max: SLOTS_MAX }, 1),
    ...resources,
    timeoutSeconds: config.number(
      "timeout_seconds",
      secondsRange,
      longLived ? 0 : executionDefaults.timeoutSeconds,
    ),
    maxAttempts: config.integer("max_attempts", attemptsRange, executionDefaults.maxAttempts),
    retryBackoffMs: config.number("retry_backoff_ms", millisecondsRange, executionDefaults.retryBackoffMs),
    environment: environment(config),
    uploadPaths: uploads(having("upload_path"), having("upload_as"), config),
    workdir: having("workdir").path("workdir"),
    ...running(having, config),
    outputMessageType: config.isNull("output_message_type")
      ? null
      : config.name("output_message_type", "executor_result"),
    module: null,
    longLived,
    safeToRetry:
      having("idempotent").boolean("idempotent", true) &&
      having("safe_to_retry").boolean("safe_to_retry", true),
    runEvents: config.boolean("run_events", false),
    llm: llmOf(node, config, runLlm),
    optional: config.boolean("optional", false),
  };
}

type Running = Pick<
  ExecutorConfig,
  "runnerModule" | "nodeLabels" | "passEnv" | "sandboxUploadPath" | "sandbox" | "policyFile"
>;

/** What depends on whether the command runs in a sandbox. */
function running(having: (name: string) => Fields, config: Fields): Running {
  const module = runnerModule(having("runner_module"));
  const labels = nodeLabels(config);
  const place = having("sandbox_upload_path");
  if (!isSandboxRunner(module)) {
    for (const name of ["sandbox", "policy"])
      if (config.raw(name) !== undefined)
        config.report(
          name,
          "no_sandbox",
          'is for sandboxes: set runner_module to "Sandbox" to run the command in one',
        );
    return {
      runnerModule: module,
      nodeLabels: labels,
      passEnv: passEnv(config),
      sandboxUploadPath: place.path("sandbox_upload_path"),
      sandbox: null,
      policyFile: null,
    };
  }
  if (config.raw("pass_env") !== undefined)
    config.report(
      "pass_env",
      "not_allowed",
      "is not for sandboxes: sandbox.environment names what one is passed",
    );
  return {
    runnerModule: module,
    nodeLabels: { ...labels, ...sandboxLabels },
    sandboxUploadPath: sandboxWorkspace(place),
    ...sandboxing(config),
  };
}

/** What a sandbox has: its policy, here or in a file, and what that passes on. */
export function sandboxing(config: Fields) {
  const policyFile = config.relativePath("policy");
  if (policyFile !== null && config.raw("sandbox") !== undefined)
    config.report("policy", "duplicate", "names a file, and the node has its policy in sandbox already");
  const sandbox = readPolicy(config);
  return { passEnv: sandbox.environment, sandbox, policyFile };
}

const knownRunners = 'this runtime has the runners "HostLocal" and "Sandbox" only';

function runnerModule(holder: Fields): string {
  const given = holder.name("runner_module", "HostLocal");
  return holder.checked("runner_module", given, isKnownRunner, "unknown_value", knownRunners) ?? "HostLocal";
}

function command(holder: Fields): readonly string[] | string {
  const allowed = "a non-empty list of strings, or a non-empty string for the shell";
  if (!holder.isGiven("command", allowed)) return "";
  const value = holder.raw("command") ?? null;
  const isList = Array.isArray(value);
  if (!isList && typeof value !== "string") holder.reportType("command", allowed, value);
  else if (isList ? value.length === 0 || value[0] === "" : value.trim() === "") {
    holder.report("command", "empty", `names no program: it must be ${allowed}`);
  } else if (isList) return value.map((word: JsonValue, i) => argument(holder, ["command", i], word));
  else return argument(holder, "command", value);
  return "";
}

/** A string that can be handed to a program: the system ends it at a NUL. */
function argument(holder: Fields, place: Place, value: JsonValue): string {
  if (typeof value !== "string") holder.reportType(place, "a string", value);
  else if (value.includes("\0")) {
    holder.report(place, "invalid_characters", "holds a NUL character, which no program can be given");
  } else return value;
  return "";
}

export function nodeLabels(config: Fields): Labels {
  const given = config.raw("node_labels");
  if (given === undefined) return noLabels;
  if (!isObject(given)) {
    config.reportType("node_labels", "an object of names and values", given);
    return noLabels;
  }
  const pairs = Object.entries(given);
  if (pairs.length > NODE_LABELS_MAX) {
    config.report(
      "node_labels",
      "too_many",
      `has ${pairs.length} labels: at most ${NODE_LABELS_MAX} are allowed`,
    );
  }
  return Object.fromEntries(pairs.map(([name, value]) => [name, labelValue(config, name, value)]));
}

/** Of a label that a node can have: its form is that of SVC_NODE_LABELS. */
function labelValue(config: Fields, name: string, value: JsonValue): string {
  const place = ["node_labels", name];
  const isName = LABEL_NAME.test(name);
  if (!isName)
    config.report(
      place,
      "invalid_name",
      `is no name of a label: it has letters, digits, ".", "_", "-" and "/"`,
    );
  if (typeof value !== "string") config.reportType(place, "a string", value);
  else if (LABEL_VALUE.test(value)) return value;
  else
    config.report(
      place,
      "invalid_characters",
      `is ${quoted(value)}: it has letters, digits, ".", "_" and "-"`,
    );
  return "";
}

const noEnvironment: Readonly<Record<string, string>> = {};

function environment(config: Fields): Readonly<Record<string, string>> {
  const given = config.raw("environment");
  if (given === undefined) return noEnvironment;
  if (!isObject(given)) {
    config.reportType("environment", "an object of names and values", given);
    return noEnvironment;
  }
  const pairs = Object.entries(given).map(([name, value]) => {
    const place = ["environment", name];
    checkVariableName(config, place, name);
    const isPlain = typeof value === "number" || typeof value === "boolean";
    return [name, isPlain ? String(value) : argument(config, place, value)] as const;
  });
  return Object.fromEntries(pairs);
}

function checkVariableName(config: Fields, place: Place, name: string): void {
  if (name !== "" && !/[=\0]/.test(name)) return;
  const text = `names the variable ${quoted(name)}: a name is not empty and holds no "="`;
  config.report(place, "invalid_name", text);
}

const nothingPassed: readonly string[] = [];

function passEnv(config: Fields): readonly string[] {
  const given = config.list("pass_env");
  if (given.length === 0) return nothingPassed;
  return given.flatMap((value, i) => {
    const place = ["pass_env", i];
    const name = config.checkedName(place, value);
    if (name === null) return [];
    checkVariableName(config, place, name);
    if (!isWithheldVariable(name)) return [name];
    const text = `names ${name}, which holds or leads to a secret of the runtime itself: no worker is given it`;
    config.report(place, "variable_withheld", text);
    return [];
  });
}

const noUploads: readonly Upload[] = [];

export function uploads(pathHolder: Fields, nameHolder: Fields, config: Fields): readonly Upload[] {
  const listed = config.list("upload_paths");
  const isSingle = pathHolder.raw("upload_path") !== undefined;
  if (!isSingle && listed.length === 0) return noUploads;
  const single = isSingle
    ? upload(pathHolder.relativePath("upload_path"), nameHolder.relativePath("upload_as"))
    : [];
  const place = (...inside: (string | number)[]) => ["upload_paths", ...inside];
  const several = listed.flatMap((value, i) => {
    if (!isObject(value)) return upload(config.checkedRelativePath(place(i), value), null);
    const path = config.checkedRelativePath(place(i, "path"), value.path ?? null);
    return upload(path, value.as == null ? null : config.checkedRelativePath(place(i, "as"), value.as));
  });
  return [...single, ...several];
}

function upload(path: string | null, as: string | null): readonly Upload[] {
  return path === null ? [] : [{ path, as: as ?? baseName(path) }];
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
