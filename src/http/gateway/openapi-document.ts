// The OpenAPI 3.1 document, made from the routes and from the very schemas that check their requests.

import { STATUS_CODES } from "../../lib/node-http.ts";
import { PROBLEM_TYPE } from "../core/problem.ts";
import { type ProblemCode, problemCodes, titleOf } from "../core/problem-codes.ts";
import type { Documentation } from "../core/route.ts";
import { LlmErrorSchema, ProblemSchema } from "../resources/schemas.ts";
import { description, headers, securitySchemes, tags, uploadBody, withETag } from "./openapi-info.ts";
import { type Json, type JsonMap, NamedSchemas } from "./openapi-schema.ts";
import { namedSchemas } from "./resources.ts";

interface ObjectSchema {
  readonly description?: string;
  readonly examples?: readonly Json[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, object>>;
}

/** Schemas by content type. */
type Content = Readonly<Record<string, { readonly schema: object }>>;

export interface DocumentedRoute {
  /** Lower case. */
  readonly method: string;
  /** With parameters as `:name`. */
  readonly url: string;
  readonly schema: Documentation & {
    readonly params?: unknown;
    readonly querystring?: unknown;
    readonly headers?: unknown;
    readonly body?: unknown;
  };
}

export function openApiDocument(routes: readonly DocumentedRoute[], version: string): JsonMap {
  const writer = new Writer();
  const paths: Record<string, Record<string, Json>> = {};
  for (const { method, url, schema } of routes) {
    const path = url.replace(/::|:(\w+)/g, (_part, name) => (name === undefined ? ":" : `{${name}}`));
    paths[path] = { ...paths[path], [method]: writer.operation(schema) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Troupe gateway",
      version,
      description,
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "This server" }],
    security: [{ bearer: [] }, { basic: [] }],
    tags,
    paths,
    components: { securitySchemes, headers, ...writer.components() },
  };
}

/** What an operation's successes have beside their bodies. */
interface SuccessOf {
  readonly isRepeatable: boolean;
  /** It takes `Prefer: wait`. */
  readonly canWait: boolean;
  readonly hasETag: boolean;
}

class Writer {
  readonly #schemas = new NamedSchemas(namedSchemas);
  /** Failures that many operations share, by name. */
  readonly #responses = new Map<string, Json>();

  components() {
    const responses = [...this.#responses].sort(([a], [b]) => (a < b ? -1 : 1));
    return { schemas: this.#schemas.components(), responses: Object.fromEntries(responses) };
  }

  operation(schema: DocumentedRoute["schema"]): JsonMap {
    const { operationId = "", summary, description: text, security } = schema;
    const parameters = [
      ...this.#parameters("path", schema.params),
      ...this.#parameters("query", schema.querystring),
      ...this.#parameters("header", schema.headers),
    ];
    const body = this.#body(schema);
    const takes = (header: string) => parameters.some(({ name }) => name === header);
    const of = {
      isRepeatable: takes("Idempotency-Key"),
      canWait: takes("Prefer"),
      hasETag: withETag.has(operationId),
    };
    return {
      operationId,
      tags: (schema.tags ?? []) as readonly string[],
      ...(summary !== undefined && { summary }),
      ...(text !== undefined && { description: text }),
      ...(security !== undefined && { security }),
      ...(parameters.length > 0 && { parameters }),
      ...(body !== null && { requestBody: body }),
      responses: this.#answers(schema, of),
    };
  }

  #parameters(place: "path" | "query" | "header", schema: unknown): readonly JsonMap[] {
    const { properties = {}, required = [] } = (schema ?? {}) as ObjectSchema;
    return Object.entries(properties).map(([name, property]) => {
      const { description: text, examples = [] } = property as ObjectSchema;
      const { description: _text, examples: _examples, ...shown } = this.#schemas.shown(property);
      const isRequired = required.includes(name);
      // The interactive page sends the examples of parameters that were not filled in, such as one Idempotency-Key for all.
      const example = isRequired ? examples[0] : undefined;
      return {
        name: place === "header" ? headerName(name) : name,
        in: place,
        required: isRequired,
        ...(text !== undefined && { description: text }),
        schema: shown,
        ...(example !== undefined && { example }),
      };
    });
  }

  #body({ body, consumes }: DocumentedRoute["schema"]): JsonMap | null {
    if (consumes?.includes("multipart/form-data")) return uploadBody;
    if (body === undefined) return null;
    const { required = [] } = body as ObjectSchema;
    const schema = this.#schemas.shown(body as object);
    return { required: required.length > 0, content: { "application/json": { schema } } };
  }

