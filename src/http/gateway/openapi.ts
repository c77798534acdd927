// GET /openapi.json: the OpenAPI document, made from the routes at the first request and kept as text.

import type { FastifyInstance } from "fastify";
import { type Content, contentOf, sendContent } from "../core/content.ts";
import { type DocumentedRoute, openApiDocument } from "./openapi-document.ts";

export const OPEN_API_PATH = "/openapi.json";

/** Serves the document of every route that is registered on `app`, or inside it, after this call. */
export function describeRoutes(app: FastifyInstance, version: string): void {
  const routes: DocumentedRoute[] = [];
  const made: { full?: Content; signedIn?: Content } = {};

  app.addHook("onRoute", ({ method, url, schema = {} }) => {
    for (const name of [method].flat()) {
      if (name === "HEAD" || schema.hide === true) continue;
      routes.push({ method: name.toLowerCase(), url, schema });
    }
  });

  app.get(OPEN_API_PATH, { schema: { hide: true } }, async (request, reply) => {
    // A browser with a stored Basic password adds it to every request. With security schemes in the document, the page
    // would send an empty token instead.
    const isSignedIn = /^basic /i.test(request.headers.authorization ?? "");
    if (isSignedIn) made.signedIn ??= make(routes, version, false);
    else made.full ??= make(routes, version, true);
    const document = (isSignedIn ? made.signedIn : made.full) as Content;
    return sendContent(request, reply, document, { vary: "Authorization" });
  });
}

function make(routes: readonly DocumentedRoute[], version: string, hasSecurity: boolean): Content {
  const { security, ...document } = openApiDocument(routes, version);
  const text = JSON.stringify(hasSecurity ? { ...document, security } : document);
  return contentOf("application/json; charset=utf-8", text);
}
