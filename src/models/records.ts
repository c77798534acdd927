// What is kept of models: what was registered, and on which node its content is. Ports, implemented in src/store.
//
// - An installation has its row before its first byte, and its content is whole and on disk before its row says so.
// - A change names the revision that it was made for; it lands on that revision or not at all.

import type { JsonObject } from "../engine/json.ts";
import type { OperationError, OperationWrites } from "../operations/records.ts";

/** Where a model comes from: its first member says which kind it is (model-source.ts). */
export type StoredSource = JsonObject;

/** What the content that was installed last says of itself. */
export interface ModelContent {
  readonly sha256: string;
  readonly bytes: number;
  readonly format: string | null;
  readonly architecture: string | null;
  readonly license: string | null;
  readonly parameters: number | null;
  readonly quantisation: string | null;
  /** Tokens that it was made for. */
  readonly context: number | null;
  readonly tokenizer: string | null;
  readonly vocabulary: number | null;
  readonly hasChatTemplate: boolean | null;
}

/** What the owner says. What the owner does not say is null, and the content's own word counts. */
export interface ModelSettings {
  readonly name: string;
  readonly family: string | null;
  /** Secrets encrypted. */
  readonly source: StoredSource;
  /** What the content has to be: of a file its SHA-256, of a folder that of its list (model-files.ts). */
  readonly sha256: string | null;
  readonly license: string | null;
  readonly parameters: number | null;
  readonly quantisation: string | null;
  readonly context: number | null;
  readonly requirements: { readonly memory_bytes?: number; readonly disk_bytes?: number } | null;
}

export interface ModelRegistration extends ModelSettings {
  readonly modelId: string;
  readonly content: ModelContent | null;
  /** From 1; each change that its owner makes adds one. */
  readonly revision: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export const installationStates = ["installing", "installed", "failed"] as const;
export type InstallationState = (typeof installationStates)[number];

export interface ModelInstallation {
  /** `installation_` and a time-ordered id. */
  readonly installationId: string;
  readonly modelId: string;
  readonly nodeId: string;
  readonly state: InstallationState;
  /** The operation that has changed it last. */
  readonly operationId: string;
  /** The content that is in the home; null while there is none, and of a model that a server has. */
  readonly sha256: string | null;
  readonly bytes: number;
  /** Whether it stays as it is: neither updated nor removed. */
  readonly pinned: boolean;
  readonly error: OperationError | null;
  readonly revision: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A model with all that is known of it. */
export interface ModelView extends ModelRegistration {
  readonly installations: readonly ModelInstallation[];
  /** The blueprints that have brought it along, and have it. */
  readonly blueprints: readonly string[];
}

export interface ModelRecords {
  model(modelId: string): Promise<ModelView | null>;
  /** In the order of their ids. */
  models(page: { readonly limit: number; readonly after: string | null }): Promise<readonly ModelView[]>;
  installation(installationId: string): Promise<ModelInstallation | null>;
  /** The one of a model on a node. */
  installationOn(modelId: string, nodeId: string): Promise<ModelInstallation | null>;
  /** Of all models on all nodes. */
  allInstallations(): Promise<readonly ModelInstallation[]>;
}

/** What a gateway transaction may read and write of models. */
export interface ModelWrites {
  model(modelId: string): Promise<ModelView | null>;
  installationOn(modelId: string, nodeId: string): Promise<ModelInstallation | null>;
  /** Writes a registration, new or changed. */
  save(model: ModelRegistration): Promise<void>;
  remove(modelId: string): Promise<void>;
  saveInstallation(installation: ModelInstallation): Promise<void>;
  removeInstallation(installationId: string): Promise<void>;
}

/** The parts of a gateway transaction that installations and removals write. */
export interface ModelsWrites {
  readonly operations: OperationWrites;
  readonly models: ModelWrites;
}
