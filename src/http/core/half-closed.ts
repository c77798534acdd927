// Clients that close their half of a connection once their request is sent. They are answered: Node would close the
// other half at once, and an answer that waits for the disk would be lost. Waits and streams end instead: a client that
// leaves closes its half as well, and nothing else would tell.

import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";

/** Answers what a client has sent before it closed its half. */
export function answerHalfClosed(app: FastifyInstance): void {
  // Not in Node's documentation: without it the server ends a connection as soon as the client has ended its half.
  Object.assign(app.server, { httpAllowHalfOpen: true });
}

/** Ends a response that takes long when its client closes its half of the connection. */
export function endWithClient(response: ServerResponse): void {
  const { socket } = response;
  if (socket === null) return;
  const leave = () => response.destroy();
  if (socket.readableEnded) leave();
  socket.once("end", leave);
  response.once("close", () => socket.off("end", leave));
}
