// Requests of one connection, one after the other. A client may send many at once without waiting; what Node would do
// is to work on all of them and to hold every answer until the connection takes it, so that a few kilobytes of requests
// for large pages would fill the memory.

import type { FastifyInstance } from "fastify";

/** To be called before anything else that looks at requests: one that has to wait has not been there yet. */
export function answerOneAtATime(app: FastifyInstance): void {
  app.addHook("onRequest", (_request, { raw }, done) => {
    // An answer has its connection as soon as those before it have been taken. One whose client has left never gets it,
    // and is forgotten with its request.
    if (raw.socket === null) raw.once("socket", () => done());
    else done();
  });
}
