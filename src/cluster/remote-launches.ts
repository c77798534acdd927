// Runs that were given to other nodes when they were written: tells these nodes, so that they launch them at once.
//
// - Nothing depends on it: each node looks for runs of its own again and again (operations/takeover.ts).
// - A node that does not answer is told again after a second, while it is alive.

import type { Clock, EngineLog } from "../engine/ports.ts";
import { type Peers, PeerUnreachable } from "./wire/peers.ts";

/** Of one request. */
export const LAUNCHES_MAX = 1_000;
const CALL_MS = 3_000;
const AGAIN_MS = 1_000;

export interface RemoteLaunchesParts {
  readonly peers: Pick<Peers, "call">;
  /** Of a node by its owner; null when it is not alive, or cannot be reached. */
  readonly addressOf: (owner: string) => string | null;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}

export class RemoteLaunches {
  readonly #parts: RemoteLaunchesParts;
  /** By owner, those that it is still to be told of; an owner is here while it is being told. */
  readonly #untold = new Map<string, Set<string>>();
  #isStopped = false;

  constructor(parts: RemoteLaunchesParts) {
    this.#parts = parts;
  }

  tell(owner: string, runId: string): void {
    const runIds = this.#untold.get(owner);
    if (runIds !== undefined) {
      // More than are told at once are found.
      if (runIds.size < LAUNCHES_MAX) runIds.add(runId);
      return;
    }
    this.#untold.set(owner, new Set([runId]));
    void this.#tellAll(owner);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #tellAll(owner: string): Promise<void> {
    const { peers, addressOf, clock, log } = this.#parts;
    for (let runIds = this.#untold.get(owner); runIds !== undefined && runIds.size > 0; ) {
      const address = addressOf(owner);
      if (address === null || this.#isStopped) break;
      const told = [...runIds];
      try {
        await peers.call(address, (client) => client.launch({ runIds: told }, { timeoutMs: CALL_MS }));
        for (const runId of told) runIds.delete(runId);
      } catch (error) {
        if (!(error instanceof PeerUnreachable)) throw error;
        log.warn({ address, error: error.message }, "A node could not be told of runs that it is to launch.");
        await new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
      }
    }
    this.#untold.delete(owner);
  }
}
