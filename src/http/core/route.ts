// A route of the gateway as an entry of a table: what it takes and answers, as schemas, and the function that answers
// it. The same schemas check requests and make the OpenAPI document.
//
// What follows from an entry is not written in it: the schema of the path's parameters, and the problems that come with
// them, with its headers, with pages and with bodies.

import type { FastifyInstance, FastifyReply, FastifyRequest, preValidationHookHandler } from "fastify";
import type { ProblemCode } from "./problem-codes.ts";
import { type Schema, type Static, Type } from "./type.ts";

/** What a route says about itself, beside the schemas that the framework knows. */
export interface Documentation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  /** Content types of the body; JSON without it. */
  readonly consumes?: readonly string[];
  /** In place of the document's own: [] lets everybody in. */
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  /** Leaves the route out of the document. */
  readonly hide?: boolean;
  readonly answers?: Answers;
  readonly problems?: readonly ProblemCode[];
}

declare module "fastify" {
  interface FastifySchema extends Documentation {}
}

/** Schemas by status; an answer that is no JSON has them by content type. */
export type Answers = Readonly<
  Record<number, Schema | { readonly description: string; readonly content: unknown }>
>;

interface Entry<Path extends string, Query extends Schema, Body extends Schema>
  extends Pick<Documentation, "description" | "consumes" | "security" | "problems"> {
  readonly operationId: string;
  readonly summary: string;
  readonly query?: Query;
  readonly headers?: Schema;
  readonly body?: Body;
  readonly answers: Answers;
  readonly preValidation?: preValidationHookHandler;
  /** Whether it answers HEAD by itself: the framework's way reads the whole body for its length. */
  readonly answersHead?: boolean;
  handle(
    request: FastifyRequest<{ Params: Params<Path>; Querystring: Static<Query>; Body: Static<Body> }>,
    reply: FastifyReply,
  ): unknown;
}

/** The parameters in a path: those of `/runs/:run_id/human` are `{ run_id: string }`. */
type Params<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? Readonly<Record<Name, string>> & Params<`/${Rest}`>
  : Path extends `${string}/:${infer Name}`
    ? Readonly<Record<Name, string>>
    : unknown;

export interface Route extends Entry<string, Schema, Schema> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
}

const entry =
  (method: Route["method"]) =>
  <Path extends string, Query extends Schema = Schema, Body extends Schema = Schema>(
    path: Path,
    rest: Entry<Path, Query, Body>,
  ) =>
    ({ method, path, ...rest }) as unknown as Route;

export const get = entry("GET");
export const post = entry("POST");
export const patch = entry("PATCH");
/** DELETE. */
export const remove = entry("DELETE");

/** Registers the routes of a table, under a tag of the document. */
export function addRoutes(api: FastifyInstance, tag: string, routes: readonly Route[]): void {
  for (const route of routes) {
    const { method, path, query, headers, body, preValidation, answersHead = false, handle } = route;
    const { operationId, summary, description, consumes, security, answers } = route;
    const params = paramsOf(path);
    api.route({
      method: answersHead ? [method, "HEAD"] : method,
      url: path,
      schema: {
        operationId,
        tags: [tag],
        summary,
        ...(description !== undefined && { description }),
        ...(consumes !== undefined && { consumes }),
        ...(security !== undefined && { security }),
        ...(params !== null && { params }),
        ...(query !== undefined && { querystring: query }),
        ...(headers !== undefined && { headers }),
        ...(body !== undefined && { body }),
        answers,
        problems: problemsOf(route),
      },
      ...(preValidation !== undefined && { preValidation }),
      handler: handle,
    });
  }
}

/** Every parameter that a path may have, and the problem of one that leads to nothing. */
const pathParameters: Readonly<Record<string, { readonly schema: Schema; readonly notFound: ProblemCode }>> =
  {
    job_id: idOf("job", "job_not_found"),
    run_id: idOf("run", "run_not_found"),
    bundle_id: idOf("bundle", "bundle_not_found"),
    blueprint_id: idOf("blueprint", "blueprint_not_found"),
    operation_id: idOf("operation", "operation_not_found"),
    request_id: idOf("request", "human_request_not_found"),
    dead_letter_id: idOf("dead letter", "dead_letter_not_found"),
    artifact_id: idOf("artifact", "artifact_not_found", { examples: ["logs_jsonl"] }),
    name: {
      schema: Type.String("The service's name.", { examples: ["blueprint-web-ui"] }),
      notFound: "service_not_found",
    },
  };

function idOf(what: string, notFound: ProblemCode, options: { readonly examples?: string[] } = {}) {
  return { schema: Type.String({ description: `The ${what}'s id.`, ...options }), notFound };
}

const namesIn = (path: string) => [...path.matchAll(/\/:(\w+)/g)].map(([, name = ""]) => name);

function paramsOf(path: string): Schema | null {
  const names = namesIn(path);
  if (names.length === 0) return null;
  return Type.Object(Object.fromEntries(names.map((name) => [name, pathParameters[name]!.schema])));
}

/** What any route may answer. */
const always: readonly ProblemCode[] = [
  "invalid_parameter",
  "unauthorized",
  "forbidden",
  "rate_limited",
  "internal",
  "unavailable",
];

/** What may be wrong with any body, also one that is sent to a route that takes none. */
const ofBodies: readonly ProblemCode[] = [
  "malformed_json",
  "payload_too_large",
  "unsupported_media_type",
  "validation_failed",
];

/** The route's own problems, and those that follow from what it takes. */
function problemsOf({
  method,
  path,
  query,
  headers,
  consumes,
  problems = [],
}: Route): readonly ProblemCode[] {
  const takes = (schema: Schema | undefined, name: string) =>
    name in ((schema as { properties?: object } | undefined)?.properties ?? {});
  const isUpload = consumes !== undefined;
  const all = [
    ...namesIn(path).map((name) => pathParameters[name]!.notFound),
    ...(takes(query, "page_token") ? (["invalid_page_token"] as const) : []),
    ...problems,
    ...(takes(headers, "idempotency-key") ? (["idempotency_key_reused"] as const) : []),
    ...(takes(headers, "if-match") ? (["precondition_failed", "precondition_required"] as const) : []),
    ...(method === "GET" ? [] : ofBodies.filter((code) => !isUpload || code !== "malformed_json")),
    ...always,
  ];
  return [...new Set(all)];
}
