// A loopback API without a password must not be driven by a web page that the user happens to visit: the page's
// browser sits on loopback too. Two headers tell: Host (DNS rebinding) and Origin (cross-site requests).

import type { FastifyInstance } from "fastify";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|[a-z0-9-]+\.localhost)(:\d+)?$/i;

export function refuseForeignCallers(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    const { host, origin } = request.headers;
    if (host !== undefined && !LOOPBACK_HOST.test(host)) {
      return reply
        .code(403)
        .send({ error: "This API answers only to loopback host names, such as 127.0.0.1" });
    }
    if (origin !== undefined && origin !== `http://${host}`) {
      return reply.code(403).send({ error: "This API does not answer to other web sites" });
    }
  });
}
