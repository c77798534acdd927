// JSON request bodies: bounded, valid UTF-8, not too deep. The gateway says where a body is wrong and passes what is
// parsed to the route's schema; the runtime API leaves it to the route whether it needs one.

import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isObject, type JsonObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import { findJsonError } from "./json-syntax.ts";
import { invalidBody, oneMistake, Problem, shown } from "./problem.ts";
import { pointerPart } from "./validation-entries.ts";

const MERGE_PATCH = "application/merge-patch+json";
const ENTRIES_MAX = 1_000;

/**
 * Makes `application/json` the one content type of bodies; `application/merge-patch+json` is one too, in
 * PATCH. A route whose schema names what it `consumes` takes nothing else.
 */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const types = ["application/json", MERGE_PATCH];
  app.addContentTypeParser(types, { parseAs: "buffer" }, (request, bytes, done) => {
    // What is sent to a path that is not there is not looked at.
    if (request.is404) done(null, undefined);
    // What this throws is passed on as the request's error.
    else done(null, readBody(request, bytes as Buffer));
  });
}

interface RouteSchema {
  readonly body?: unknown;
  readonly consumes?: readonly string[];
}

/** @returns undefined for an empty body, which is the same as none */
function readBody(request: FastifyRequest, bytes: Buffer): JsonValue | undefined {
  // Read once: the framework makes this object anew each time.
  const schema: RouteSchema = request.routeOptions.schema ?? {};
  refuseType(request, schema.consumes);
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw new Problem("malformed_json", "The body is not valid UTF-8, which JSON must be.");
  const text = bytes.toString("utf8");
  const parsed = parseJson(text, limits.jsonDepthMax);
  if (parsed === null) throw malformed(text);
  if (schema.body === undefined) refuseFields(parsed.value);
  else if (parsed.value === null) throw notAnObject();
  return parsed.value;
}

function refuseType({ mediaType, method, headers }: FastifyRequest, consumes: RouteSchema["consumes"]): void {
  const coding = headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() !== "identity") {
    throw new Problem(
      "unsupported_media_type",
      `Bodies with the Content-Encoding ${shown(coding)} are not taken. Send the JSON as it is.`,
    );
  }
  if (mediaType === MERGE_PATCH && method !== "PATCH") {
    throw new Problem("unsupported_media_type", `${MERGE_PATCH} is for PATCH. Send application/json.`);
  }
  if (consumes !== undefined && !consumes.includes(mediaType ?? "")) {
    throw new Problem("unsupported_media_type", `The Content-Type must be ${consumes.join(" or ")}.`);
  }
}

function malformed(text: string): Problem {
  const error = findJsonError(text, limits.jsonDepthMax);
  if (error === null) return new Problem("malformed_json", "The body is not valid JSON.");
  const place = placeOf(text, error.offset);
  const isDeep = error.kind === "too_deep";
  const what = isDeep ? `nests deeper than ${limits.jsonDepthMax} levels` : "is not valid JSON";
  return new Problem("malformed_json", `The body ${what}: look at ${place}.`);
}

export const notAnObject = () => invalidBody(oneMistake("", "wrong_type", "must be a JSON object"));

function placeOf(text: string, offset: number): string {
  let line = 1;
  let lineStart = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) {
    line++;
    lineStart = at + 1;
  }
  return `line ${line}, column ${offset - lineStart + 1}`;
}

/** A route without a schema for its body takes none, and no field. */
function refuseFields(value: JsonValue): void {
  if (!isObject(value)) throw notAnObject();
  const names = Object.keys(value);
  if (names.length === 0) return;
  const entries = names.slice(0, ENTRIES_MAX).map((name) => ({
    path: `/${pointerPart(name)}`,
    code: "unknown_field",
    message: "is not a known name here: this request takes no fields",
  }));
  throw invalidBody({ entries, isCut: names.length > ENTRIES_MAX });
}

// ----------------------------------------------------------------------------------------- runtime API

/** A body that was read. It is parsed when somebody asks: a manifest that is known by its text is not parsed again. */
export class JsonBody {
  readonly text: string;
  #object: JsonObject | null | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** Null when the body was empty, no JSON, or no JSON object. */
  get object(): JsonObject | null {
    if (this.#object === undefined) {
      const parsed = parseJson(this.text, limits.jsonDepthMax);
      this.#object = parsed !== null && isObject(parsed.value) ? parsed.value : null;
    }
    return this.#object;
  }
}

/** Makes `application/json` the one content type of bodies, read into a JsonBody. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    const bytes = body as Buffer;
    done(null, new JsonBody(isUtf8(bytes) ? bytes.toString("utf8") : ""));
  });
}
