// What is done to a request that fits: its path, query, headers, method and body. The request stays one whole request
// of HTTP; what breaks that is in wire-mutations.ts.

import type { Draft, Making } from "./draft.ts";
import { removeHeader, setHeader } from "./draft.ts";
import {
  brokenJson,
  fittingFields,
  jsonObject,
  shaken,
  strangeHeaders,
  strangeJson,
  strangeText,
} from "./values.ts";

export type Mutation = (draft: Draft, making: Making) => void;

const otherMethods =
  "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND SEARCH MKCOL LOCK M-SEARCH PURGE LINK QUERY".split(
    " ",
  );
const contentTypes = [
  "",
  "text/plain",
  "application/xml",
  "application/x-www-form-urlencoded",
  "multipart/form-data",
  "multipart/form-data; boundary=x",
  "application/json; charset=utf-16",
  "application/json; charset=latin1",
  "application/json;;;",
  "application/json, text/plain",
  "APPLICATION/JSON",
  "application/merge-patch+json",
  "application/problem+json",
  "application/jsonx",
  "application/",
  "/",
  "*/*",
  "é",
  `application/json; a=${"x".repeat(2_000)}`,
];
const headerNames = [
  ..."Range If-Range If-Match If-None-Match If-Modified-Since Last-Event-ID Idempotency-Key Accept".split(
    " ",
  ),
  ..."Accept-Encoding Accept-Language Content-Encoding Authorization Cookie Origin Referer TE Trailer".split(
    " ",
  ),
  ..."X-Request-Id X-HTTP-Method-Override X-Forwarded-For X-Forwarded-Host Forwarded Via Sec-Fetch-Site".split(
    " ",
  ),
  ..."Access-Control-Request-Method Access-Control-Request-Headers Cache-Control DNT Date User-Agent".split(
    " ",
  ),
  ..."__proto__ constructor Content-Disposition Max-Forwards Proxy-Authorization Content-Location".split(" "),
];
const hosts = [
  "",
  "evil.example",
  "127.0.0.1",
  "localhost:1",
  "[::1]",
  "a b",
  "127.0.0.1:99999999",
  "x".repeat(300),
  "é",
];

