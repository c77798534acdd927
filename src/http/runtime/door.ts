// Access control of the runtime API, which runs commands: by its token if it has one, else by the host name. Pages of other
// sites and health checks of services change nothing.

import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { hasTwoHosts, isUnsafe, OriginPolicy } from "../core/origin-policy.ts";
import { tokenCheck } from "../core/token-check.ts";

export interface DoorSettings {
  readonly boundHost: string;
  readonly allowedHosts: readonly string[];
  /** Empty: no authentication. */
  readonly tokens: readonly string[];
}

/** For health checks. */
const OPEN_PATH = "/api/v1/health";

/** To be called before any other hook. */
export function guardDoor(app: FastifyInstance, settings: DoorSettings): void {
  const hasToken = settings.tokens.length > 0;
  const policy = new OriginPolicy({ ...settings, hasToken, corsOrigins: [] });
  const isToken = tokenCheck(settings.tokens);
  const isAdmitted = ({ headers, method, url }: IncomingMessage) =>
    !hasToken ||
    isToken(/^bearer +(.*)$/i.exec(headers.authorization ?? "")?.[1]?.trim() ?? "") ||
    (method === "GET" && url === OPEN_PATH);
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
    if (problem !== null) reply.code(problem.status).send({ error: problem.message });
    else if (isAdmitted(request.raw)) done();
    else {
      const error =
        "This API wants its token; send the header Authorization: Bearer and the value of SVC_RUNTIME_API_TOKEN";
      reply.code(401).header("www-authenticate", "Bearer").send({ error });
    }
  });
}
