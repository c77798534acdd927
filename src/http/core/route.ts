// A route as an entry of a table: the schemas of what it takes and answers, and its handler. The same schemas check
// requests and make the OpenAPI document.
//
// Derived from an entry: the schemas of path parameters, and the problems that come with them, with headers, with pages
// and with bodies.

import type { FastifyInstance, FastifyReply, FastifyRequest, preValidationHookHandler } from "fastify";
import type { ProblemCode } from "./problem-codes.ts";
import { type Schema, type Static, Type } from "./type.ts";

/** What the OpenAPI document says of a route, besides the schemas that the framework knows. */
export interface Documentation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  /** Content types of the body; JSON without it. */
  readonly consumes?: readonly string[];
  /** Replaces the document's own; []: no authentication. */
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  /** Leaves the route out of the document. */
  readonly hide?: boolean;
  /** Whether its errors have the shape of the OpenAI protocol. */
  readonly speaksOpenAi?: boolean;
  readonly answers?: Answers;
  readonly problems?: readonly ProblemCode[];
}

declare module "fastify" {
  interface FastifySchema extends Documentation {}
}

/** Schemas by status; by content type for answers that are not JSON. */
export type Answers = Readonly<
  Record<number, Schema | { readonly description: string; readonly content: unknown }>
>;

interface Entry<Path extends string, Query extends Schema, Body extends Schema>
  extends Pick<
    Documentation,
    "description" | "consumes" | "security" | "problems" | "hide" | "speaksOpenAi"
  > {
  readonly operationId: string;
  readonly summary: string;
  readonly query?: Query;
  readonly headers?: Schema;
  readonly body?: Body;
  readonly answers: Answers;
  readonly preValidation?: preValidationHookHandler;
  /** Whether the handler answers HEAD too: the framework's default would read the whole body for its length. */
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
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
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
export const put = entry("PUT");
export const patch = entry("PATCH");
/** DELETE. */
export const remove = entry("DELETE");

/** Registers the routes of a table, under a tag of the document. */
export function addRoutes(api: FastifyInstance, tag: string, routes: readonly Route[]): void {
  for (const route of routes) {
    const { method, path, query, headers, body, preValidation, answersHead = false, handle } = route;
    const { operationId, summary, description, consumes, security, answers, hide, speaksOpenAi } = route;
    const params = paramsOf(path);
    api.route({
      method: answersHead ? [method, "HEAD"] : method,
      url: path,
      schema: {
        operationId,
        tags: [tag],
        summary,
        ...(description !== undefined && { description }),
        ...(hide === true && { hide }),
        ...(speaksOpenAi === true && { speaksOpenAi }),
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

/** Every path parameter, with the problem when there is no such resource. */
const pathParameters: Readonly<Record<string, { readonly schema: Schema; readonly notFound: ProblemCode }>> =
  {
    job_id: idOf("job", "job_not_found"),
    run_id: idOf("run", "run_not_found"),
    bundle_id: idOf("bundle", "bundle_not_found"),
    blueprint_id: idOf("blueprint", "blueprint_not_found"),
    operation_id: idOf("operation", "operation_not_found"),
    session_id: idOf("session", "session_not_found"),
    schedule_id: idOf("schedule", "schedule_not_found"),
    deployment_id: idOf("deployment", "deployment_not_found"),
    model_id: idOf("model", "model_not_found", { examples: ["qwen3-4b"] }),
    installation_id: idOf("installation", "model_not_found"),
    event_id: idOf("event", "event_not_found"),
    token: { schema: Type.String("The end of the webhook's path."), notFound: "not_found" },
    node_id: idOf("node", "node_not_found"),
    request_id: idOf("request", "human_request_not_found"),
    dead_letter_id: idOf("dead letter", "dead_letter_not_found"),
    artifact_id: idOf("artifact", "artifact_not_found", { examples: ["logs_jsonl"] }),
    name: {
      schema: Type.String("The service's name.", { examples: ["blueprint-web-ui"] }),
      notFound: "service_not_found",
    },
    volume: { schema: Type.String("The volume's name."), notFound: "volume_not_found" },
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

/** Problems of every route. */
const always: readonly ProblemCode[] = [
  "invalid_parameter",
  "unauthorized",
  "forbidden",
  "rate_limited",
  "internal",
  "unavailable",
];

/** Problems of bodies, also of a body that is sent to a route that takes none. */
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
  const needs = (schema: Schema | undefined, name: string) =>
    ((schema as { required?: readonly string[] } | undefined)?.required ?? []).includes(name);
  const isUpload = consumes !== undefined;
  const all = [
    ...namesIn(path).map((name) => pathParameters[name]!.notFound),
    ...(takes(query, "page_token") ? (["invalid_page_token"] as const) : []),
    ...problems,
    ...(takes(headers, "idempotency-key") ? (["idempotency_key_reused"] as const) : []),
    ...(takes(headers, "if-match") ? (["precondition_failed"] as const) : []),
    ...(needs(headers, "if-match") ? (["precondition_required"] as const) : []),
    ...(method === "GET" ? [] : ofBodies.filter((code) => !isUpload || code !== "malformed_json")),
    ...always,
  ];
  return [...new Set(all)];
}
