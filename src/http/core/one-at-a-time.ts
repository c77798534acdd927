// Handles the pipelined requests of a connection one after the other. Node would handle all of them at once and buffer
// every answer, so that a few kilobytes of requests for large pages would fill the memory.

import type { FastifyInstance } from "fastify";

/** To be called before any other hook: a request that waits must not have passed one. */
export function answerOneAtATime(app: FastifyInstance): void {
  app.addHook("onRequest", (_request, { raw }, done) => {
    // A response gets its socket once those before it have been sent; never when the client has left, and then it is
    // collected with its request.
    if (raw.socket === null) raw.once("socket", () => done());
    else done();
  });
}
