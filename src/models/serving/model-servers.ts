// The backends of this program: one for each model that is served, as its record and its content are now.
//
// - A backend is made for the first request, and made anew when the record or the content has changed: requests under way
//   keep the one that they have, which ends with the last of them.
// - A backend that is tried out takes the place of the one before once it answers, and not before.

import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { Daemon, DaemonSpec } from "../../execution/process/daemons.ts";
import { LlmError } from "./llm-error.ts";
import { EndpointBackend, type ModelBackend, type ServeSettings } from "./model-backend.ts";
import { ProcessBackend } from "./process-backend.ts";
import type { ServedModelRecords } from "./records.ts";
import type { Servable, Servables } from "./servable.ts";

export interface ModelServersParts {
  readonly servables: Servables;
  readonly records: ServedModelRecords;
  readonly startDaemon: (spec: DaemonSpec) => Promise<Daemon>;
  /** Of this program; what a model's server has no use for is left out. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder that processes start in. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: EngineLog & { info(fields: object, message: string): void };
}

interface Held {
  /** What it was made of, as text. */
  readonly madeOf: string;
  readonly backend: ModelBackend;
}

/** What a model's server needs of the environment beside its own: where programs and libraries are, and its GPUs. */
const PASSED =
  /^(PATH|HOME|LANG|TZ|TMPDIR|LD_LIBRARY_PATH|XDG_CACHE_HOME|(CUDA|NVIDIA|HIP|ROCR|HSA|GGML|LLAMA|VLLM|HF|OMP)_.+)$/;

export class ModelServers {
  readonly #parts: ModelServersParts;
  readonly #held = new Map<string, Held>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(parts: ModelServersParts) {
    this.#parts = parts;
  }

  /** @returns null when the model is not served. @throws LlmError when its content is not here */
  async backendOf(modelId: string): Promise<ModelBackend | null> {
    const { records } = this.#parts;
    const served = await records.served(modelId);
    if (served === null) {
      this.drop(modelId);
      return null;
    }
    const servable = await this.#servable(modelId);
    const madeOf = textOf(servable, served.settings);
    const held = this.#held.get(modelId);
    if (held?.madeOf === madeOf) return held.backend;
    return this.#hold(modelId, { madeOf, backend: this.#make(servable, served.settings) });
  }

  /** What is seen of a model that is served; null while nobody has asked for it here. */
  heldOf(modelId: string): ModelBackend | null {
    return this.#held.get(modelId)?.backend ?? null;
  }

  get held(): ReadonlyMap<string, { readonly backend: ModelBackend }> {
    return this.#held;
  }

  /**
   * Loads a model, or finds its server.
   *
   * @returns what puts it in the place of the one before; without that, what was begun is ended by `discard`
   * @throws LlmError; the signal's reason
   */
  async tryOut(modelId: string, settings: ServeSettings, signal: AbortSignal) {
    const servable = await this.#servable(modelId);
    const madeOf = textOf(servable, settings);
    const held = this.#held.get(modelId);
    const isKnown = held?.madeOf === madeOf;
    const backend = isKnown ? held.backend : this.#make(servable, settings);
    try {
      await backend.check(signal);
    } catch (error) {
      if (!isKnown) await backend.close();
      throw error;
    }
    return {
      keep: () => void (isKnown || this.#hold(modelId, { madeOf, backend })),
    };
  }

  /** Ends what answers for a model; requests under way fail. */
  drop(modelId: string): void {
    const held = this.#held.get(modelId);
    if (held === undefined) return;
    this.#held.delete(modelId);
    this.#end(held.backend);
  }

  #end(backend: ModelBackend): void {
    const ending = backend.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const modelId of [...this.#held.keys()]) this.drop(modelId);
    await Promise.all(this.#ending);
  }

  #hold(modelId: string, held: Held): ModelBackend {
    const before = this.#held.get(modelId)?.backend;
    this.#held.set(modelId, held);
    if (before !== undefined) void before.queue.idle().then(() => this.#end(before));
    return held.backend;
  }

  #make(servable: Servable, settings: ServeSettings): ModelBackend {
    if (this.#isClosed)
      throw new LlmError(503, "shutting_down", "The program is shutting down. Try again in a moment.");
    if (servable.kind === "endpoint") return new EndpointBackend(servable, settings);
    const { startDaemon, folder, clock, log } = this.#parts;
    const given = Object.entries(this.#parts.environment).filter(
      (one): one is [string, string] => one[1] !== undefined && PASSED.test(one[0]),
    );
    return new ProcessBackend(servable, settings, {
      ...{ startDaemon, folder, clock, log },
      environment: Object.fromEntries(given),
    });
  }

  async #servable(modelId: string): Promise<Servable> {
    const servable = await this.#parts.servables.find(modelId);
    if (servable !== null) return servable;
    throw new LlmError(
      404,
      "model_not_installed",
      `Model "${modelId}" is not installed on this machine, or not registered. Install it: troupe models install ${modelId}.`,
      { param: "model" },
    );
  }
}

const textOf = (servable: Servable, settings: ServeSettings) => JSON.stringify([servable, settings]);
