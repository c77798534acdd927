// Named pipes for workers' output, made in batches.
//
// Node gives a child socket pairs for its pipes, and on Linux /dev/stdout or /dev/fd/N cannot be opened again on a
// socket. Real pipes can, and Node has no call to make one: mkfifo(1) makes a batch, long before it is used up.
//
// Q1. A pipe is handed out once, and is unlinked or moved by who takes it.
// Q2. At most two batches exist; litter of a crash is removed when the supply is opened.

import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";

const BATCH = 96;
const REFILL_BELOW = 48;

export class FifoSupply {
  readonly #folder: string;
  readonly #ready: string[] = [];
  #seq = 0;
  #refilling: Promise<void> | null = null;

  /** @param folder its own folder, emptied at once */
  constructor(folder: string) {
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** @returns the paths of `count` pipes, at most 8, that nobody else has */
  async take(count: number): Promise<string[]> {
    while (this.#ready.length < count) await this.#refill();
    const taken = this.#ready.splice(-count);
    // A refill that fails now is tried again, and reported, by whom it keeps waiting.
    if (this.#ready.length < REFILL_BELOW) this.#refill().catch(() => {});
    return taken;
  }

  /** Removes what is left. Pipes in use are not affected. */
  async close(): Promise<void> {
    await this.#refilling?.catch(() => {});
    this.#ready.length = 0;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #refill(): Promise<void> {
    this.#refilling ??= this.#makeBatch().finally(() => {
      this.#refilling = null;
    });
    return this.#refilling;
  }

  async #makeBatch(): Promise<void> {
    const paths = Array.from({ length: BATCH }, () => join(this.#folder, String(++this.#seq)));
    await new Promise<void>((resolve, reject) => {
      const child = spawn("mkfifo", ["-m", "600", "--", ...paths], { stdio: ["ignore", "ignore", "pipe"] });
      let said = "";
      child.stderr.on("data", (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(0, 500);
      });
      child.on("error", (error) => reject(new Error(`mkfifo could not be started: ${error.message}`)));
      child.on("close", (code) => {
        if (code === 0) resolve();
        else reject(new Error(`mkfifo failed in ${this.#folder} with exit code ${code}: ${said.trim()}`));
      });
    });
    this.#ready.push(...paths);
  }
}

/** Both ends of a pipe, as file descriptors. */
export interface PipeEnds {
  readonly readFd: number;
  readonly writeFd: number;
}

/** Opens both ends. The read end does not block; the write end does, as a worker expects of its stdout. */
export function openPipe(path: string): PipeEnds {
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    return { readFd, writeFd: openSync(path, constants.O_WRONLY) };
  } catch (error) {
    closeSync(readFd);
    throw error;
  }
}
