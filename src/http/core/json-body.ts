// JSON request bodies: bounded, valid UTF-8, not too deep. The gateway says where a body is wrong and passes what is
// parsed to the route's schema; the runtime API leaves it to the route whether it needs one.

import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isObject, type JsonObject, type JsonValue, parseJson } from "../../engine/json.ts";
import { jsonSteps, LARGE_JSON_CHARS } from "../../engine/large-json.ts";
import { limits } from "../../engine/limits.ts";
import { inSlices } from "../../lib/slices.ts";
import { findJsonError } from "./json-syntax.ts";
import { invalidBody, oneMistake, Problem, shown } from "./problem.ts";
import { pointerPart } from "./validation-entries.ts";

const MERGE_PATCH = "application/merge-patch+json";
const ENTRIES_MAX = 1_000;

/** Of a text that is worked on in a turn of its own: taking in the first one takes milliseconds itself. */
const OWN_TURN_CHARS = 8 * 1024;

/**
 * Makes `application/json` the one content type of bodies; `application/merge-patch+json` is one too, in
 * PATCH. A route whose schema names what it `consumes` takes nothing else.
 */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const types = ["application/json", MERGE_PATCH];
  app.addContentTypeParser(types, { parseAs: "buffer" }, (request, bytes, done) => {
    // What is sent to a path that is not there is not looked at; nor is an empty body, which is the same as none.
    if (request.is404) return done(null, undefined);
    // Read once: the framework makes this object anew each time.
    const schema: RouteSchema = request.routeOptions.schema ?? {};
    // What these throw is passed on as the request's error.
    refuseType(request, schema.consumes);
    const text = textOf(bytes as Buffer);
    const read = (parsed: ParsedJson) => readBody(schema, text, parsed);
    if (text === "") done(null, undefined);
    else if (text.length < LARGE_JSON_CHARS) done(null, read(parseJson(text, limits.jsonDepthMax)));
    else
      parseLarge(text)
        .then(read)
        .then((value) => done(null, value), done);
  });
}

/** What is set while input is read comes directly after it: the turn is over with the second one. */
function inOwnTurn(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

interface RouteSchema {
  readonly body?: unknown;
  readonly consumes?: readonly string[];
}

type ParsedJson = ReturnType<typeof parseJson>;

const parseLarge = (text: string) => inSlices(jsonSteps(text, limits.jsonDepthMax));

/** The JSON in bytes that a route has taken as they are. @throws Problem `malformed_json` */
export async function jsonIn(bytes: Buffer): Promise<JsonValue> {
  const text = textOf(bytes);
  const parsed = await parseLarge(text);
  if (parsed === null) throw malformed(text);
  return parsed.value;
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Problem("malformed_json", "The body is not valid UTF-8, which JSON must be.");
  return bytes.toString("utf8");
}

function readBody({ body }: RouteSchema, text: string, parsed: ParsedJson): JsonValue {
  if (parsed === null) throw malformed(text);
  if (body === undefined) refuseFields(parsed.value);
  else if (parsed.value === null) throw notAnObject();
  return parsed.value;
}

/** @throws Problem `unsupported_media_type` for a body that is compressed */
export function refuseCoding({ headers }: FastifyRequest): void {
  const coding = headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() === "identity") return;
  throw new Problem(
    "unsupported_media_type",
    `Bodies with the Content-Encoding ${shown(coding)} are not taken. Send the JSON as it is.`,
  );
}

function refuseType(request: FastifyRequest, consumes: RouteSchema["consumes"]): void {
  const { mediaType, method } = request;
  refuseCoding(request);
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

  /** @param parsed absent if it is to be parsed when somebody asks */
  constructor(text: string, parsed?: ParsedJson) {
    this.text = text;
    if (parsed !== undefined) this.#object = objectIn(parsed);
  }

  /** Null when the body was empty, no JSON, or no JSON object. */
  get object(): JsonObject | null {
    if (this.#object === undefined) this.#object = objectIn(parseJson(this.text, limits.jsonDepthMax));
    return this.#object;
  }
}

const objectIn = (parsed: ParsedJson) => (parsed !== null && isObject(parsed.value) ? parsed.value : null);

/** Makes `application/json` the one content type of bodies, read into a JsonBody. */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    const bytes = body as Buffer;
    const text = isUtf8(bytes) ? bytes.toString("utf8") : "";
    if (text.length < OWN_TURN_CHARS) done(null, new JsonBody(text));
    else if (text.length < LARGE_JSON_CHARS) inOwnTurn(() => done(null, new JsonBody(text)));
    else parseLarge(text).then((parsed) => done(null, new JsonBody(text, parsed)), done);
  });
}
