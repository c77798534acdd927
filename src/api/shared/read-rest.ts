// What a client is still sending when its request has been refused.

import type { IncomingMessage } from "node:http";

/** What is read, and thrown away, of a body that was refused before the connection is closed. */
const REST_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Reads the rest of a request's body and throws it away. A client that is still sending when its connection is closed
 * sees a broken pipe instead of the answer.
 */
export function readRest(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let left = REST_BYTES_MAX;
    request.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left <= 0) resolve();
    });
    for (const end of ["end", "close", "error"]) request.once(end, () => resolve());
    request.unpipe();
    request.resume();
  });
}