/** By name, for the report. */
export const mutations: Readonly<Record<string, Mutation>> = {
  path_parameter(draft, { random }) {
    const segments = draft.path.split("/");
    // Not the prefix: what is below it is looked at by routes.
    segments[random.between(3, segments.length - 1)] = random.pick(strangeText);
    draft.path = segments.join("/");
  },
  path_shape(draft, { random }) {
    const { path } = draft;
    draft.path = random.pick([
      `${path}/`,
      `/${path}`,
      path.replaceAll("/", "//"),
      path.toUpperCase(),
      `${path};a=b`,
      `${path}%2f`,
      `${path}/..`,
      `${path}/../../../../etc/passwd`,
      `/api/v2${path.slice(7)}`,
      `/${encodeURIComponent(path.slice(1))}`,
      `/${path.slice(1).replace("/", "%2f")}`,
      `http://127.0.0.1${path}`,
      `http://evil.example${path}`,
      "/",
      "/docs/../openapi.json",
      "/api/v1",
      "/api/v1/runtime-runs",
      "/api/v1/blueprints/x/install",
    ]);
  },
  query_value(draft, { random }) {
    const names = draft.operation.parameters.filter((one) => one.in === "query").map(({ name }) => name);
    const name = names.length === 0 ? "page_size" : random.pick(names);
    draft.query.push(`${name}=${random.pick(strangeText)}`);
  },
  query_shape(draft, { random }) {
    const [first = "page_size=2"] = draft.query;
    const [name = ""] = first.split("=");
    draft.query.push(
      ...random.pick([
        [first, first],
        [`${name}[]=1`],
        [`${name}[a]=1`],
        [`${name}`],
        [`=${name}`],
        ["unknown=1"],
        ["__proto__=1"],
        ["constructor[prototype]=1"],
        ["", "", ""],
        ["?"],
        ["page_token="],
        ["page_token=YWJj"],
        Array.from({ length: 900 }, (_, i) => `q${i}`),
      ]),
    );
  },
  page_token(draft, { fixtures, random }) {
    const token = fixtures.query(draft.operation, "page_token", random) ?? "";
    const at = random.below(token.length + 1);
    draft.query = draft.query.filter((one) => !one.startsWith("page_token="));
    draft.query.push(
      `page_token=${random.pick([
        token.slice(0, at),
        token + token,
        `${token.slice(0, at)}A${token.slice(at + 1)}`,
        `${token.slice(0, at)}%00${token.slice(at)}`,
        token.toLowerCase(),
        [...token].reverse().join(""),
      ])}`,
    );
  },
  header_value(draft, { random }) {
    const own = draft.operation.parameters.filter((one) => one.in === "header").map(({ name }) => name);
    const name = random.pick(own.length > 0 && random.chance(0.5) ? own : headerNames);
    setHeader(draft, name, random.pick(strangeHeaders));
  },
  header_twice(draft, { random }) {
    const name = random.pick([...headerNames, "Content-Type"]);
    const [one, other] = [random.pick(strangeHeaders), random.pick(strangeHeaders)];
    draft.headers.push([name, one.slice(0, 4_000)], [name, other.slice(0, 4_000)]);
  },
  headers_many(draft, { random }) {
    const count = random.pick([50, 150, 2_500]);
    for (let i = 0; i < count; i++) draft.headers.push([`X-${i}`, "1"]);
  },
  host(draft, { random }) {
    setHeader(draft, "Host", random.pick(hosts));
  },
  host_missing(draft) {
    removeHeader(draft, "Host");
  },
  method(draft, { random }) {
    draft.method = random.pick(otherMethods);
  },
  content_type(draft, { random }) {
    draft.body ??= Buffer.from("{}");
    setHeader(draft, "Content-Type", random.pick(contentTypes));
  },
  content_type_missing(draft) {
    draft.body ??= Buffer.from("{}");
    removeHeader(draft, "Content-Type");
  },
  content_encoding(draft, { random }) {
    setHeader(
      draft,
      "Content-Encoding",
      random.pick(["gzip", "br", "deflate", "identity", "x", "gzip, gzip", ""]),
    );
  },
  body_unasked(draft) {
    draft.body = Buffer.from('{"a":1}');
    setHeader(draft, "Content-Type", "application/json");
  },
  body_strange(draft, { random }) {
    asJson(draft, random.pick(strangeJson));
  },
  body_broken(draft, { random }) {
    asJson(draft, random.pick(brokenJson));
  },
  body_field(draft, { surface, random }) {
    const { body } = draft.operation;
    const { properties = {} } = body === null ? {} : surface.resolve(body.schema);
    const names = Object.keys(properties);
    const fields = body === null ? [] : fittingFields(surface, body.schema, random);
    const name = names.length === 0 ? "a" : random.pick(names);
    asJson(draft, jsonObject([...fields.filter(([one]) => one !== name), [name, random.pick(strangeJson)]]));
  },
  body_unknown_field(draft, { surface, random }) {
    const { body } = draft.operation;
    const fields = body === null ? [] : fittingFields(surface, body.schema, random);
    const name = random.pick([
      "unknown",
      "",
      "__proto__",
      "constructor",
      "a/b~c",
      "\0",
      "x".repeat(3_000),
      "é😀",
    ]);
    asJson(draft, jsonObject([...fields, [name, random.pick(strangeJson)]]));
  },
  body_shaken(draft, { random }) {
    if (draft.body !== null) draft.body = shaken(draft.body, random);
  },
  body_torn(draft, { random }) {
    if (draft.body !== null) draft.body = draft.body.subarray(0, random.below(draft.body.length));
  },
  body_large(draft, { random }) {
    asJson(draft, `{"name":"${"x".repeat(random.pick([65_000, 65_536, 130_000]))}"}`);
  },
  body_chunked(draft) {
    draft.body ??= Buffer.from("{}");
    draft.framing = "chunked";
  },
};

function asJson(draft: Draft, body: string | Buffer): void {
  draft.body = Buffer.from(body as string);
  setHeader(draft, "Content-Type", "application/json");
}
