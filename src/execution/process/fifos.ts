// Named pipes for workers' output, made in batches.
//
// Node gives a child socket pairs for its pipes, and on Linux /dev/stdout or /dev/fd/N cannot be opened again on a
// socket. Real pipes can, and Node has no call to make one: mkfifo(1) makes a batch, long before it is used up.
//
// Q1. A pipe is handed out once, and is unlinked or moved by who takes it.
// Q2. At most two batches exist; litter of a crash is removed when the supply is opened.
// Q3. Every supply has a folder of its own: an mkfifo that a killed runtime has left may still be at work in another.

import { spawn } from "node:child_process";
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";

/** The first command waits for the first batch; making one costs a fork, so the later ones are larger. */
const FIRST_BATCH = 48;
const BATCH = 384;
const REFILL_BELOW = 48;

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

function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Somebody still writes to it (Q3). The next start finds it again.
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
