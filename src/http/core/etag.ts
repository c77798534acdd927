// Conditional requests (RFC 9110, section 13) on resources with a revision.
//
// - An ETag is strong and covers the whole answer: "7-x", where x is a hash of the answer at revision 7.
// - If-Match compares revisions only: what a client may change depends on the definition, not on the state shown
//   with it.
// - A tag that was never sent is stale. A check sum in the tag reveals it, so that nothing is stored.

import { createHash, hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "./problem.ts";

interface Conditional {
  readonly headers: IncomingHttpHeaders;
}

/** A resource with an ETag. */
export interface Versioned {
  readonly id: string;
  /** From 1; each change of the definition adds one. */
  readonly revision: number;
}

const SHOWN_CHARS = 16;
const CHECK_CHARS = 8;

/** The ETag of an answer. @param body everything it shows */
export function etagOf(resource: Versioned, body: string | readonly Buffer[]): string {
  const digest = typeof body === "string" ? hash("sha256", body, "hex") : hashOf(body);
  return tagOf(resource, digest.slice(0, SHOWN_CHARS));
}

function hashOf(pieces: readonly Buffer[]): string {
  const whole = createHash("sha256");
  for (const piece of pieces) whole.update(piece);
  return whole.digest("hex");
}

/** The ETag of content without a revision: a hash of its bytes. */
export const contentTag = (content: string | Buffer): string =>
  `"${hash("sha256", content, "base64url").slice(0, 22)}"`;

function tagOf({ id, revision }: Versioned, shown: string): string {
  const check = hash("sha256", `${id} ${revision} ${shown}`, "hex").slice(0, CHECK_CHARS);
  return `"${revision}-${shown}${check}"`;
}

/**
 * Whether the caller knows the current revision. A weak ETag is another one.
 *
 * @throws Problem `precondition_required` without If-Match
 */
export function knowsCurrent({ headers }: Conditional, resource: Versioned): boolean {
  const given = headers["if-match"];
  if (given === undefined) {
    throw new Problem(
      "precondition_required",
      "This change needs the header If-Match with the resource's ETag, as a GET of it answers.",
    );
  }
  return tagsOf(given).some((tag) => tag === "*" || isOf(resource, tag));
}

function isOf(resource: Versioned, tag: string): boolean {
  const shown = new RegExp(`^"${resource.revision}-([0-9a-f]{${SHOWN_CHARS}})`).exec(tag)?.[1];
  return shown !== undefined && tag === tagOf(resource, shown);
}

/** The resource has changed since the caller read it. @param current the ETag that a GET would answer */
export function stale(current: string): Problem {
  return new Problem(
    "precondition_failed",
    `If-Match does not hold the current ETag, ${current} (quotes included). Read the resource again, then retry.`,
    { headers: { etag: current } },
  );
}

/** Whether a GET is answered with 304: the caller has this answer. Compares weakly. */
export function notModified({ headers }: Conditional, etag: string): boolean {
  const given = headers["if-none-match"];
  if (given === undefined) return false;
  return tagsOf(given).some((tag) => tag === "*" || tag === etag || tag === `W/${etag}`);
}

/** The entity tags of a header, quotes included; `*` only when it stands alone. Malformed tags are ignored. */
function tagsOf(header: string): readonly string[] {
  if (header.trim() === "*") return ["*"];
  return header.match(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? [];
}
