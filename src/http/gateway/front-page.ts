// GET /: who types the server's address is led to its documentation, and a program is told what there is.

import type { FastifyInstance } from "fastify";
import { DOCS_PATH } from "./docs.ts";
import { OPEN_API_PATH } from "./openapi.ts";

export function frontPageRoute(app: FastifyInstance, version: string): void {
  const index = {
    name: "troupe",
    version,
    links: {
      docs: DOCS_PATH,
      openapi: OPEN_API_PATH,
      health: "/api/v1/health",
      jobs: "/api/v1/jobs",
      runs: "/api/v1/runs",
      blueprints: "/api/v1/blueprints",
      schemas: "/schemas/manifest.json",
    },
  };
  app.get("/", { schema: { hide: true } }, async (request, reply) => {
    reply.header("vary", "Accept");
    const isBrowser = request.headers.accept?.toLowerCase().includes("text/html") === true;
    return isBrowser ? reply.redirect(DOCS_PATH, 302) : index;
  });
}
