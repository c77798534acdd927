// Ports that are chosen for commands: no other command's, and free on the machine at that moment.
//
// - They come from a range out of which Linux gives none to connections, one after the other, so that a port is not given
//   again soon.
// - A program that has nothing to do with this one may take a port between the choice and the command's start. Then the command
//   fails, and its next attempt has another port.

import { createServer } from "node:net";

const FIRST = 20_000;
const LAST = 31_999;
export const FREE_PORTS_MAX = LAST - FIRST + 1;
/** Ports of other programs that are met with before one is given that may be another's. */
const TAKEN_MAX = 256;

export const isInRange = (port: number): boolean => port >= FIRST && port <= LAST;

export class FreePorts {
  readonly #isFree: (port: number) => boolean;
  #next: number;

  /**
   * @param fraction where in the range the first one is looked for, from 0 to 1: programs on one machine begin at different ones
   * @param isFree whether nobody listens there
   */
  constructor(fraction: number, isFree: (port: number) => boolean) {
    this.#isFree = isFree;
    this.#next = Math.floor(fraction * FREE_PORTS_MAX) % FREE_PORTS_MAX;
  }

  /** @param isHeld whether a command has it; not all of the range are held */
  choose(isHeld: (port: number) => boolean): number {
    let taken = 0;
    for (let looks = 0; looks < 2 * FREE_PORTS_MAX; looks++) {
      const port = FIRST + this.#next;
      this.#next = (this.#next + 1) % FREE_PORTS_MAX;
      if (isHeld(port)) continue;
      if (taken >= TAKEN_MAX || looks >= FREE_PORTS_MAX || this.#isFree(port)) return port;
      taken++;
    }
    throw new Error("A port was to be chosen, and all are held.");
  }
}

/** Whether this program could listen there, on all addresses. Without a host, Node has tried when `listen` returns. */
export function isPortFree(port: number): boolean {
  const server = createServer();
  server.on("error", () => {});
  server.listen({ port, exclusive: true });
  const isFree = server.listening;
  server.close();
  return isFree;
}
