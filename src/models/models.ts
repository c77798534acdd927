// Models as their owners see them: registered, changed, installed, updated, removed, and looked at.
//
// - A change names the revision that it was made for; it lands on that revision or not at all.
// - Of a model one operation is open at a time; while one is, its registration stays.

import type { JsonObject } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import { OperationFailed } from "../operations/failures.ts";
import { busy, Operations, type OperationsParts } from "../operations/operations.ts";
import type { Operation } from "../operations/records.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import type { ContentFetcher } from "./fetch-content.ts";
import type { Memory } from "./inspect-model.ts";
import { Installs, type InstallsParts, targetOf } from "./installs.ts";
import type { ModelFiles } from "./model-files.ts";
import { ModelRemovals } from "./model-removals.ts";
import { type ModelSource, sourceOf, sourceProblems } from "./model-source.ts";
import type {
  ModelInstallation,
  ModelRecords,
  ModelRegistration,
  ModelSettings,
  ModelsWrites,
  ModelView,
} from "./records.ts";
import { UnusedContent } from "./unused-content.ts";
import { type ModelValidation, validateModel } from "./validate-model.ts";

/** Each has a thread that reads and hashes. */
const AT_ONCE_MAX = 2;
const ID_PATTERN = /^[^\p{Cc}]{1,200}$/u;

export interface ModelsParts {
  readonly records: ModelRecords;
  readonly write: <T>(work: (writes: ModelsWrites) => Promise<T>) => Promise<T>;
  readonly files: ModelFiles;
  readonly fetcher: ContentFetcher;
  readonly secrets: ConfigurationSecrets;
  readonly nodeId: string;
  readonly bring: InstallsParts["bring"];
  readonly share: InstallsParts["share"];
  readonly isBrought: (modelId: string, sha256: string) => Promise<boolean>;
  /** The places of content that runs of this machine read, or are about to, with one of the runs. */
  readonly runsReading: () => Promise<ReadonlyMap<string, string>>;
  readonly isServed: (modelId: string) => Promise<boolean>;
  readonly openSource: InstallsParts["openSource"];
  readonly memory: () => Memory;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: EngineLog;
}

/** What a registration is made of. */
export interface NewModel extends Omit<ModelSettings, "name" | "source"> {
  /** Null: after its source. */
  readonly modelId: string | null;
  /** Null: its id. */
  readonly name: string | null;
  /** In plaintext. */
  readonly source: JsonObject;
}

export interface ModelPatch extends Partial<Omit<ModelSettings, "source">> {
  /** In plaintext, but for masks; a whole one. */
  readonly source?: JsonObject;
}

/** Writes a request down in a gateway transaction; `begin` is to be called after its commit. */
export type WriteModelOperation = (writes: ModelsWrites) => Promise<Operation>;

type OwnOperationsParts = Pick<OperationsParts<ModelsWrites>, "records" | "ownership" | "feed">;

export class Models {
  readonly #parts: ModelsParts;
  readonly #operations: Operations<ModelsWrites>;
  readonly #unused: UnusedContent;
  readonly #removals: ModelRemovals;

  constructor(parts: ModelsParts, operations: OwnOperationsParts) {
    this.#parts = parts;
    const { records, files, nodeId, isBrought, runsReading, log } = parts;
    const inUse = async () => new Set((await runsReading()).keys());
    this.#unused = new UnusedContent({ records, files, nodeId, isBrought, inUse, log });
    const installs = new Installs({ ...parts, unused: this.#unused });
    const usesOf = (modelId: string) => this.#usesOf(modelId);
    this.#removals = new ModelRemovals({ ...parts, usesOf });
    this.#operations = new Operations({
      ...operations,
      write: parts.write,
      clock: parts.clock,
      newId: parts.newId,
      log,
      atOnceMax: AT_ONCE_MAX,
      handlers: {
        model_installation: installs,
        model_update: installs,
        model_removal: this.#removals,
      },
    });
  }

  recover(): Promise<void> {
    return this.#operations.recover();
  }

