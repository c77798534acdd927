// The pipes of workers: named ones made in batches, their ends, and the reading of one to its end.
//
// Node gives a child socket pairs for its pipes, and on Linux /dev/stdout or /dev/fd/N cannot be opened again on a
// socket. Real pipes can, and Node has no call to make one: mkfifo(1) makes a batch, long before it is used up.
//
// - A pipe is one command's at a time. Who takes it moves it, or gives it back.
// - At most two batches are made in advance; what a crash has left is removed when the supply is opened.
// - Every supply has a folder of its own: an mkfifo that a killed runtime has left may still be at work in another.

import { execFile } from "node:child_process";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  unlinkSync,
} from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { scheduler } from "node:timers/promises";
import { promisify } from "node:util";
import type { Clock } from "../../engine/ports.ts";

/** The first command waits for the first batch; making one costs a fork, so the later ones are larger. */
const FIRST_BATCH = 48;
const BATCH = 384;
const REFILL_BELOW = 48;
const READY_MAX = 2 * BATCH;
const STDERR_CHARS_MAX = 500;

export class FifoSupply {
  readonly #root: string;
  readonly #folder: string;
  readonly #ready: string[] = [];
  #seq = 0;
  #refilling: Promise<void> | null = null;

  /** @param root a folder that only one runtime may use; what it holds is removed at once */
  constructor(root: string) {
    this.#root = root;
    mkdirSync(root, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(root)) removeFolder(join(root, name));
    this.#folder = mkdtempSync(`${root}/`);
  }

  /** @returns the paths of `count` pipes, at most 8, that nobody else has */
  async take(count: number): Promise<string[]> {
    while (this.#ready.length < count) await this.#refill();
    const taken = this.#ready.splice(-count);
    // A refill that fails now is tried again, and reported, by whom it keeps waiting.
    if (this.#ready.length < REFILL_BELOW) this.#refill().catch(() => {});
    return taken;
  }

  /** Takes a pipe back. @param isClosed whether surely no process has it open, so that it may be used again */
  giveBack(path: string, isClosed: boolean): void {
    try {
      const isUsable = isClosed && this.#ready.length < READY_MAX;
      const found = isUsable ? lstatSync(path) : null;
      if (found?.isFIFO() && found.nlink === 1) this.#ready.push(path);
      else unlinkSync(path);
    } catch {
      // The worker has removed it.
    }
  }

  /** Removes what is left. Pipes in use are not affected. */
  async close(): Promise<void> {
    await this.#refilling?.catch(() => {});
    this.#ready.length = 0;
    removeFolder(this.#root);
  }

  #refill(): Promise<void> {
    this.#refilling ??= this.#makeBatch().finally(() => {
      this.#refilling = null;
    });
    return this.#refilling;
  }

  async #makeBatch(): Promise<void> {
    const paths = Array.from({ length: this.#seq === 0 ? FIRST_BATCH : BATCH }, () =>
      join(this.#folder, String(++this.#seq)),
    );
    try {
      await promisify(execFile)("mkfifo", ["-m", "600", "--", ...paths]);
    } catch (error) {
      const { code, stderr = "" } = error as Error & { code?: unknown; stderr?: string };
      const printed = stderr.trim().slice(0, STDERR_CHARS_MAX);
      throw new Error(`mkfifo failed in ${this.#folder} with exit code ${code}: ${printed}`);
    }
    this.#ready.push(...paths);
  }
}

function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Somebody still writes to it. The next start finds it again.
  }
}

/** Both ends of a pipe, as file descriptors. */
export interface PipeEnds {
  readonly readFd: number;
  readonly writeFd: number;
}

/** Opens the end that reads, without waiting for anybody to write. */
export function openReadEnd(path: string): number {
  return openEnd(path, constants.O_RDONLY);
}

