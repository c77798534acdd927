// Removes content that nobody has any more, once no run of this machine reads it.

import type { EngineLog } from "../engine/ports.ts";
import { madeOnce } from "../lib/async.ts";
import type { ModelFiles } from "./model-files.ts";
import type { ModelRecords } from "./records.ts";

export interface UnusedContentParts {
  readonly records: Pick<ModelRecords, "installationOn" | "allInstallations">;
  readonly files: ModelFiles;
  readonly nodeId: string;
  /** Whether a blueprint has brought this content along. */
  readonly isBrought: (modelId: string, sha256: string) => Promise<boolean>;
  /** The places of content that runs read, or are about to. */
  readonly inUse: () => Promise<ReadonlySet<string>>;
  readonly log: EngineLog;
}

export class UnusedContent {
  readonly #parts: UnusedContentParts;

  constructor(parts: UnusedContentParts) {
    this.#parts = parts;
  }

  /** Removes what a model has had before. What cannot be removed now is tried again later. */
  async remove(modelId: string): Promise<void> {
    const { records, files, nodeId, isBrought, inUse, log } = this.#parts;
    try {
      const inUseNow = madeOnce(inUse);
      await files.removeUnowned(modelId, async (sha256) => {
        if ((await records.installationOn(modelId, nodeId))?.sha256 === sha256) return true;
        if (await isBrought(modelId, sha256)) return true;
        const place = await files.file(modelId, sha256);
        return place !== null && (await inUseNow()).has(place);
      });
    } catch (error) {
      log.warn(
        { model_id: modelId, error: String(error) },
        "what a model has had before could not be removed yet",
      );
    }
  }

  /** The same for all models that are installed here. */
  async sweep(): Promise<void> {
    const { records, nodeId } = this.#parts;
    for (const one of await records.allInstallations())
      if (one.nodeId === nodeId && one.state === "installed") await this.remove(one.modelId);
  }
}
