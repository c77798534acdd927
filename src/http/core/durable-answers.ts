// What an answer may tell: a read what is committed, everything else only what is on disk. A refusal tells what was read
// too, such as that a run has ended.

import type { FastifyInstance } from "fastify";

/**
 * Sends the answers of all routes but reads once everything that is committed by then is on disk.
 *
 * @param durable resolves when it is; when it fails, the error is the answer
 */
export function answerWhenDurable(app: FastifyInstance, durable: () => Promise<void>): void {
  app.addHook("onSend", ({ method }, { statusCode }, payload, done) => {
    const isRead = method === "GET" || method === "HEAD";
    if (isRead || statusCode >= 500) done(null, payload);
    else durable().then(() => done(null, payload), done);
  });
}
