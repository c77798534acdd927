// A package's own validators: programs in payloads/validators that are asked whether a configuration will do, before a
// run is accepted (stage native) and again once its folders are staged (stage staged).
//
// - Exit code 0, and no errors named, is a yes. Everything else is a no with a reason: too slow, not started, crashed.
// - What a validator says is bounded, and redacted before it is shown.
// - They run one after the other in the order of their names, in a copy of the payload that is never the snapshot.

import { readdir } from "node:fs/promises";
import { extname, join } from "node:path";
import { VALIDATORS_FOLDER, type validatorKinds } from "../../bundles/layout.ts";
import { isObject, type JsonObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import { makeRedactor } from "../../execution/output/redaction.ts";
import {
  OUTPUT_BYTES_MAX,
  type RunSideCommand,
  type SideCommandEnd,
} from "../../execution/process/side-command.ts";
import { isBlank, pointerOf } from "./config-paths.ts";
import type { Found, LaunchProblem } from "./findings.ts";

const INTERPRETERS: Readonly<Record<string, string>> = {
  ".py": "python3",
  ".mjs": process.execPath,
  ".sh": "/bin/sh",
} satisfies Record<(typeof validatorKinds)[number], string>;
/** Of each kind that one validator may name. */
const FINDINGS_MAX = 100;
const MESSAGE_CHARS_MAX = 1_000;
const REPORT_KIB_MAX = OUTPUT_BYTES_MAX / 1024;
const TAIL_LINES_MAX = 12;

export interface Validation {
  readonly stage: "native" | "staged";
  /** The copy of the payload. */
  readonly payload: string;
  /** The folder of it in which runtime paths begin. */
  readonly folder: string;
  /** In plaintext. */
  readonly configurationJson: string;
  /** Texts that must not be shown. */
  readonly secrets: readonly string[];
  /** For all of them together. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** @returns the names of a payload's validators in the order in which they run; empty without any */
export async function validatorsIn(payload: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(join(payload, VALIDATORS_FOLDER), { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && Object.hasOwn(INTERPRETERS, extname(entry.name)))
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}

export class Validators {
  readonly #run: RunSideCommand;
  readonly #prefixes: ReadonlySet<string>;

  /** @param prefixes under which the variables are given, beside SVC_ */
  constructor(run: RunSideCommand, prefixes: readonly string[]) {
    this.#run = run;
    this.#prefixes = new Set(["SVC_", ...prefixes]);
  }

  /** Asks all of them. @throws the signal's reason when it is aborted */
  async ask(names: readonly string[], validation: Validation): Promise<Found> {
    const errors: LaunchProblem[] = [];
    const warnings: LaunchProblem[] = [];
    const environment = this.#environment(validation);
    const read = reader(validation);
    const endsAtMs = performance.now() + validation.timeoutMs;
    for (const name of names) {
      const command = [INTERPRETERS[extname(name)]!, join(validation.payload, VALIDATORS_FOLDER, name)];
      const timeoutMs = Math.max(1, endsAtMs - performance.now());
      const end = await this.#run(
        { command, folder: validation.folder, environment, timeoutMs },
        validation.signal,
      );
      validation.signal.throwIfAborted();
      const found = read(name, end);
      errors.push(...found.errors);
      warnings.push(...found.warnings);
      // It has used up the time of all: ending each of the others may take seconds.
      if (end.kind === "timed_out") break;
    }
    return { errors, warnings };
  }

  #environment({ stage, payload, configurationJson }: Validation): Record<string, string> {
    const given = {
      BLUEPRINT_CONFIG_JSON: configurationJson,
      VALIDATION_STAGE: stage,
      PAYLOAD_DIR: payload,
    };
    const named = [...this.#prefixes].flatMap((prefix) =>
      Object.entries(given).map(([name, value]) => [`${prefix}${name}`, value]),
    );
    // The copy may be what the workers get: no compiled files of validators among theirs.
    return Object.fromEntries([...named, ["PYTHONDONTWRITEBYTECODE", "1"]]);
  }
}

/** How what a validator printed becomes findings. */
function reader({ payload, secrets, timeoutMs }: Validation) {
  const redactor = makeRedactor(secrets);
  /** For everybody to read: without secrets, and without the place of the copy. */
  const redacted = (text: string, shortened: (text: string) => string = beginning) =>
    shortened(redactor.text(text).replaceAll(`${payload}/`, "").replaceAll(payload, "payloads"));
  const failure = (name: string, message: string): Found => {
    const problem: LaunchProblem = { part: "configuration", path: "", code: "validator_failed", message };
    return { errors: [{ ...problem, message: `${VALIDATORS_FOLDER}/${name} ${message}` }], warnings: [] };
  };
  return (name: string, end: SideCommandEnd): Found => {
    switch (end.kind) {
      case "exited": {
        const report = reportIn(end.stdout);
        if (report === null) return failure(name, `printed a report of more than ${REPORT_KIB_MAX} KiB`);
        const { errors, warnings } = findingsOf(report, redacted);
        if (errors.length > 0 || end.code === 0) return { errors, warnings };
        const how = end.code === null ? "was ended by a signal" : `ended with exit code ${end.code}`;
        const tail = redacted(end.stderr, lastLines) || redacted(end.stdout, lastLines);
        return { ...failure(name, tail === "" ? how : `${how}: ${tail}`), warnings };
      }
      case "timed_out":
        return failure(name, `took too long: validators have ${Math.round(timeoutMs / 1_000)} s together`);
      case "not_started":
        return failure(name, `could not be started (${end.reason})${hintOf(name, end.reason)}`);
      case "aborted":
        return failure(name, "was stopped, because the runtime is shutting down; try again");
      default:
        return end satisfies never;
    }
  };
}

/** What to do about a validator that the system does not start. */
function hintOf(name: string, reason: string): string {
  if (reason === "ENOENT")
    return `: install ${INTERPRETERS[extname(name)]} where the runtime's PATH finds it`;
  return reason === "E2BIG" ? ": make the configuration smaller, or put large data into a file" : "";
}

/**
 * The report that a validator may print as its last line, or as all of its output: {"errors": [{"path", "message"}],
 * "warnings": […]}.
 *
 * @returns empty without one; null when only its end has been kept, because an answer that is not known is no yes
 */
function reportIn(stdout: string): JsonObject | null {
  const text = stdout.trim();
  const line = text.slice(text.lastIndexOf("\n") + 1);
  const parsed = parsedObject(line) ?? parsedObject(text);
  if (parsed !== null) return parsed;
  const isCut = Buffer.byteLength(stdout) >= OUTPUT_BYTES_MAX;
  return isCut && text.endsWith("}") ? null : {};
}

function parsedObject(text: string): JsonObject | null {
  const parsed = text.startsWith("{") ? parseJson(text, limits.jsonDepthMax) : null;
  return isObject(parsed?.value) ? parsed.value : null;
}

function findingsOf(report: JsonObject, redacted: (text: string) => string): Found {
  const list = (value: JsonValue | undefined, code: string): LaunchProblem[] =>
    entriesIn(value)
      .slice(0, FINDINGS_MAX)
      .map((entry) => {
        const { path, message } = isObject(entry) ? entry : { path: "", message: entry };
        const text = typeof message === "string" && message.trim() !== "" ? message : JSON.stringify(entry);
        return { part: "configuration", path: pathOf(path, redacted), code, message: redacted(text) };
      });
  return {
    errors: list(report.errors, "validator_refused"),
    warnings: list(report.warnings, "validator_warned"),
  };
}

/** A text or an object in the place of the list is its only entry: that is what its author meant. */
function entriesIn(value: JsonValue | undefined): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  const isEmpty = isBlank(value) || value === false || (isObject(value) && Object.keys(value).length === 0);
  return isEmpty ? [] : [value!];
}

/** A validator may name the place as a dotted path or as a JSON Pointer. */
function pathOf(path: JsonValue | undefined, redacted: (text: string) => string): string {
  if (typeof path !== "string" || path === "") return "";
  const shown = redacted(path);
  return shown.startsWith("/") ? shown : pointerOf(shown);
}

function beginning(text: string): string {
  return text.slice(0, MESSAGE_CHARS_MAX);
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-TAIL_LINES_MAX).join("\n").slice(-MESSAGE_CHARS_MAX);
}