  stop(): Promise<void> {
    return this.#operations.stop();
  }

  begin(operation: Operation): void {
    this.#operations.begin(operation);
  }

  /** Removes content that models have had before, and that no run reads any more. */
  sweep(): Promise<void> {
    return this.#unused.sweep();
  }

  /** @throws DomainError `model_not_found` */
  async find(modelId: string): Promise<ModelView> {
    return found(await this.#parts.records.model(modelId), modelId);
  }

  /** @throws DomainError `model_not_found` */
  async findInstallation(modelId: string, installationId: string): Promise<ModelInstallation> {
    const installation = await this.#parts.records.installation(installationId);
    if (installation?.modelId === modelId) return installation;
    throw new DomainError(
      "model_not_found",
      `The model "${modelId}" has no installation ${installationId}. List its installations.`,
    );
  }

  /** @throws DomainError `validation_failed`; from what it returns `conflict` when the id is taken */
  async prepareRegistration(given: NewModel): Promise<(writes: ModelsWrites) => Promise<ModelView>> {
    const { clock } = this.#parts;
    refuse(sourceProblems(given.source, "/source"));
    const modelId = given.modelId ?? nameOf(sourceOf(given.source));
    if (!ID_PATTERN.test(modelId))
      refuse([wrong("/model_id", "must have 1 to 200 characters, without control characters")]);
    const source = await this.#sealed(given.source, {});
    const nowMs = clock.nowMs();
    const model: ModelRegistration = {
      ...given,
      modelId,
      name: given.name ?? modelId,
      source,
      content: null,
      revision: 1,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    };
    return async ({ models }) => {
      if ((await models.model(modelId)) !== null)
        throw new DomainError(
          "conflict",
          `A model "${modelId}" is registered already. Change it, or give another model_id.`,
        );
      await models.save(model);
      return { ...model, installations: [], blueprints: (await models.model(modelId))?.blueprints ?? [] };
    };
  }

  /**
   * @param before as the caller saw it
   * @throws DomainError `validation_failed`, `precondition_failed`, `model_not_found`, `model_busy`
   */
  async update(before: ModelView, { source, ...settings }: ModelPatch): Promise<ModelView> {
    const { modelId } = before;
    const sealed = source === undefined ? before.source : await this.#patchedSource(before, source);
    return this.#change(before, async (writes, now) => {
      const { installations, blueprints, ...registration } = now;
      const updatedAtMs = this.#parts.clock.nowMs();
      const next = { ...registration, ...settings, source: sealed, revision: now.revision + 1, updatedAtMs };
      await writes.models.save(next);
      return { ...next, modelId, installations, blueprints };
    });
  }

  /** @throws DomainError `model_in_use` while it is installed; `precondition_failed`, `model_not_found`, `model_busy` */
  async remove(before: ModelView): Promise<void> {
    await this.#change(before, async ({ models }, now) => {
      const { modelId, installations, blueprints } = now;
      const [place] = installations;
      if (place !== undefined)
        throw inUse(
          modelId,
          `is installed on node ${place.nodeId}`,
          `Remove it there first (troupe models remove ${modelId}).`,
        );
      if (blueprints.length > 0)
        throw inUse(
          modelId,
          `was brought along by ${blueprints.join(", ")}`,
          "Remove the blueprint, and it goes with it.",
        );
      await models.remove(modelId);
    });
  }

  /** @throws DomainError `precondition_failed`, `model_not_found` */
  pin(before: ModelInstallation, pinned: boolean): Promise<ModelInstallation> {
    return this.#parts.write(async ({ models }) => {
      const now = await unchanged(models.installationOn(before.modelId, before.nodeId), before);
      const next = { ...now, pinned, revision: now.revision + 1, updatedAtMs: this.#parts.clock.nowMs() };
      await models.saveInstallation(next);
      return next;
    });
  }

  /** @throws DomainError `model_not_found`, `invalid_transition`; from what it returns `model_busy`, `conflict` when it is pinned */
  async prepareInstallation(
    modelId: string,
    kind: "model_installation" | "model_update",
    { force }: { readonly force: boolean },
  ): Promise<WriteModelOperation> {
    const model = await this.find(modelId);
    if (Object.hasOwn(model.source, "openai"))
      throw new DomainError(
        "invalid_transition",
        `The model "${modelId}" is at an endpoint: there is nothing to install. Serve it (troupe models serve ${modelId}).`,
      );
    const { nodeId, newId, clock } = this.#parts;
    return async (writes) => {
      const before = await writes.models.installationOn(modelId, nodeId);
      if (before?.pinned && (kind === "model_update" || force)) throw pinned(modelId, before);
      const operation = await this.#operations.request(writes, {
        kind,
        target: targetOf(modelId),
        request: { force },
      });
      const { operationId } = operation;
      const nowMs = clock.nowMs();
      const first: ModelInstallation = {
        installationId: `installation_${newId()}`,
        modelId,
        nodeId,
        state: "installing",
        operationId,
        sha256: null,
        bytes: 0,
        pinned: false,
        error: null,
        revision: 1,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      // What is installed stays so meanwhile.
      const state = before?.sha256 == null ? "installing" : before.state;
      await writes.models.saveInstallation(
        before === null ? first : { ...before, operationId, state, error: null, updatedAtMs: nowMs },
      );
      return operation;
    };
  }

  /** @throws DomainError `model_not_found`; from what it returns `model_busy`, `conflict` when it is pinned */
  async prepareRemoval(
    modelId: string,
    request: { readonly dry_run: boolean; readonly force: boolean },
  ): Promise<WriteModelOperation> {
    await this.find(modelId);
    const { nodeId } = this.#parts;
    return async (writes) => {
      const place = await writes.models.installationOn(modelId, nodeId);
      if (place?.pinned && !request.dry_run && !request.force) throw pinned(modelId, place);
      return this.#operations.request(writes, {
        kind: "model_removal",
        target: targetOf(modelId),
        request: { ...request },
      });
    };
  }

  /**
   * Removes an installation of this node at once.
   *
   * @param before as the caller saw it
   * @throws DomainError `conflict` when it is pinned or on another node, `model_in_use`, `model_busy`, `precondition_failed`,
   *   `model_not_found`, `unavailable` when the server that has it does not let go
   */
  async removeInstallation(before: ModelInstallation): Promise<void> {
    const { modelId, nodeId, installationId } = before;
    if (nodeId !== this.#parts.nodeId)
      throw new DomainError("conflict", `The installation is on node ${nodeId}. Ask that node.`);
    const uses = await this.#usesOf(modelId);
    if (uses.length > 0)
      throw inUse(modelId, `is needed by ${uses.join(", ")}`, "Wait for it, or remove the model with force.");
    await this.#removals.removeFromServer(modelId).catch((error: unknown) => {
      throw error instanceof OperationFailed ? new DomainError("unavailable", error.message) : error;
    });
    await this.#parts.write(async ({ models, operations }) => {
      const now = await unchanged(models.installationOn(modelId, nodeId), before);
      if (now.pinned) throw pinned(modelId, now);
      const open = await operations.open(targetOf(modelId));
      if (open !== null) throw busy(open);
      await models.removeInstallation(installationId);
    });
    await this.#removals.removeFiles(modelId);
  }

  /** Looks at a model. @param context tokens that are to be kept; null: its own, at most 8,192 */
  async validate(modelId: string, context: number | null): Promise<ModelValidation> {
    const model = await this.find(modelId);
    const source = await this.sourceOf(model);
    return validateModel({
      modelId,
      source,
      place: await this.place(modelId),
      context,
      memory: this.#parts.memory(),
    });
  }

  /** The source in plaintext. @throws ConfigurationUnreadable */
  async sourceOf({ source }: Pick<ModelRegistration, "source">): Promise<ModelSource> {
    return sourceOf(await this.#parts.openSource(source));
  }

  /** Where the content of a model is on this machine; null when it is not here. */
  async place(modelId: string): Promise<string | null> {
    const { records, files, nodeId } = this.#parts;
    const model = await records.model(modelId);
    if (model === null) return null;
    const own = model.installations.find((one) => one.nodeId === nodeId)?.sha256;
    const sha256 = own ?? model.content?.sha256 ?? null;
    return sha256 === null ? null : files.file(modelId, sha256);
  }

  async #usesOf(modelId: string): Promise<readonly string[]> {
    const { records, runsReading, isServed } = this.#parts;
    const place = await this.place(modelId);
    const run = place === null ? undefined : (await runsReading()).get(place);
    const model = await records.model(modelId);
    return [
      ...(model?.blueprints ?? []).map((blueprintId) => `blueprint ${blueprintId}`),
      ...(run === undefined ? [] : [`run ${run}`]),
      ...((await isServed(modelId))
        ? [`whoever asks it, as it is served (troupe models stop ${modelId})`]
        : []),
    ];
  }

  async #sealed(source: JsonObject, stored: JsonObject): Promise<JsonObject> {
    const sealed = await this.#parts.secrets.encryptGiven(source, stored, { at: "/source" });
    if (sealed.kind === "invalid") refuse(sealed.errors);
    return (sealed as { readonly value: JsonObject }).value;
  }

  /** A mask in place of a secret keeps the one that is stored. */
  async #patchedSource({ source: stored }: ModelView, source: JsonObject): Promise<JsonObject> {
    const sealed = await this.#sealed(source, stored);
    refuse(sourceProblems(await this.#parts.secrets.decrypt(sealed), "/source"));
    return sealed;
  }

  #change<T>(before: ModelView, change: (writes: ModelsWrites, now: ModelView) => Promise<T>): Promise<T> {
    const { modelId } = before;
    return this.#parts.write(async (writes) => {
      const now = await unchanged(writes.models.model(modelId), before);
      const open = await writes.operations.open(targetOf(modelId));
      if (open !== null) throw busy(open);
      return change(writes, now);
    });
  }
}

