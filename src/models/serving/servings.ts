// Which models are served: begun by an operation that ends once the model answers, kept over restarts, and stopped.

import type { JsonObject } from "../../engine/json.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { OperationFailed } from "../../operations/failures.ts";
import {
  type OperationEnd,
  type OperationHandler,
  Operations,
  type OperationsParts,
} from "../../operations/operations.ts";
import type { OperationContext } from "../../operations/progress.ts";
import type { Operation } from "../../operations/records.ts";
import { LlmError } from "./llm-error.ts";
import { defaultSettings, type ServeSettings } from "./model-backend.ts";
import type { ModelServers } from "./model-servers.ts";
import type { ServedModel, ServedModelRecords, ServingWrites } from "./records.ts";
import type { Servables } from "./servable.ts";

/** Loading is the work of the models' own processes. */
const AT_ONCE_MAX = 4;

export interface ServingsParts
  extends Omit<OperationsParts<ServingWrites>, "handlers" | "atOnceMax" | "records"> {
  readonly operationRecords: OperationsParts<ServingWrites>["records"];
  readonly records: ServedModelRecords;
  readonly servables: Servables;
  readonly servers: ModelServers;
  /** What the OpenAI protocol is served at by this program; null while it is not. */
  readonly baseUrl: () => string | null;
}

export class Servings {
  readonly #parts: ServingsParts;
  readonly #operations: Operations<ServingWrites>;

  constructor(parts: ServingsParts) {
    this.#parts = parts;
    const { operationRecords: records } = parts;
    const handlers = { model_serving: this.#handler() };
    this.#operations = new Operations({ ...parts, records, handlers, atOnceMax: AT_ONCE_MAX });
  }

  /** Begins what is open and this program's. */
  recover(): Promise<void> {
    return this.#operations.recover();
  }

  stop(): Promise<void> {
    return this.#operations.stop();
  }

  begin(operation: Operation): void {
    this.#operations.begin(operation);
  }

  served(modelId: string): Promise<ServedModel | null> {
    return this.#parts.records.served(modelId);
  }

  /** Whether it could be served. */
  async isHere(modelId: string): Promise<boolean> {
    return (await this.#parts.servables.find(modelId)) !== null;
  }

  /**
   * Writes the request down in a gateway transaction; `begin` is to be called after its commit.
   *
   * @throws DomainError `model_not_found` when it is not registered, or its content is not here; from what it returns `model_busy`
   */
  async prepareServe(
    modelId: string,
    given: Partial<ServeSettings>,
  ): Promise<(writes: ServingWrites) => Promise<Operation>> {
    if (!(await this.isHere(modelId))) throw notHere(modelId);
    const request: JsonObject = { model_id: modelId, ...defaultSettings, ...given };
    return (writes) =>
      this.#operations.request(writes, { kind: "model_serving", target: `model:${modelId}`, request });
  }

  /** Stops serving a model: requests under way fail. To be called in a transaction. @returns what is to be done after it */
  async stopServing(writes: ServingWrites, modelId: string): Promise<() => void> {
    const isServed = await writes.servedModels.remove(modelId);
    if (!isServed)
      throw new DomainError(
        "invalid_transition",
        `Model "${modelId}" is not served, so there is nothing to stop. troupe models serve ${modelId} serves it.`,
      );
    return () => this.#parts.servers.drop(modelId);
  }

  #handler(): OperationHandler<ServingWrites> {
    return {
      steps: [{ name: "load", label: "Loading the model" }],
      run: (context) => this.#serve(context),
      fail: async () => () => {},
    };
  }

  async #serve(context: OperationContext): Promise<OperationEnd<ServingWrites>> {
    const { servers, baseUrl } = this.#parts;
    const { model_id: modelId, ...settings } = context.operation.request as unknown as ServeSettings & {
      readonly model_id: string;
    };
    await context.step("load");
    try {
      const tried = await servers.tryOut(modelId, settings, context.signal);
      return {
        result: { model_id: modelId, base_url: baseUrl() },
        commit: async (writes, nowMs) => {
          await writes.servedModels.save({ modelId, settings, createdAtMs: nowMs, updatedAtMs: nowMs });
          return tried.keep;
        },
      };
    } catch (error) {
      if (error instanceof LlmError) throw new OperationFailed("model_failed", error.message);
      throw error;
    }
  }
}

const notHere = (modelId: string) =>
  new DomainError(
    "model_not_found",
    `There is no model "${modelId}" on this machine: it is not registered, or not installed. ` +
      `\`troupe models list\` shows which there are; install it: troupe models install ${modelId}.`,
  );
