// GET /schemas/manifest.json, /schemas/config.json, /schemas/index.json: JSON Schemas, with which editors complete and
// check the files of a blueprint. The documents are serialised at the first request.

import type { FastifyInstance } from "fastify";
import { configSchema, indexSchema } from "../../blueprints/schema-config.ts";
import { manifestSchema } from "../../blueprints/schema-manifest.ts";
import { contentTag, notModified } from "../core/etag.ts";

const documents = {
  "manifest.json": manifestSchema,
  "config.json": configSchema,
  "index.json": indexSchema,
} as const;

export function jsonSchemaRoutes(app: FastifyInstance): void {
  for (const [name, document] of Object.entries(documents)) {
    let made: { readonly text: string; readonly etag: string } | null = null;

    app.get(`/schemas/${name}`, { schema: { hide: true } }, async (request, reply) => {
      made ??= make(document);
      reply.headers({
        etag: made.etag,
        "cache-control": "public, max-age=3600",
        "x-content-type-options": "nosniff",
      });
      if (notModified(request, made.etag)) return reply.code(304).send();
      return reply.type("application/schema+json; charset=utf-8").send(made.text);
    });
  }
}

function make(document: object) {
  const text = JSON.stringify(document);
  return { text, etag: contentTag(text) };
}
