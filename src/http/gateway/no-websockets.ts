// The API had WebSocket routes once; server-sent events have replaced them. A handshake, on whatever path, is told so:
// a client that were answered as if it had not asked would wait for frames that never come.

import type { FastifyInstance } from "fastify";
import { Problem } from "../core/problem.ts";

/** To be called after the conventions: who may not call at all is told that first. */
export function refuseWebSockets(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const { upgrade } = request.raw.headers;
    if (upgrade === undefined || upgrade.toLowerCase() !== "websocket") done();
    else done(noWebSockets());
  });
}

function noWebSockets(): Problem {
  return new Problem(
    "not_found",
    "There are no WebSockets here. Follow a run with server-sent events: GET /api/v1/runs/{run_id}/events/stream.",
  );
}
