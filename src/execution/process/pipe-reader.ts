// Reads one pipe of a worker to its end, no faster than its output can be taken on.
//
// A1. While the listener asks for patience nothing is read, so a fast writer blocks instead of filling memory.
// A2. After `finish` it ends soon, whatever happens: a pipe that somebody still holds open is given up.

import { Socket } from "node:net";
import type { Clock } from "../../engine/ports.ts";

/** What a pipe may still hold when its writer has ended: the most that Linux lets a user ask for. */
const LEFT_BYTES_MAX = 1024 * 1024;
const IDLE_MS = 100;

export interface PipeReaderOptions {
  readonly fd: number;
  readonly clock: Clock;
  readonly sink: (chunk: Buffer) => void;
  /** Null while there is room; otherwise what to wait for before reading on. */
  readonly backpressure: () => Promise<void> | null;
}

export class PipeReader {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #closed: Promise<void>;
  #waiting = false;
  #chunks = 0;
  /** Bytes that may still come; unlimited before `finish`. */
  #leftBytes = Number.POSITIVE_INFINITY;

  constructor({ fd, clock, sink, backpressure }: PipeReaderOptions) {
    this.#clock = clock;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#closed = new Promise((resolve) => this.#socket.once("close", () => resolve()));
    this.#socket.on("error", () => this.#socket.destroy());
    this.#socket.on("data", (chunk: Buffer) => {
      this.#chunks++;
      this.#leftBytes -= chunk.length;
      sink(chunk);
      if (this.#leftBytes < 0) this.#socket.destroy();
      else this.#waitFor(backpressure());
    });
  }

  /**
   * The worker has ended: reads what is left.
   *
   * @param onHeld called once, when the pipe stays open though nothing comes: a process still holds it
   */
  async finish(onHeld: () => Promise<void>): Promise<void> {
    this.#leftBytes = LEFT_BYTES_MAX;
    let closed = false;
    const done = this.#closed.then(() => {
      closed = true;
    });
    for (let idleTurns = 0; !closed; ) {
      const chunks = this.#chunks;
      await this.#closedOrAfter(done, IDLE_MS);
      if (closed || this.#waiting || chunks !== this.#chunks) continue;
      idleTurns++;
      if (idleTurns === 1) await onHeld();
      else this.#socket.destroy();
    }
  }

  async #closedOrAfter(closed: Promise<void>, delayMs: number): Promise<void> {
    let cancel = () => {};
    const delay = new Promise<void>((resolve) => {
      cancel = this.#clock.after(delayMs, resolve);
    });
    await Promise.race([closed, delay]);
    cancel();
  }

  #waitFor(room: Promise<void> | null): void {
    if (room === null || this.#waiting) return;
    this.#waiting = true;
    this.#socket.pause();
    const goOn = () => {
      this.#waiting = false;
      this.#socket.resume();
    };
    room.then(goOn, goOn);
  }
}
