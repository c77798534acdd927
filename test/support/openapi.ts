// The program's own OpenAPI document as a judge of its answers.

import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import { formats } from "../../src/http/core/formats.ts";
import type { Program } from "./program.ts";

interface Described {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, { readonly schema: JsonObject }>>;
}

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, Described>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Described>> };
}

export interface JudgedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export async function openApiOf(program: Program, headers: Record<string, string> = {}): Promise<OpenApi> {
  const answer = await fetch(`${program.url}/openapi.json`, { headers });
  assert.equal(answer.status, 200);
  return (await answer.json()) as OpenApi;
}

/** Headers that say what is not so of every answer. */
const SOMETIMES: ReadonlySet<string> = new Set(["Idempotency-Replayed", "Preference-Applied"]);

export class Judge {
  readonly #document: OpenApi;
  readonly #ajv: Ajv2020;
  readonly #checks = new Map<string, ValidateFunction>();
  /** The operations and statuses that answers were seen of, such as `createJob 201`. */
  readonly seen = new Set<string>();

  constructor(document: OpenApi) {
    this.#document = document;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true, formats });
    this.#ajv.addSchema({ ...(closed(document as unknown as JsonValue) as JsonObject), $id: "openapi" });
  }

  /** Asserts that an answer has a status, headers, a content type and a body that the document describes. */
  check(method: string, path: string, answer: JudgedAnswer): void {
    const operation = this.#operation(method, path.split("?")[0] ?? "");
    assert.ok(operation, `${method} ${path} is not in the document`);
    const what = `${operation.operationId} ${answer.status}`;
    const described = this.#resolved(operation.responses[answer.status]);
    assert.ok(described, `${what} is not in the document: ${answer.text}`);
    this.seen.add(what);
    for (const name of Object.keys(described.headers ?? {})) {
      if (SOMETIMES.has(name)) continue;
      assert.ok(answer.headers.has(name), `${what} lacks the header ${name}`);
    }
    if (described.content === undefined) {
      assert.equal(answer.text, "", what);
      return;
    }
    const type = (answer.headers.get("content-type") ?? "").split(";")[0] ?? "";
    const media = described.content[type] ?? described.content["application/octet-stream"];
    assert.ok(media, `${what} came as ${type}`);
    if (!type.endsWith("json")) return;
    const check = this.#checkOf(what, media.schema);
    assert.ok(
      check(JSON.parse(answer.text)),
      `${what}: ${this.#ajv.errorsText(check.errors)}\n${answer.text}`,
    );
  }

  #operation(method: string, path: string): Operation | undefined {
    for (const [template, methods] of Object.entries(this.#document.paths)) {
      const matches = new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`);
      const operation = methods[method.toLowerCase()];
      if (matches.test(path) && operation !== undefined) return operation;
    }
    return undefined;
  }

  #resolved(described: Described | undefined): Described | undefined {
    const name = described?.$ref?.split("/").at(-1);
    return name === undefined ? described : this.#document.components.responses[name];
  }

  #checkOf(what: string, schema: JsonObject): ValidateFunction {
    let check = this.#checks.get(what);
    if (check === undefined) {
      const text = JSON.stringify(schema).replaceAll('"#/', '"openapi#/');
      check = this.#ajv.compile(closed(JSON.parse(text)) as JsonObject);
      this.#checks.set(what, check);
    }
    return check;
  }
}

/** The same, but objects have no properties beside those that are described: an answer must not hold more. */
function closed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(
    Object.entries(value as JsonObject).map(([key, part]) => [key, closed(part as JsonValue)]),
  );
  const isOpenObject = copy.type === "object" && "properties" in copy && !("additionalProperties" in copy);
  return isOpenObject ? { ...copy, additionalProperties: false } : copy;
}
