// Answers to requests whose body is refused before it has come.
//
// - The answer is sent at once; nothing waits for a client that expects 100 Continue.
// - The rest of the body is read before the connection is closed: with bytes unread, the client would see a reset
//   connection instead of the answer.

import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";

/** How much of a refused body is read and discarded before the connection is closed. */
const REST_BYTES_MAX = 64 * 1024 * 1024;
/** How long the body may pause. */
const REST_SILENCE_MS = 5_000;

/** Sends an answer whose status and type are set, and only then reads the rest of the request. */
export function sendBeforeRest(reply: FastifyReply, body: Buffer): void {
  const { raw } = reply.request;
  if (raw.complete || raw.destroyed) reply.send(body);
  else {
    reply.headers({ "content-length": body.length, connection: "close" });
    reply.send(Readable.from(bodyThenRest(body, raw)));
  }
}

/** The client has the whole answer with the first chunk; for this server it ends with the request. */
async function* bodyThenRest(body: Buffer, request: IncomingMessage): AsyncGenerator<Buffer> {
  yield body;
  await restOf(request);
}

function restOf(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const silence = setTimeout(resolve, REST_SILENCE_MS);
    let left = REST_BYTES_MAX;
    request.on("data", (chunk: Buffer) => {
      silence.refresh();
      left -= chunk.length;
      if (left <= 0) resolve();
    });
    for (const end of ["end", "close", "error"]) request.once(end, () => resolve());
    request.unpipe();
    request.resume();
  });
}

/** Answers `Expect: 100-continue` once the request's head has been accepted. */
export function continueWhenAllowed(app: FastifyInstance): void {
  app.server.on("checkContinue", (request, response) => {
    // A refused client may or may not send its body, so that the next bytes on the connection are ambiguous.
    response.setHeader("connection", "close");
    app.server.emit("request", request, response);
  });
  app.addHook("preParsing", ({ raw, routeOptions }, reply, _payload, done) => {
    const { expect, "content-length": length } = raw.headers;
    const isTooLarge = Number(length ?? 0) > (routeOptions.bodyLimit ?? Number.POSITIVE_INFINITY);
    const isUpload = raw.headers["content-type"]?.startsWith("multipart/") === true;
    if (/^100-continue$/i.test(expect ?? "") && (isUpload || !isTooLarge)) reply.raw.writeContinue();
    done();
  });
}

/** How much larger than its file a form may be. */
const FORM_BYTES_MAX = 64 * 1024;

/** Refuses requests whose Content-Length is over the limit of uploads; for the routes of one scope. */
export function limitUploads(scope: FastifyInstance, bytesMax: number, tooLarge: () => Error): void {
  scope.addHook("onRequest", (request, _reply, done) => {
    const isTooLarge = Number(request.headers["content-length"] ?? 0) > bytesMax + FORM_BYTES_MAX;
    done(isTooLarge ? tooLarge() : undefined);
  });
}
