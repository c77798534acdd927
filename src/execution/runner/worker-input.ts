// The stdin of a long-lived worker: messages as lines, in order, also those sent before it has started.

import { limits } from "../../engine/limits.ts";
import type { WorkerProcess } from "./worker-process.ts";

/**
 * What may be unread, in characters before the worker runs and in bytes afterwards: more than may wait in a whole
 * job, because a worker that gets its slots late is sent its whole mailbox at once.
 */
const UNREAD_MAX = limits.waitingCharsMax + 8 * limits.messageBodyBytesMax;

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
