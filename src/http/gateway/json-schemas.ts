// GET /schemas/manifest.json, /schemas/config.json, /schemas/index.json: JSON Schemas, with which editors complete and
// check the files of a blueprint. The documents are serialised at the first request.

import type { FastifyInstance } from "fastify";
import { configSchema, indexSchema } from "../../blueprints/schema-config.ts";
import { manifestSchema } from "../../blueprints/schema-manifest.ts";
import { type Content, contentOf, sendContent } from "../core/content.ts";

const documents = {
  "manifest.json": manifestSchema,
  "config.json": configSchema,
  "index.json": indexSchema,
} as const;

export function jsonSchemaRoutes(app: FastifyInstance): void {
  for (const [name, document] of Object.entries(documents)) {
    let content: Content | null = null;

    app.get(`/schemas/${name}`, { schema: { hide: true } }, async (request, reply) => {
      content ??= contentOf("application/schema+json; charset=utf-8", JSON.stringify(document));
      return sendContent(request, reply, content, { "cache-control": "public, max-age=3600" });
    });
  }
}
