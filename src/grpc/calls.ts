// Calls of the HTTP routes from inside this process, on behalf of one call of the protocol.

import type { IncomingMessage } from "node:http";
import { duplexPair } from "node:stream";
import { type DescMethod, fromJson, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { FastifyInstance, InjectOptions } from "fastify";
import { readServerSentEvents } from "../../sdk/src/sse.ts";
import { terminalEventTypes } from "../engine/event-types.ts";
import type { JsonObject } from "../engine/json.ts";
import { request as sendRequest } from "../lib/node-http.ts";
import { callError } from "./errors.ts";
import type { Rule } from "./rules.ts";

/** What listens to nobody but these calls. Their callers are admitted already, by name and origin. */
export type Apis = Readonly<Record<Rule["api"], FastifyInstance>>;

export const remoteAddressKey = createContextKey<string>("", {
  description: "the address that a call comes from",
});

/** Metadata of a call that the routes take as headers. */
export const passedOn = [
  "authorization",
  "idempotency-key",
  "x-request-id",
  "traceparent",
  "tracestate",
] as const;
/** Headers of an answer that are metadata of the response. */
export const passedBack = ["etag", "location", "x-request-id", "idempotency-replayed"] as const;

/** The work goes on when the caller leaves, as with HTTP. @throws ConnectError */
export async function ask(
  apis: Apis,
  rule: Rule,
  method: DescMethod,
  request: Message,
  context: HandlerContext,
): Promise<Message> {
  const answer = await apis[rule.api].inject({
    ...requestOf(rule, method, request, context),
    remoteAddress: context.values.get(remoteAddressKey),
  });
  const body = answer.payload === "" ? {} : (JSON.parse(answer.payload) as JsonValue);
  const retryAfter = answer.headers["retry-after"];
  if (answer.statusCode >= 300)
    throw callError(answer.statusCode, body, retryAfter === undefined ? undefined : String(retryAfter));
  for (const name of passedBack) {
    const value = answer.headers[name];
    if (value !== undefined) context.responseHeader.set(name, String(value));
  }
  return read(method, rule.answer === undefined ? body : { [rule.answer]: body });
}

/**
 * Follows a stream of events, each of which is a response.
 *
 * @throws ConnectError
 */
export async function* follow(
  apis: Apis,
  rule: Rule,
  method: DescMethod,
  request: Message,
  context: HandlerContext,
): AsyncGenerator<Message> {
  const app = apis[rule.api];
  await app.ready();
  const { after_event_id: lastEventId, ...fields } = fieldsOf(method, request);
  const { url, headers } = pathOf(rule, fields, context);
  // A connection of its own, because the reader's speed must reach the stream.
  const [here, there] = duplexPair();
  app.server.emit("connection", there);
  const { signal } = context;
  const sent = sendRequest({
    createConnection: () => here,
    path: url,
    headers: { ...headers, ...(lastEventId !== undefined && { "last-event-id": String(lastEventId) }) },
    signal,
  });
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve);
      sent.once("error", reject);
      sent.end();
    });
    const { statusCode = 500 } = answer;
    // Of one that has ended there is nothing behind its last event.
    if (statusCode === 204) return;
    if (statusCode !== 200) {
      const text = (await answer.toArray()).join("");
      throw callError(statusCode, JSON.parse(text) as JsonValue, answer.headers["retry-after"]);
    }
    let last = "";
    for await (const { id, type, data } of readServerSentEvents(answer)) {
      yield read(method, { ...(JSON.parse(data) as JsonObject), event_id: id });
      last = type;
    }
    if (!terminalEventTypes.has(last)) throw new ConnectError(CUT_OFF, Code.Unavailable);
  } catch (error) {
    // Who is told that is gone.
    if (signal.aborted) throw ConnectError.from(signal.reason);
    throw error;
  } finally {
    sent.destroy();
    here.destroy();
  }
}

const CUT_OFF =
  "The stream ended before the job, because the program stops or the job was removed. Call again with after_event_id.";

function requestOf(
  rule: Rule,
  method: DescMethod,
  request: Message,
  context: HandlerContext,
): InjectOptions & { readonly url: string } {
  const { url, headers, rest } = pathOf(rule, fieldsOf(method, request), context);
  const isQuery = rule.method === "GET" || rule.body?.length === 0;
  if (isQuery) return { method: rule.method, url, headers, query: textsOf(rest) };
  if (rule.method === "DELETE") return { method: rule.method, url, headers };
  const body =
    rule.body === undefined ? rest : rule.body.map((name) => rest[name]).find((one) => one !== undefined);
  if (rule.body === undefined && Object.keys(rest).length === 0) return { method: rule.method, url, headers };
  return {
    method: rule.method,
    url,
    headers: { ...headers, "content-type": "application/json" },
    payload: JSON.stringify(body ?? {}),
  };
}

/** A request's fields as JSON, by their names in the .proto file; those that are not set are absent. */
function fieldsOf(method: DescMethod, request: Message): JsonObject {
  return toJson(method.input, request, { useProtoFieldName: true }) as JsonObject;
}

function pathOf(rule: Rule, fields: JsonObject, { requestHeader }: HandlerContext) {
  const rest: Record<string, JsonObject[string]> = { ...fields };
  const url = `/api/v1${rule.path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = rest[name];
    delete rest[name];
    return encodeURIComponent(String(value ?? ""));
  })}`;
  const headers: Record<string, string> = { host: "localhost" };
  for (const name of passedOn) {
    const value = requestHeader.get(name);
    if (value !== null) headers[name] = value;
  }
  const { etag } = rest;
  delete rest.etag;
  if (typeof etag === "string" && etag !== "") headers["if-match"] = etag;
  return { url, headers, rest };
}

/** An empty text is no value: for the first page, many clients send an empty page_token. */
function textsOf(fields: JsonObject): Record<string, string> {
  const given = Object.entries(fields).filter(([, value]) => value !== "");
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

/** Fields of an answer that the protocol does not have are left out. */
function read(method: DescMethod, body: JsonValue): Message {
  return fromJson(method.output, body, { ignoreUnknownFields: true });
}
