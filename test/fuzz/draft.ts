// A request on its way to the wire: first as the document wants it, then as the mutations have left it.

import type { Random } from "../simulation/random.ts";
import type { Fixtures } from "./fixtures.ts";
import type { Operation, Surface } from "./surface.ts";
import { uploadBody } from "./upload.ts";
import { fittingFields, fittingText, jsonObject } from "./values.ts";

export interface Draft {
  readonly operation: Operation;
  method: string;
  path: string;
  /** Each `name=value`, as it goes into the URL. */
  query: string[];
  version: string;
  eol: string;
  readonly headers: [string, string][];
  body: Buffer | null;
  /** Null: it says its own length, right or wrong, in `headers`. */
  framing: "length" | "chunked" | null;
  /** Sent behind it without waiting. */
  next: Buffer;
  /** How many answers a server must give for the whole of it; null: as many as it likes before it closes. */
  answers: number | null;
  /** Where it breaks off, as a part of its bytes. */
  cutAt: number | null;
  /** What the client does then. */
  leaves: boolean;
  /** How many pieces it is sent in, with pauses. */
  pieces: number;
  /** Names of what was done to it. */
  readonly marks: string[];
}

export interface Making {
  readonly surface: Surface;
  readonly fixtures: Fixtures;
  readonly random: Random;
}

/** A request that fits the document. */
export function draftOf(making: Making, requestId: string): Draft {
  const { surface, fixtures, random } = making;
  const operation = random.pick(surface.operations);
  const draft: Draft = {
    operation,
    method: operation.method,
    path: operation.path.replace(/\{(\w+)\}/g, (_, name: string) => fixtures.id(operation, name, random)),
    query: operation.parameters
      .filter((one) => one.in === "query" && random.chance(0.3))
      .map(
        (one) =>
          `${one.name}=${fixtures.query(operation, one.name, random) ?? fittingText(surface, one.schema, random)}`,
      ),
    version: "HTTP/1.1",
    eol: "\r\n",
    headers: [
      ["Host", fixtures.host],
      ["X-Request-Id", requestId],
    ],
    body: null,
    framing: "length",
    next: Buffer.alloc(0),
    answers: 1,
    cutAt: null,
    leaves: false,
    pieces: 1,
    marks: [],
  };
  for (const { name, in: place } of operation.parameters) {
    if (place === "header" && random.chance(0.5))
      setHeader(draft, name, fixtures.header(operation, name, random));
  }
  giveBody(making, draft);
  return draft;
}

function giveBody({ surface, fixtures, random }: Making, draft: Draft): void {
  const { body } = draft.operation;
  if (body === null) return;
  if (body.contentType === "multipart/form-data") {
    const upload = uploadBody(random, fixtures.zip);
    draft.body = upload.body;
    setHeader(draft, "Content-Type", upload.contentType);
    return;
  }
  const fields = fittingFields(surface, body.schema, random).map(
    ([name, value]) => [name, fixtures.field(name, random) ?? value] as const,
  );
  draft.body = Buffer.from(jsonObject(fields));
  setHeader(draft, "Content-Type", body.contentType);
}

/** Sets a header in place of what there is of this name. */
export function setHeader(draft: Draft, name: string, value: string): void {
  removeHeader(draft, name);
  draft.headers.push([name, value]);
}

export function removeHeader(draft: Draft, name: string): void {
  const wanted = name.toLowerCase();
  for (let i = draft.headers.length - 1; i >= 0; i--) {
    if (draft.headers[i]?.[0].toLowerCase() === wanted) draft.headers.splice(i, 1);
  }
}

/** The bytes, in the pieces in which they are sent. */
export function bytesOf(draft: Draft): readonly Buffer[] {
  const { eol, next, cutAt, pieces } = draft;
  const target = draft.path + (draft.query.length === 0 ? "" : `?${draft.query.join("&")}`);
  const { headers, body } = framed(draft);
  const lines = [
    `${draft.method} ${target} ${draft.version}`.trimEnd(),
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  const whole = Buffer.concat([Buffer.from(lines.join(eol) + eol + eol, "latin1"), body, next]);
  const sent = cutAt === null ? whole : whole.subarray(0, Math.floor(whole.length * cutAt));
  const size = Math.max(1, Math.ceil(sent.length / pieces));
  return Array.from({ length: Math.min(pieces, sent.length) }, (_, i) =>
    sent.subarray(i * size, (i + 1) * size),
  );
}

function framed({ headers, body, framing }: Draft) {
  const content = body ?? Buffer.alloc(0);
  if (framing === null || (body === null && framing === "length")) return { headers, body: content };
  if (framing === "length") {
    return { headers: [...headers, ["Content-Length", String(content.length)] as const], body: content };
  }
  const chunks: Buffer[] = [];
  for (let at = 0; at < content.length; at += 1_000) {
    const chunk = content.subarray(at, at + 1_000);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  chunks.push(Buffer.from("0\r\n\r\n"));
  return { headers: [...headers, ["Transfer-Encoding", "chunked"] as const], body: Buffer.concat(chunks) };
}
