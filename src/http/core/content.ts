// Content that stays the same while the program runs, such as a page or a document, answered with its ETag.

import type { IncomingHttpHeaders } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { contentTag, notModified } from "./etag.ts";

export interface Content {
  /** Its media type. */
  readonly type: string;
  readonly body: string | Buffer;
  readonly etag: string;
}

export const contentOf = (type: string, body: string | Buffer): Content => ({
  type,
  body,
  etag: contentTag(body),
});

/** Sends the content, or 304 to a client that has it. @param headers besides those that every content has */
export function sendContent(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, body, etag }: Content,
  headers: Readonly<Record<string, string>> = {},
): FastifyReply {
  reply.headers({ etag, "cache-control": "no-cache", "x-content-type-options": "nosniff", ...headers });
  return notModified(request, etag) ? reply.code(304).send() : reply.type(type).send(body);
}

const GZIP = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i;

/** Whether the client takes a compressed answer. */
export const takesGzip = (headers: IncomingHttpHeaders): boolean =>
  GZIP.test(headers["accept-encoding"] ?? "");
