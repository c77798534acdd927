// What a package says of itself beyond its graph: read from its manifest and its configuration, checked, in one record.
// docs/blueprints.md describes every field. Words and forms that the reader and the JSON Schemas both ask for are here too.

import type { JsonObject, JsonValue } from "../engine/json.ts";
import type { RequiredService } from "../engine/service.ts";

export const blueprintIdForm = /^[a-z0-9][a-z0-9_-]{0,63}$/;
export const resourceName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const sha256Digits = /^[0-9a-fA-F]{64}$/;
export const platforms = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "openbsd",
  "sunos",
  "win32",
] as const;
export const ruleTypes = ["string", "number", "integer", "boolean", "object", "array"] as const;
export const webUiAdapters = ["dashboard", "static_html"] as const;

export interface PackageDescription {
  readonly identity: PackageIdentity;
  /** JSON Schema of a run's inputs (manifest `input_schema`); null: anything. */
  readonly inputSchema: JsonObject | null;
  /** JSON Schema of the configuration (manifest `config_schema`); null: anything. */
  readonly configSchema: JsonObject | null;
  readonly requirements: Requirements;
  readonly resources: readonly DeclaredResource[];
  readonly models: readonly DeclaredModel[];
  readonly inputRules: readonly InputRule[];
}

export interface PackageIdentity {
  /** Of blueprintIdForm: config identity.blueprint_id, else manifest metadata.blueprint_id, else the folder's name. */
  readonly blueprintId: string;
  readonly name: string;
  readonly description: string;
  readonly version: string | null;
  readonly category: string | null;
  readonly tags: readonly string[];
}

/** What a machine must have before a run is accepted (manifest `requirements` and `required_services`). */
export interface Requirements {
  /** Programs that must be on the PATH. */
  readonly commands: readonly string[];
  /** Variables that must be set in the runtime's environment. */
  readonly environment: readonly string[];
  /** process.platform values of which one must be this machine's; empty: any. */
  readonly platforms: readonly string[];
  /** Null: nothing is asked. */
  readonly cpuCores: number | null;
  readonly memoryBytes: number | null;
  readonly diskBytes: number | null;
  /** Slots that a pool must have, by the pool's name. */
  readonly pools: Readonly<Record<string, number>>;
  /** Ids of models that must be installed. */
  readonly models: readonly string[];
  readonly services: readonly RequiredService[];
}

/** A folder that is made once, when the blueprint is added, and is there for all its runs (SVC_RESOURCES_DIR/name). */
export interface DeclaredResource {
  readonly name: string;
  readonly title: string | null;
  /** Folder or file of payloads/ that is copied into it first; null: it starts empty. */
  readonly from: string | null;
  /** Program that fills it, started in it (a list: no shell); null: the copy is all. */
  readonly prepare: readonly string[] | null;
  readonly timeoutSeconds: number;
}

/** A model file that the blueprint brings along or finds on the machine. */
export interface DeclaredModel {
  readonly modelId: string;
  /** A path inside payloads/, or an absolute one. */
  readonly path: string;
  /** Hex; null: not checked. */
  readonly sha256: string | null;
}

/** One rule over the resolved configuration (manifest `input_validation.rules`, CONTRACTS §6). */
export interface InputRule {
  /** Dotted path. */
  readonly path: string;
  readonly required: boolean;
  readonly type: (typeof ruleTypes)[number] | null;
  readonly enum: readonly JsonValue[] | null;
  /** Of a number its value, of a text or list its length. */
  readonly min: number | null;
  readonly max: number | null;
  readonly pattern: string | null;
  readonly exists: "file" | "folder" | null;
  /** With a dot, lower case; null: any. */
  readonly extensions: readonly string[] | null;
  /** In place of the rule's own sentence. */
  readonly message: string | null;
}

/** A folder of the user's that is copied into the payload (config `local_inputs.folders`, spec "packaging" 4). */
export interface LocalFolder {
  readonly configPath: string;
  readonly payloadPath: string;
  readonly runtimePath: string;
  /** With a dot, lower case; null: all. */
  readonly allowedExtensions: readonly string[] | null;
  readonly linkedConfigPaths: readonly string[];
}

/** config `web_ui`. */
export interface WebUi {
  readonly adapter: (typeof webUiAdapters)[number];
  readonly title: string;
  /** static_html: the page inside payloads/. */
  readonly page: string | null;
}
