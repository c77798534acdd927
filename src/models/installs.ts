// Installations of models: what the source has comes into the home, or into the server that has models of its own.
//
// - Of a model that is installed already, an installation does nothing; an update looks at the source again.
// - What was installed before stays until the new content is whole, and its content until no run uses it.
// - Each step finds by itself what is done already, so that an operation that was cut off continues.

import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { OperationEnd, OperationHandler } from "../operations/operations.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { Operation } from "../operations/records.ts";
import type { ContentFetcher } from "./fetch-content.ts";
import { modelFailed } from "./model-files.ts";
import { type ModelSource, sourceOf } from "./model-source.ts";
import { Ollama, OllamaFailed } from "./ollama.ts";
import type {
  ModelContent,
  ModelInstallation,
  ModelRecords,
  ModelRegistration,
  ModelsWrites,
} from "./records.ts";
import { TransferLabel } from "./transfer-label.ts";
import type { UnusedContent } from "./unused-content.ts";

export interface InstallsParts {
  readonly records: Pick<ModelRecords, "model" | "installationOn">;
  readonly write: <T>(work: (writes: ModelsWrites) => Promise<T>) => Promise<T>;
  readonly fetcher: ContentFetcher;
  readonly unused: UnusedContent;
  readonly nodeId: string;
  /** The source in plaintext. @throws ConfigurationUnreadable */
  readonly openSource: (source: JsonObject) => Promise<JsonObject>;
  /** Brings content that another node has; nothing happens when none has it. */
  readonly bring: (modelId: string, sha256: string) => Promise<void>;
  /** Lets other nodes have it. */
  readonly share: (modelId: string, sha256: string) => Promise<void>;
  readonly clock: Clock;
}

/** The id of the model that an operation is about. */
export const modelOf = ({ target }: Pick<Operation, "target">) => target.replace(/^model:/, "");
export const targetOf = (modelId: string) => `model:${modelId}`;

export class Installs implements OperationHandler<ModelsWrites> {
  readonly steps = [
    { name: "check", label: "Looking at the source" },
    { name: "fetch", label: "Fetching the model" },
    { name: "finish", label: "Finishing" },
  ] as const;
  readonly #parts: InstallsParts;

  constructor(parts: InstallsParts) {
    this.#parts = parts;
  }

  async run(context: OperationContext): Promise<OperationEnd<ModelsWrites>> {
    const modelId = modelOf(context.operation);
    await context.step("check");
    const model = await this.#parts.records.model(modelId);
    if (model === null) throw modelFailed(modelId, "Its registration was removed meanwhile.");
    const source = sourceOf(await this.#opened(modelId, model.source));
    await context.step("fetch");
    try {
      const content = await this.#fetched(model, source, context);
      await context.step("finish");
      return this.#end(modelId, content, source.kind !== "ollama");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
      const detail = `The disk of SVC_HOME has no room for the model "${modelId}". Free some space, then install it again.`;
      throw new OperationFailed("disk_full", detail);
    }
  }

  async fail(writes: ModelsWrites, operation: Operation, nowMs: number): Promise<() => void> {
    const before = await writes.models.installationOn(modelOf(operation), this.#parts.nodeId);
    if (before === null) return () => {};
    // What was installed before is as it was.
    const state = before.sha256 === null ? "failed" : "installed";
    await writes.models.saveInstallation({ ...before, state, error: operation.error, updatedAtMs: nowMs });
    return () => {};
  }

  async #fetched(
    model: ModelRegistration,
    source: ModelSource,
    context: OperationContext,
  ): Promise<ModelContent> {
    const { modelId, sha256, content: known } = model;
    if (source.kind === "ollama") return this.#pulled(modelId, source, context);
    if (source.kind === "openai")
      throw modelFailed(modelId, "Of an endpoint there is nothing to install: serve it.");
    const { records, fetcher, share, bring, nodeId } = this.#parts;
    const { kind, request } = context.operation;
    const there = (await records.installationOn(modelId, nodeId))?.sha256 ?? known?.sha256 ?? null;
    const isAnew = request.force === true;
    const expected = kind === "model_update" ? sha256 : (sha256 ?? there);
    if (!isAnew && expected !== null) await bring(modelId, expected);
    return fetcher.fetch({ modelId, source, sha256: expected, isAnew }, context, async (content) => {
      await share(modelId, content.sha256);
      await this.#own(modelId, content);
    });
  }

  async #pulled(
    modelId: string,
    { baseUrl, model }: Extract<ModelSource, { readonly kind: "ollama" }>,
    context: OperationContext,
  ): Promise<ModelContent> {
    const server = new Ollama(baseUrl);
    const label = new TransferLabel("Pulling", this.#parts.clock);
    try {
      await server.pull(model, {
        signal: context.signal,
        told: (bytes, total, status) =>
          context.progress(
            total === null || total === 0 ? 0 : bytes / total,
            total === null ? `The server says: ${status.slice(0, 200)}` : label.text(bytes, total),
          ),
      });
      const found = await server.find(model, context.signal);
      if (found === null)
        throw modelFailed(modelId, `The server does not list ${model} after it was pulled.`);
      return found;
    } catch (error) {
      if (error instanceof OllamaFailed) throw modelFailed(modelId, error.message);
      throw error;
    }
  }

  async #opened(modelId: string, source: JsonObject): Promise<JsonObject> {
    try {
      return await this.#parts.openSource(source);
    } catch (error) {
      if (!(error instanceof Error && error.name === "ConfigurationUnreadable")) throw error;
      throw new OperationFailed(
        "configuration_unreadable",
        `The source of the model "${modelId}": ${error.message}`,
      );
    }
  }

  /** Writes down that the content is there, before it can be removed as unowned. */
  #own(modelId: string, { sha256, bytes }: Pick<ModelContent, "sha256" | "bytes">): Promise<void> {
    const { write, nodeId } = this.#parts;
    return write(async ({ models }) => {
      const before = await models.installationOn(modelId, nodeId);
      if (before !== null) await models.saveInstallation({ ...before, sha256, bytes });
    });
  }

  /** @param isInHome whether the content is on this machine's disk, rather than a server's */
  #end(modelId: string, content: ModelContent, isInHome: boolean): OperationEnd<ModelsWrites> {
    const { nodeId, unused } = this.#parts;
    const { bytes } = content;
    const sha256 = isInHome ? content.sha256 : null;
    return {
      result: { model_id: modelId, node_id: nodeId, sha256: content.sha256, size: bytes },
      commit: async ({ models }, nowMs) => {
        const before = await models.installationOn(modelId, nodeId);
        const model = await models.model(modelId);
        if (before !== null) {
          const now: ModelInstallation = {
            ...before,
            state: "installed",
            sha256,
            bytes,
            error: null,
            updatedAtMs: nowMs,
          };
          await models.saveInstallation(now);
        }
        if (model !== null) {
          const { installations: _, blueprints: __, ...registration } = model;
          await models.save({ ...registration, content, updatedAtMs: nowMs });
        }
        return () => void unused.remove(modelId);
      },
    };
  }
}
