// How long a host may run the attempts of one owner: for `validMs` after it sent the last ping that was answered, or after
// the first hello came. It is over before the owner's own lease. STOP_BEFORE_MS earlier the host begins to end the attempts,
// so that none is left when the owner takes them for ended.

import type { Clock } from "../../engine/ports.ts";

/** The grace that a command gets (host.ts), and what it takes to end what does not end by itself. */
const STOP_BEFORE_MS = 3_000;
const PINGS_PER_LEASE = 10;

export interface TaskLeaseParts {
  readonly leaseMs: number;
  readonly clock: Clock;
  /** Time for the next ping. */
  readonly onBeat: () => void;
  /** The attempts are to be ended. */
  readonly onOver: () => void;
}

export class TaskLease {
  readonly #parts: TaskLeaseParts;
  #validUntilMs: number;
  #pings = 0;
  /** When the pings that were not answered were sent. */
  readonly #sentMs = new Map<number, number>();
  #cancelBeat = () => {};

  /** @param validUntilMs by the steady clock, until a ping is answered */
  constructor(validUntilMs: number, parts: TaskLeaseParts) {
    this.#validUntilMs = validUntilMs;
    this.#parts = parts;
    this.#beatLater();
  }

  /** @returns the number of a ping that is sent now */
  ping(): number {
    const ping = ++this.#pings;
    this.#sentMs.set(ping, this.#parts.clock.steadyMs());
    return ping;
  }

  answered(ping: number, validMs: number): void {
    const sentMs = this.#sentMs.get(ping);
    if (sentMs === undefined) return;
    for (const earlier of this.#sentMs.keys()) if (earlier <= ping) this.#sentMs.delete(earlier);
    const untilMs = sentMs + validMs;
    const isSooner = untilMs < this.#validUntilMs;
    this.#validUntilMs = untilMs;
    if (!isSooner) return;
    // The hello, or an answer, was long on its way.
    this.#cancelBeat();
    this.#beatLater();
  }

  /** Nothing is called any more. */
  end(): void {
    this.#cancelBeat();
  }

  #beatLater(): void {
    const { clock, leaseMs, onBeat, onOver } = this.#parts;
    const leftMs = this.#validUntilMs - STOP_BEFORE_MS - clock.steadyMs();
    this.#cancelBeat = clock.after(Math.min(leftMs, leaseMs / PINGS_PER_LEASE), () => {
      if (clock.steadyMs() >= this.#validUntilMs - STOP_BEFORE_MS) {
        onOver();
        return;
      }
      onBeat();
      this.#beatLater();
    });
  }
}
