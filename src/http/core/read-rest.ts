// Answers to requests whose body is refused before it has come.
//
// B1. The answer is sent at once, whatever the client does: one that waits to be told to go on is not waited for.
// B2. What a client is still sending is read before the connection is closed: closed with bytes unread, the client would
//     see a broken pipe instead of the answer.

import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";

/** What is read, and thrown away, of a body that was refused before the connection is closed. */
const REST_BYTES_MAX = 64 * 1024 * 1024;
/** How long nothing may come of it. */
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

/** The answer is whole for its client with the first chunk, and ends for this server with the request. */
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

/** Lets a client that asks first (`Expect: 100-continue`) send its body when the request's head allows it, and not before. */
export function continueWhenAllowed(app: FastifyInstance): void {
  app.server.on("checkContinue", (request, response) => {
    // A client that was refused may or may not send its body: what comes next on the connection is not known.
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

/** What a form with one file in it may be larger than the file. */
const FORM_BYTES_MAX = 64 * 1024;

/** Refuses what says of itself that it is larger than an upload may be; for the routes of one scope. */
export function limitUploads(scope: FastifyInstance, bytesMax: number, tooLarge: () => Error): void {
  scope.addHook("onRequest", (request, _reply, done) => {
    const isTooLarge = Number(request.headers["content-length"] ?? 0) > bytesMax + FORM_BYTES_MAX;
    done(isTooLarge ? tooLarge() : undefined);
  });
}
