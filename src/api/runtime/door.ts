// Who may talk to the runtime API, which runs commands: callers by a name of this server, and no page of another site.

import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { hasTwoHosts, isUnsafe, OriginPolicy } from "../shared/origin-policy.ts";

export interface DoorSettings {
  readonly boundHost: string;
  readonly allowedHosts: readonly string[];
}

/** To be called before anything else that looks at requests. */
export function guardDoor(app: FastifyInstance, settings: DoorSettings): void {
  const policy = new OriginPolicy({ ...settings, hasToken: false, corsOrigins: [] });
  const refuse = (request: IncomingMessage) =>
    policy.refuseHost(request) ??
    (isUnsafe(request.method ?? "") || request.headers.origin !== undefined
      ? policy.refuseChange(request)
      : policy.refuseRead(request));
  // A callback, not a promise: this runs for every request.
  app.addHook("onRequest", (request, reply, done) => {
    if (hasTwoHosts(request.raw)) {
      reply.code(400).send({ error: "The request has more than one Host header; send one" });
      return;
    }
    const problem = refuse(request.raw);
    if (problem === null) done();
    else reply.code(problem.status).send({ error: problem.message });
  });
}
