// Registered models as they can be served from here: content that is installed on this node, or a server that has it.

import { stat } from "node:fs/promises";
import type { Models } from "./models.ts";
import type { ModelRecords, ModelView } from "./records.ts";
import type { Servable, Servables } from "./serving/servable.ts";

export class RegisteredServables implements Servables {
  readonly #records: Pick<ModelRecords, "model">;
  readonly #models: Pick<Models, "place" | "sourceOf">;

  constructor(records: Pick<ModelRecords, "model">, models: Pick<Models, "place" | "sourceOf">) {
    this.#records = records;
    this.#models = models;
  }

  async find(modelId: string): Promise<Servable | null> {
    const model = await this.#records.model(modelId);
    if (model === null) return null;
    const source = await this.#models.sourceOf(model);
    if (source.kind === "openai") {
      const { baseUrl, model: name, apiKey } = source;
      return { kind: "endpoint", modelId, baseUrl, model: name, apiKey };
    }
    if (source.kind === "ollama") {
      if (!isInstalled(model)) return null;
      // Where it speaks the protocol, beside its own.
      return {
        kind: "endpoint",
        modelId,
        baseUrl: `${source.baseUrl}/v1`,
        model: source.model,
        apiKey: null,
      };
    }
    const path = await this.#models.place(modelId);
    if (path === null) return null;
    const isFolder = (await stat(path)).isDirectory();
    const context = model.context ?? model.content?.context ?? null;
    return { kind: "file", modelId, path, format: isFolder ? "safetensors" : "gguf", context };
  }
}

const isInstalled = ({ installations }: ModelView) =>
  installations.some(({ state }) => state === "installed");
