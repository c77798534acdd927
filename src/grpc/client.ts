// A client of the gateway's API that reaches only the port of the runtime protocol: each HTTP request is made as the call that
// does the same (rules.ts), and the response is read as its answer.

import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { passedBack, passedOn } from "./calls.ts";
import { answerOf } from "./errors.ts";
import { protocol, type Rule } from "./rules.ts";

export interface ProtocolAddress {
  /** http://host:port, or https. */
  readonly origin: string;
  /** PEM of the certificate, with its key, that the client shows. */
  readonly certificate: string | null;
}

interface Called {
  readonly rule: Rule;
  readonly method: DescMethodUnary;
  /** From the path. */
  readonly fields: JsonObject;
}

/**
 * @returns a function to be used as fetch. Requests that no method does are answered with 501; errors have the status that is
 *   nearest to the call's code
 */
export function fetchByProtocol({ origin, certificate }: ProtocolAddress): typeof fetch {
  const nodeOptions = certificate === null ? {} : { cert: certificate, key: certificate };
  const transport = createGrpcTransport({ baseUrl: origin, nodeOptions });
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { method: verb = "GET", body, signal } = init;
    const given = new Headers(init.headers);
    const called = calledBy(verb, url.pathname);
    if (called === null) return Response.json(NOT_OFFERED, { status: 501 });
    const { rule, method, fields } = called;
    const header = new Headers();
    for (const name of passedOn) if (given.has(name)) header.set(name, given.get(name)!);
    const message = fromJson(method.input, {
      ...fields,
      ...valuesOf(method.input, url.searchParams),
      ...bodyFields(rule, typeof body === "string" ? (JSON.parse(body) as JsonValue) : undefined),
      ...(given.has("if-match") && { etag: given.get("if-match") }),
    });
    try {
      const answer = await transport.unary(method, signal ?? undefined, undefined, header, message);
      const headers = new Headers();
      for (const name of passedBack) {
        const value = answer.header.get(name);
        if (value !== null) headers.set(name, value);
      }
      const shown = shownOf(reflect(method.output, answer.message)) as JsonObject;
      return verb === "DELETE"
        ? new Response(null, { status: 204, headers })
        : Response.json(rule.answer === undefined ? shown : shown[rule.answer], { headers });
    } catch (error) {
      const failed = ConnectError.from(error);
      // Nobody has answered.
      if (failed.code === Code.Canceled || failed.cause !== undefined) throw failed;
      const { status, headers, problem } = answerOf(failed);
      return Response.json(problem, { status, headers });
    }
  };
}

const NOT_OFFERED = {
  code: "not_implemented",
  detail: "The runtime protocol has no such call: ask the gateway.",
};

function calledBy(verb: string, path: string): Called | null {
  for (const { service, rules } of protocol) {
    for (const method of service.methods) {
      const rule = rules[method.localName];
      if (rule?.api !== "gateway" || rule.method !== verb || method.methodKind !== "unary") continue;
      const names = [...rule.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      const pattern = `^/api/v1${rule.path.replace(/\{\w+\}/g, "([^/]+)")}$`;
      const values = new RegExp(pattern).exec(path)?.slice(1).map(decodeURIComponent);
      if (values === undefined) continue;
      const fields = Object.fromEntries(names.map((name, i) => [name, values[i]!]));
      return { rule, method: method as DescMethodUnary, fields };
    }
  }
  return null;
}

/** The query as fields; numbers may be texts. */
function valuesOf(message: DescMessage, query: URLSearchParams): JsonObject {
  const isFlag = (name: string) =>
    message.fields.some((field) => field.name === name && field.scalar === ScalarType.BOOL);
  return Object.fromEntries(
    Array.from(query, ([name, value]) => [name, isFlag(name) ? value === "true" : value]),
  );
}

function bodyFields({ body: names }: Rule, body: JsonValue | undefined): JsonObject {
  if (body === undefined) return {};
  return names?.[0] === undefined ? (body as JsonObject) : { [names[0]]: body };
}

/** The message as the gateway's JSON: numbers are no texts, and what has no value is there. */
function shownOf(message: ReflectMessage): JsonValue {
  if (message.desc.file.proto.package !== "svc.runtime.v1") return toJson(message.desc, message.message);
  return Object.fromEntries(message.fields.map((field) => [field.name, fieldOf(message, field)]));
}

function fieldOf(message: ReflectMessage, field: DescField): JsonValue {
  if (field.fieldKind === "list") return Array.from(message.get(field), jsonOf);
  if (field.fieldKind === "map")
    return Object.fromEntries(Array.from(message.get(field), ([key, value]) => [String(key), jsonOf(value)]));
  const isNothing = field.presence === FeatureSet_FieldPresence.EXPLICIT && !message.isSet(field);
  return isNothing ? null : jsonOf(message.get(field));
}

function jsonOf(value: unknown): JsonValue {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "object" ? shownOf(value as ReflectMessage) : (value as JsonValue);
}
