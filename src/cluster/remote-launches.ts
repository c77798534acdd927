// Runs that were given to other nodes when they were written: tells these nodes, so that they launch them at once.
//
// - Nothing depends on it: each node looks for runs of its own again and again (operations/takeover.ts).
// - A node that does not answer is told again after a second, for ten seconds: then it has looked itself.

import type { Clock, EngineLog } from "../engine/ports.ts";
import { type Peers, PeerUnreachable } from "./wire/peers.ts";

/** Of one request. */
export const LAUNCHES_MAX = 1_000;
const CALL_MS = 3_000;
const AGAIN_MS = 1_000;
const TRIES_MAX = 10;

export interface RemoteLaunchesParts {
  readonly peers: Pick<Peers, "call">;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}

export class RemoteLaunches {
  readonly #parts: RemoteLaunchesParts;
  /** By address, the runs that a node is still to be told of; it is here while it is being told. */
  readonly #untold = new Map<string, Set<string>>();
  #isStopped = false;

  constructor(parts: RemoteLaunchesParts) {
    this.#parts = parts;
  }

  /** @param address host:port of the node */
  tell(address: string, runId: string): void {
    const runIds = this.#untold.get(address);
    if (runIds !== undefined) {
      // More than are told at once are found.
      if (runIds.size < LAUNCHES_MAX) runIds.add(runId);
      return;
    }
    const untold = new Set([runId]);
    this.#untold.set(address, untold);
    void this.#tellAll(address, untold);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #tellAll(address: string, runIds: Set<string>): Promise<void> {
    const { peers, clock, log } = this.#parts;
    for (let tries = 0; runIds.size > 0 && tries < TRIES_MAX && !this.#isStopped; ) {
      const told = [...runIds];
      try {
        await peers.call(address, (client) => client.launch({ runIds: told }, { timeoutMs: CALL_MS }));
        for (const runId of told) runIds.delete(runId);
        tries = 0;
      } catch (error) {
        if (!(error instanceof PeerUnreachable)) throw error;
        tries++;
        log.warn({ address, error: error.message }, "A node could not be told of runs that it is to launch.");
        await new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
      }
    }
    this.#untold.delete(address);
  }
}
