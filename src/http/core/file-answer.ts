// Sends a stored file, whole or in part; clients may have it already (304) or leave in the middle.
//
// - What is sent has the size and the hash that the headers say: the bytes of a stored file never change.
// - A file is open only while it is sent; it is closed when the client has it or has left.
// - A worker's file never runs with the gateway's rights: it is an attachment, its type is not sniffed, and it is
//   sandboxed if a browser shows it nevertheless.

import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { readRange } from "./byte-range.ts";
import { notModified } from "./etag.ts";
import { Problem } from "./problem.ts";

export interface StoredFile {
  /** Opens some of its bytes; both ends are included. Throws when they cannot be read. */
  readonly open: (first: number, last: number) => Promise<Readable>;
  readonly sizeBytes: number;
  /** SHA-256 of its bytes as hex: its ETag. */
  readonly sha256: string;
  readonly contentType: string;
  /** The name of the download; any text. */
  readonly fileName: string;
}

/** Revalidated each time: the file may be deleted, and so may the reader's access. */
const CACHE_CONTROL = "private, no-cache";

/**
 * Answers GET with the file and HEAD with its headers. The route must handle both methods.
 *
 * @throws Problem `range_not_satisfiable`; what opening the file throws
 */
export async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: StoredFile,
): Promise<FastifyReply> {
  const etag = `"${file.sha256}"`;
  if (notModified(request, etag))
    return reply.code(304).headers({ etag, "cache-control": CACHE_CONTROL }).send();
  const range = readRange(partAskedFor(request, etag), file.sizeBytes);
  switch (range.kind) {
    case "unsatisfiable":
      throw unsatisfiable(file.sizeBytes);
    case "whole":
      return sendBytes(request, reply, file, { status: 200, first: 0, last: file.sizeBytes - 1 });
    case "part":
      return sendBytes(request, reply, file, { status: 206, first: range.first, last: range.last });
    default:
      return range satisfies never;
  }
}

/** The Range header, if it counts: for GET, and with If-Range only while the client's part is of this very file. */
function partAskedFor({ method, headers }: FastifyRequest, etag: string): string | undefined {
  const condition = headers["if-range"];
  return method === "GET" && (condition === undefined || condition === etag) ? headers.range : undefined;
}

interface Part {
  readonly status: 200 | 206;
  readonly first: number;
  readonly last: number;
}

async function sendBytes(
  request: FastifyRequest,
  reply: FastifyReply,
  file: StoredFile,
  { status, first, last }: Part,
): Promise<FastifyReply> {
  const lengthBytes = last - first + 1;
  const isBodyless = request.method === "HEAD" || lengthBytes === 0;
  // Opened before any header of the file is set: opening may fail.
  const bytes = isBodyless ? undefined : await file.open(first, last);
  reply.code(status).headers({
    etag: `"${file.sha256}"`,
    "cache-control": CACHE_CONTROL,
    "accept-ranges": "bytes",
    "content-type": file.contentType,
    "content-length": lengthBytes,
    "content-disposition": attachment(file.fileName),
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
  });
  if (status === 206) reply.header("content-range", `bytes ${first}-${last}/${file.sizeBytes}`);
  return reply.send(bytes);
}

function unsatisfiable(sizeBytes: number): Problem {
  return new Problem(
    "range_not_satisfiable",
    `The range lies outside the file, which has ${sizeBytes} bytes. Ask for a part of it, or leave Range out.`,
    { headers: { "content-range": `bytes */${sizeBytes}` } },
  );
}

const PLAIN_NAME = /^[A-Za-z0-9 ._()+=,@-]+$/;

/** Content-Disposition (RFC 6266): an ASCII name, and the real one in addition where they differ. */
function attachment(fileName: string): string {
  if (PLAIN_NAME.test(fileName)) return `attachment; filename="${fileName}"`;
  const plain = fileName.replaceAll(/[^A-Za-z0-9 ._()+=,@-]/g, "_");
  const encoded = encodeURIComponent(fileName.toWellFormed()).replaceAll(
    /['()*!]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
