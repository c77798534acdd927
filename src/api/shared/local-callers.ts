// A loopback API without a password must not be driven by a web page that the user happens to visit: the page's
// browser sits on loopback too. Two headers tell: Host (DNS rebinding) and Origin (cross-site requests).

import type { FastifyInstance } from "fastify";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|[a-z0-9-]+\.localhost)(:\d+)?$/i;

/** Whether a Host header names this machine by a name that no web site can have. */
export const isLoopbackHost = (host: string) => LOOPBACK_HOST.test(host);

export function refuseForeignCallers(app: FastifyInstance): void {
  // Callbacks, not promises: these two run for every request.
  app.addHook("onRequest", (request, reply, done) => {
    const { host, origin } = request.headers;
    const problem = problemOf(host, origin);
    if (problem === null) done();
    else reply.code(403).send({ error: problem });
  });
}

function problemOf(host: string | undefined, origin: string | undefined): string | null {
  if (host !== undefined && !isLoopbackHost(host)) {
    return "This API answers only to loopback host names, such as 127.0.0.1";
  }
  if (origin !== undefined && origin !== `http://${host}`)
    return "This API does not answer to other web sites";
  return null;
}
