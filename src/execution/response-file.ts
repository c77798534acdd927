// The file from which a running command reads the answers of people: a line of JSON is added with each of them.
//
// F1. An answer that cannot be written is reported, never thrown: whoever hands it over has nothing to do with it.
// F2. Whatever the command made of its file, writing to it does not wait and does not follow it elsewhere.

import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;

export class ResponseFile {
  readonly #failed: (error: unknown) => void;
  #path: string | null = null;
  #early: string[] = [];
  #isOpen = true;

  /** @param failed told what went wrong; once, and nothing is written afterwards */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  /** From now on the file is there, with the answers of earlier attempts. */
  connect(path: string): void {
    this.#path = path;
    const early = this.#early;
    this.#early = [];
    for (const line of early) this.add(line);
  }

  /** Adds an answer; one that comes before the file is there waits for it. */
  add(line: string): void {
    if (!this.#isOpen) return;
    if (this.#path === null) {
      this.#early.push(line);
      return;
    }
    try {
      append(this.#path, `${line}\n`);
    } catch (error) {
      this.#isOpen = false;
      this.#failed(error);
    }
  }

  /** The command has ended; its file goes. */
  close(): void {
    this.#isOpen = false;
  }
}

function append(path: string, text: string): void {
  const file = openSync(path, FLAGS, 0o600);
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is no regular file any more.`);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}
