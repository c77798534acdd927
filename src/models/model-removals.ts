// Removals of installations: the content of a model goes from this machine; its registration stays.
//
// - A preview and the removal work with one function, so that what the preview shows is what goes.
// - What a run, a deployment or a blueprint needs goes only when it is forced. What a blueprint has brought along stays with
//   it in any case.

import type { JsonObject } from "../engine/json.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { OperationEnd, OperationHandler } from "../operations/operations.ts";
import type { OperationContext } from "../operations/progress.ts";
import { type InstallsParts, modelOf } from "./installs.ts";
import type { ModelFiles } from "./model-files.ts";
import { sourceOf } from "./model-source.ts";
import { Ollama, OllamaFailed } from "./ollama.ts";
import type { ModelInstallation, ModelRecords, ModelsWrites } from "./records.ts";

export interface RemovalsParts extends Pick<InstallsParts, "write" | "nodeId" | "openSource"> {
  readonly records: Pick<ModelRecords, "model" | "installationOn">;
  readonly files: ModelFiles;
  readonly isBrought: (modelId: string, sha256: string) => Promise<boolean>;
  /** What needs the model on this machine, for people: "run run_01…", "blueprint digest". */
  readonly usesOf: (modelId: string) => Promise<readonly string[]>;
}

interface Plan {
  readonly installation: ModelInstallation | null;
  readonly usedBy: readonly string[];
  /** Whether its content goes from the disk. */
  readonly isFreed: boolean;
}

export class ModelRemovals implements OperationHandler<ModelsWrites> {
  readonly steps = [
    { name: "check", label: "Looking at what needs it" },
    { name: "remove", label: "Removing the model" },
    { name: "finish", label: "Finishing" },
  ] as const;
  readonly #parts: RemovalsParts;

  constructor(parts: RemovalsParts) {
    this.#parts = parts;
  }

  async run(context: OperationContext): Promise<OperationEnd<ModelsWrites>> {
    const modelId = modelOf(context.operation);
    const { dry_run, force } = context.operation.request;
    await context.step("check");
    const remembered = context.operation.result;
    const plan = await this.#plan(modelId);
    const shown = remembered?.removed ?? shownOf(modelId, plan);
    if (dry_run === true) return { result: { preview: shown } };
    if (plan.usedBy.length > 0 && force !== true && remembered === null) throw inUse(modelId, plan.usedBy);
    await context.remember({ removed: shown });
    await context.step("remove");
    const id = plan.installation?.installationId;
    if (id !== undefined) {
      await this.removeFromServer(modelId);
      await this.removeFiles(modelId, () => this.#parts.write(({ models }) => models.removeInstallation(id)));
    }
    await context.step("finish");
    return { result: { removed: shown } };
  }

  async fail(): Promise<() => void> {
    return () => {};
  }

  async #plan(modelId: string): Promise<Plan> {
    const { records, nodeId, isBrought, usesOf } = this.#parts;
    const installation = await records.installationOn(modelId, nodeId);
    const sha256 = installation?.sha256 ?? null;
    const isThere = sha256 !== null || installation?.state === "installed";
    const isFreed = isThere && (sha256 === null || !(await isBrought(modelId, sha256)));
    return { installation, usedBy: await usesOf(modelId), isFreed };
  }

  /** Has the server that has the model let go of it; nothing happens of one that is in the home. @throws OperationFailed */
  async removeFromServer(modelId: string): Promise<void> {
    const { records, openSource } = this.#parts;
    const model = await records.model(modelId);
    const source = model === null ? null : sourceOf(await openSource(model.source));
    if (source?.kind !== "ollama") return;
    await new Ollama(source.baseUrl).delete(source.model, new AbortController().signal).catch((error) => {
      if (!(error instanceof OllamaFailed)) throw error;
      const detail = `The model "${modelId}" could not be removed. ${error.message}`;
      throw new OperationFailed("model_failed", detail);
    });
  }

  /** Removes from the home what a blueprint has not brought along. @param letGo called last, before anybody else can have it */
  removeFiles(modelId: string, letGo?: () => Promise<void>): Promise<void> {
    const { files, isBrought } = this.#parts;
    return files.removeUnowned(modelId, (sha256) => isBrought(modelId, sha256), letGo);
  }
}

/** As the result of the operation. */
function shownOf(modelId: string, { installation, usedBy, isFreed }: Plan): JsonObject {
  const bytes = installation?.bytes ?? 0;
  const action = isFreed ? "delete" : "keep";
  const resources =
    installation === null || bytes === 0
      ? []
      : [{ kind: "model", id: modelId, bytes, action, node_id: installation.nodeId }];
  return { resources, used_by: [...usedBy], jobs_affected: 0, bytes_freed: isFreed ? bytes : 0 };
}

function inUse(modelId: string, usedBy: readonly string[]): OperationFailed {
  return new OperationFailed(
    "model_in_use",
    `The model "${modelId}" is needed by ${usedBy.slice(0, 10).join(", ")}. Wait for them or remove them, or remove the model with force.`,
  );
}
