// JSON request bodies: bounded, valid UTF-8, not too deep, and an object.

import { isUtf8 } from "node:buffer";
import type { FastifyInstance } from "fastify";
import { isObject, type JsonObject, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";

/** A body that was read; `object` is null when it was empty, no JSON, or no JSON object. */
export interface JsonBody {
  readonly text: string;
  readonly object: JsonObject | null;
}

/** Makes `application/json` the one content type of bodies, parsed into a JsonBody. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    done(null, readJsonBody(body as Buffer));
  });
}

function readJsonBody(bytes: Buffer): JsonBody {
  const text = isUtf8(bytes) ? bytes.toString("utf8") : "";
  const parsed = parseJson(text, limits.jsonDepthMax);
  return { text, object: parsed !== null && isObject(parsed.value) ? parsed.value : null };
}
