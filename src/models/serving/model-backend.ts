// What answers for one model that is served: a process of its own, or a server elsewhere; behind a queue.

import { RequestQueue } from "./request-queue.ts";
import type { Servable } from "./servable.ts";
import { probe, type Target } from "./upstream.ts";

/** How a model is served. What is null is chosen by what it is. */
export interface ServeSettings {
  /** Tokens of a request and its answer. */
  readonly context: number | null;
  /** Requests that are answered at the same time. */
  readonly concurrency: number | null;
  /** Further requests that wait. */
  readonly queue: number;
  /** After so long without a request its process ends, until the next one; 0: never. */
  readonly idleUnloadSeconds: number;
  /** Whether it makes embeddings, and nothing else. */
  readonly embeddings: boolean;
}

export const defaultSettings: ServeSettings = {
  context: null,
  concurrency: null,
  queue: 64,
  idleUnloadSeconds: 300,
  embeddings: false,
};

/** A process computes one answer after the other as fast as several at once; a server elsewhere has room for some. */
export const concurrencyOf = (servable: Servable, { concurrency }: ServeSettings): number =>
  concurrency ?? (servable.kind === "file" ? 1 : 8);

export interface ModelBackend {
  /** Waits for a turn. @returns what ends it. @throws LlmError `queue_full`; the signal's reason */
  enter(signal: AbortSignal): Promise<() => void>;
  /** Where it answers, once it does. @throws LlmError; the signal's reason */
  target(signal: AbortSignal): Promise<Target>;
  /** `unloaded`, `loading`, `ready`; null where there is nothing to load. */
  readonly state: "unloaded" | "loading" | "ready" | null;
  readonly queue: Pick<RequestQueue, "running" | "waiting" | "idle">;
  /** Finds out whether it answers. @throws LlmError that says why not; the signal's reason */
  check(signal: AbortSignal): Promise<void>;
  /** Gives up what it has; requests under way fail. */
  close(): Promise<void>;
}

type Endpoint = Extract<Servable, { readonly kind: "endpoint" }>;

export class EndpointBackend implements ModelBackend {
  readonly state = null;
  readonly queue: RequestQueue;
  readonly #modelId: string;
  readonly #target: Target;

  constructor(servable: Endpoint, settings: ServeSettings) {
    const { modelId, baseUrl, model, apiKey } = servable;
    this.queue = new RequestQueue(modelId, concurrencyOf(servable, settings), settings.queue);
    this.#modelId = modelId;
    this.#target = { baseUrl: baseUrl.replace(/\/+$/, ""), model, apiKey };
  }

  enter(signal: AbortSignal): Promise<() => void> {
    return this.queue.enter(signal);
  }

  async target(): Promise<Target> {
    return this.#target;
  }

  check(signal: AbortSignal): Promise<void> {
    return probe(this.#modelId, this.#target, signal);
  }

  async close(): Promise<void> {}
}