  #answers({ answers = {}, problems = [], speaksOpenAi = false }: Documentation, of: SuccessOf): JsonMap {
    const byStatus = Map.groupBy(problems, (code) => problemCodes[code].status);
    const failures = [...byStatus].map(([status, codes]) => [
      status,
      speaksOpenAi ? this.#openAiFailure(status) : this.#failure(status, codes),
    ]);
    const successes = Object.entries(answers).map(([status, answer]) => [
      status,
      this.#success(Number(status), answer, of),
    ]);
    return Object.fromEntries([...failures, ...successes]);
  }

  #success(status: number, answer: object, { isRepeatable, canWait, hasETag }: SuccessOf) {
    const isGood = status < 300;
    const names: (keyof typeof headers)[] = ["X-Request-Id"];
    // The schema of an answer without a body is that of null.
    const isNothing = "type" in answer && answer.type === "null";
    if (status === 201 || (status === 202 && !isNothing)) names.push("Location");
    if (hasETag && status !== 204) names.push("ETag");
    if (isRepeatable && isGood) names.push("Idempotency-Replayed");
    if (canWait && isGood) names.push("Vary");
    if (canWait && status === 200) names.push("Preference-Applied");
    if (status === 503) names.push("Retry-After");
    const { description: text = STATUS_CODES[status] ?? "", content } = answer as {
      description?: string;
      content?: Content;
    };
    const media = content ?? (isNothing ? null : { "application/json": { schema: answer } });
    return {
      description: text,
      headers: references(names),
      ...(media !== null && { content: this.#media(media) }),
    };
  }

  #media(content: Content): JsonMap {
    const shown = Object.entries(content).map(
      ([type, { schema, ...rest }]) => [type, { ...rest, schema: this.#schemas.shown(schema) }] as const,
    );
    return Object.fromEntries(shown);
  }

  /** Its code may be the upstream's. */
  #openAiFailure(status: number): JsonMap {
    const name = `llm-${status}`;
    if (!this.#responses.has(name)) {
      this.#responses.set(name, {
        description: "An error of the OpenAI protocol: its message says what happened and what to do next.",
        headers: references(status === 401 ? failureHeaders(status) : ["X-Request-Id"]),
        content: { "application/json": { schema: this.#schemas.shown(LlmErrorSchema) } },
      });
    }
    return { $ref: `#/components/responses/${name}` };
  }

  /** Operations that fail for the same reasons refer to one description of it. */
  #failure(status: number, codes: readonly ProblemCode[]): JsonMap {
    const name = codes.join("-or-");
    if (!this.#responses.has(name)) {
      this.#responses.set(name, {
        description: codes.map((code) => `\`${code}\`: ${problemCodes[code].meaning}`).join("\n\n"),
        headers: references(failureHeaders(status)),
        content: {
          [PROBLEM_TYPE]: { schema: this.#schemas.shown(ProblemSchema), examples: examplesOf(codes) },
        },
      });
    }
    return { $ref: `#/components/responses/${name}` };
  }
}

function examplesOf(codes: readonly ProblemCode[]): JsonMap {
  const examples = codes.map((code) => {
    const { status, meaning } = problemCodes[code];
    const request = { code, detail: meaning, request_id: "req_k3f9x2ab_1" };
    return [code, { value: { type: "about:blank", title: titleOf(code), status, ...request } }] as const;
  });
  return Object.fromEntries(examples);
}

function failureHeaders(status: number): readonly (keyof typeof headers)[] {
  if (status === 401) return ["X-Request-Id", "WWW-Authenticate"];
  if (status === 412) return ["X-Request-Id", "ETag"];
  return status === 429 || status === 503 ? ["X-Request-Id", "Retry-After"] : ["X-Request-Id"];
}

function references(names: readonly (keyof typeof headers)[]): JsonMap {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** `last-event-id` as people write it: `Last-Event-ID`. */
function headerName(name: string): string {
  return name
    .split("-")
    .map((word) => (word === "id" ? "ID" : word.charAt(0).toUpperCase() + word.slice(1)))
    .join("-");
}
