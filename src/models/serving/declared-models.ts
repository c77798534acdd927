// Whether the models that a graph's workers are to ask are served: told before a run is accepted, with what to do.

import type { Graph } from "../../engine/graph.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { ServedModelRecords } from "./records.ts";
import type { Servables } from "./servable.ts";

export class DeclaredModels {
  readonly #records: ServedModelRecords;
  readonly #servables: Servables;

  constructor(records: ServedModelRecords, servables: Servables) {
    this.#records = records;
    this.#servables = servables;
  }

  /** @throws DomainError `requirements_not_met` with each model that is required and not served */
  async refuseUnserved({ nodes }: Graph): Promise<void> {
    const needed = new Set<string>();
    for (const { config } of nodes) {
      const llm = config.kind === "executor" ? config.llm : null;
      if (llm?.required && llm.endpoint === null) needed.add(llm.model);
    }
    const messages: string[] = [];
    for (const modelId of needed) {
      const isServed = (await this.#records.served(modelId)) !== null;
      if (!isServed) messages.push(await this.#toDo(modelId));
    }
    if (messages.length === 0) return;
    const errors = messages.map((message) => ({ path: "", code: "model_not_served", message }));
    throw new DomainError("requirements_not_met", messages.join(" "), errors);
  }

  async #toDo(modelId: string): Promise<string> {
    const isHere = (await this.#servables.find(modelId)) !== null;
    const clause = `The package's workers ask the model "${modelId}"`;
    return isHere
      ? `${clause}, which is not served: troupe models serve ${modelId}.`
      : `${clause}, which is not installed here: register it (troupe models add), then troupe models install ${modelId} and troupe models serve ${modelId}.`;
  }
}