/** Opens both ends, without waiting for anybody. */
export function openPipe(path: string): PipeEnds {
  const readFd = openReadEnd(path);
  try {
    return { readFd, writeFd: openEnd(path, constants.O_WRONLY) };
  } catch (error) {
    closeSync(readFd);
    throw error;
  }
}

/**
 * Opens one end of a pipe. It never blocks, whatever has been put in the pipe's place.
 *
 * @throws when that is no pipe
 */
export function openEnd(path: string, access: number): number {
  const fd = openSync(path, access | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if (fstatSync(fd).isFIFO()) return fd;
  closeSync(fd);
  throw new Error(`${path} is no pipe any more.`);
}

/** What a pipe may still hold when its writer has ended: the most that Linux lets a user ask for. */
const LEFT_BYTES_MAX = 1024 * 1024;
const IDLE_MS = 100;

export type PipeSink = (chunk: Buffer) => void;

/** Null while there is room; otherwise what to wait for before reading on. */
type Backpressure = () => Promise<void> | null;

/**
 * Reads one pipe, no faster than its output can be taken on.
 *
 * While the listener is busy nothing is read, so a fast writer blocks instead of filling memory. After
 * `finish` it ends soon, whatever happens: a pipe that another process still holds open is closed.
 */
export class PipeReader {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #closed: Promise<void>;
  #sink: PipeSink = () => {};
  #backpressure: Backpressure = () => null;
  /** What the listener waits for. */
  #room: Promise<void> | null = null;
  #isAtEnd = false;
  #chunks = 0;
  /** Bytes that may still come; unlimited before `finish`. */
  #leftBytes = Number.POSITIVE_INFINITY;

  /** @param fd a read end, which is closed with the reader */
  constructor(fd: number, clock: Clock) {
    this.#clock = clock;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#closed = new Promise((resolve) => this.#socket.once("close", () => resolve()));
    this.#socket.on("error", () => this.#socket.destroy());
    this.#socket.on("end", () => {
      this.#isAtEnd = true;
    });
    this.#socket.on("data", (chunk: Buffer) => {
      this.#chunks++;
      this.#leftBytes -= chunk.length;
      this.#sink(chunk);
      if (this.#leftBytes < 0) this.#socket.destroy();
      else this.#waitFor(this.#backpressure());
    });
  }

  /** Sets who gets what comes from now on. */
  listen(sink: PipeSink, backpressure: Backpressure): void {
    this.#sink = sink;
    this.#backpressure = backpressure;
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && !this.#isAtEnd;
  }

  /** Whether all was read, so that nobody has the pipe open for writing. */
  get isAtEnd(): boolean {
    return this.#isAtEnd;
  }

  close(): void {
    this.#socket.destroy();
  }

  /**
   * Reads what is in the pipe, into which nobody writes any more. The event loop looks at all pipes in each turn, but at
   * one that was just opened, or was not read for a while, from the next turn on.
   */
  async drain(): Promise<void> {
    for (let chunks = -1; chunks !== this.#chunks; ) {
      chunks = this.#chunks;
      await this.#room;
      await scheduler.yield();
      await scheduler.yield();
    }
  }

  /**
   * The worker has ended: reads what is left.
   *
   * @param onHeld called once, when the pipe stays open though nothing comes: a process still holds it
   */
  async finish(onHeld: () => Promise<unknown>): Promise<void> {
    this.#leftBytes = LEFT_BYTES_MAX;
    let closed = false;
    const done = this.#closed.then(() => {
      closed = true;
    });
    for (let idleTurns = 0; !closed; ) {
      const chunks = this.#chunks;
      await this.#closedOrAfter(done, IDLE_MS);
      if (closed || this.#room !== null || chunks !== this.#chunks) continue;
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
    if (room === null || this.#room !== null) return;
    this.#socket.pause();
    const goOn = () => {
      this.#room = null;
      this.#socket.resume();
    };
    this.#room = room.then(goOn, goOn);
  }
}
