// What reaches a worker that runs: messages as lines on its stdin, and the answers of people in a file. Both also take
// what comes before the worker has started.
//
// - An answer that cannot be written is reported, never thrown: the caller can do nothing about it.
// - Whatever the command made of its file or of the folders above, writing to it does not wait and does not follow it
//   elsewhere: neither through a symlink, nor into a file that has another name as well.

import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import { limits } from "../../engine/limits.ts";
import { openBelow } from "./paths.ts";
import type { WorkerProcess } from "./worker-process.ts";

/**
 * What may be unread, in characters before the worker runs and in bytes afterwards: more than may wait in a whole
 * job, because a worker that gets its slots late is sent its whole mailbox at once.
 */
const UNREAD_MAX = limits.waitingCharsMax + 8 * limits.messageBodyBytesMax;

/** The stdin of a long-lived worker: messages as lines, in order. */
export class WorkerInput {
  #worker: WorkerProcess | null = null;
  #early: string[] = [];
  #earlyChars = 0;

  /** @returns false when too much of what was sent before is still unread; the line is then lost */
  send(line: string): boolean {
    if (this.#worker !== null) {
      if (this.#worker.unreadBytes > UNREAD_MAX) return false;
      this.#worker.writeLine(line);
      return true;
    }
    if (this.#earlyChars + line.length > UNREAD_MAX) return false;
    this.#early.push(line);
    this.#earlyChars += line.length;
    return true;
  }

  connect(worker: WorkerProcess): void {
    for (const line of this.#early) worker.writeLine(line);
    this.#early = [];
    this.#worker = worker;
  }
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;

/** The file from which a running command reads the answers of people: a line of JSON is added with each of them. */
export class ResponseFile {
  readonly #failed: (error: unknown) => void;
  #place: { readonly home: string; readonly path: string } | null = null;
  #early: string[] = [];
  #isOpen = true;

  /** @param failed told what went wrong; once, and nothing is written afterwards */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  /**
   * From now on the file is there, with the answers of earlier attempts.
   *
   * @param home SVC_HOME, which `path` is below
   */
  connect(home: string, path: string): void {
    this.#place = { home, path };
    const early = this.#early;
    this.#early = [];
    for (const line of early) this.add(line);
  }

  /** Adds an answer; one that comes before the file is there waits for it. */
  add(line: string): void {
    if (!this.#isOpen) return;
    if (this.#place === null) {
      this.#early.push(line);
      return;
    }
    try {
      append(this.#place.home, this.#place.path, `${line}\n`);
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

function append(home: string, path: string, text: string): void {
  using folder = openBelow(home, dirname(path));
  const file = openSync(folder.path(basename(path)), FLAGS, 0o600);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error(`${path} is no regular file any more.`);
    if (found.nlink > 1) throw new Error(`${path} has another name as well.`);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}
