// GET /openapi.json: this API, described by the routes that serve it. The document is made when it is first asked
// for, and then kept as text.

import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { notModified } from "../shared/etag.ts";
import { type Documentation, type DocumentedRoute, openApiDocument } from "./openapi-document.ts";

declare module "fastify" {
  interface FastifySchema extends Documentation {}
}

export const OPEN_API_PATH = "/openapi.json";

/** Serves the document of every route that is registered on `app`, or inside it, after this call. */
export function describeRoutes(app: FastifyInstance, version: string): void {
  const routes: DocumentedRoute[] = [];
  let made: { readonly text: string; readonly etag: string } | null = null;

  app.addHook("onRoute", ({ method, url, schema = {} }) => {
    for (const name of [method].flat()) {
      if (name === "HEAD" || schema.hide === true) continue;
      routes.push({ method: name.toLowerCase(), url, schema });
    }
  });

  app.get(OPEN_API_PATH, { schema: { hide: true } }, async (request, reply) => {
    made ??= make(routes, version);
    reply.header("etag", made.etag).header("cache-control", "no-cache");
    if (notModified(request, made.etag)) return reply.code(304).send();
    return reply.type("application/json; charset=utf-8").send(made.text);
  });
}

function make(routes: readonly DocumentedRoute[], version: string) {
  const text = JSON.stringify(openApiDocument(routes, version));
  return { text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
}