/** @throws DomainError `model_not_found`, `precondition_failed` */
async function unchanged<Of extends { readonly modelId: string; readonly revision: number }>(
  now: Promise<Of | null>,
  before: Of,
): Promise<Of> {
  const current = found(await now, before.modelId);
  if (current.revision === before.revision) return current;
  throw new DomainError("precondition_failed", `The model "${before.modelId}" was changed meanwhile.`);
}

function found<Of>(model: Of | null, modelId: string): Of {
  if (model !== null) return model;
  throw new DomainError(
    "model_not_found",
    `The model "${modelId}" is not registered. List the models (troupe models list).`,
  );
}

function inUse(modelId: string, why: string, next: string): DomainError {
  return new DomainError("model_in_use", `The model "${modelId}" ${why}. ${next}`);
}

function pinned(modelId: string, { nodeId }: ModelInstallation): DomainError {
  return new DomainError(
    "conflict",
    `The model "${modelId}" is pinned on node ${nodeId}. Take the pin off (PATCH its installation), or use force to remove it.`,
  );
}

const wrong = (path: string, message: string): DomainErrorEntry => ({ path, code: "invalid_value", message });

function refuse(errors: readonly DomainErrorEntry[]): void {
  if (errors.length === 0) return;
  const said = errors.map(({ path, message }) => `${path} ${message}`).join("; ");
  throw new DomainError("validation_failed", `The model cannot be registered: ${said}.`, errors);
}

/** What a model is called after its source. */
function nameOf(source: ModelSource): string {
  switch (source.kind) {
    case "file":
    case "payload":
      return withoutEnding(source.path);
    case "folder":
      return source.path.split("/").findLast((part) => part !== "") ?? "";
    case "url":
      return withoutEnding(new URL(source.url).pathname);
    case "ollama":
    case "openai":
      return source.model;
    default:
      return source satisfies never;
  }
}

const withoutEnding = (path: string) => (path.split("/").at(-1) ?? "").replace(/\.(gguf|safetensors)$/, "");
