// Conditional requests (RFC 9110, section 13) on resources with a revision.
//
// E1. An ETag is strong: "7", or "7-x" where x stands for what the answer holds beside revision 7.
// E2. If-Match compares revisions only: what a client may change depends on the definition, not on what was shown
//     with it.

import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "./problem.ts";

interface Conditional {
  readonly headers: IncomingHttpHeaders;
}

/**
 * The ETag of an answer.
 *
 * @param revision of the resource, from 1; each change adds one
 * @param shownWith what else the answer depends on, such as where a job's runs stand; letters and digits
 *
 * @example etagOf(7); // "7", quotes included
 */
export function etagOf(revision: number, shownWith?: string): string {
  return shownWith === undefined ? `"${revision}"` : `"${revision}-${shownWith}"`;
}

/**
 * Checks that the caller knows the current revision.
 *
 * @throws Problem `precondition_required` without If-Match; `precondition_failed`, with the current ETag in the header,
 *   when it holds another one. A weak ETag is another one.
 */
export function requireIfMatch({ headers }: Conditional, revision: number): void {
  const given = headers["if-match"];
  if (given === undefined) {
    throw new Problem(
      "precondition_required",
      "This change needs the header If-Match with the resource's ETag, as a GET of it answers.",
    );
  }
  const isCurrent = tagsOf(given).some((tag) => tag === "*" || revisionOf(tag) === String(revision));
  if (!isCurrent) throw stale(revision);
}

/** The resource has changed since the caller read it. */
export function stale(revision: number): Problem {
  const current = etagOf(revision);
  return new Problem(
    "precondition_failed",
    `If-Match does not hold the current ETag, ${current} (quotes included). Read the resource again, then retry.`,
    { headers: { etag: current } },
  );
}

/** Whether a GET is to be answered with 304: the caller has just this answer. Compares weakly. */
export function notModified({ headers }: Conditional, etag: string): boolean {
  const given = headers["if-none-match"];
  if (given === undefined) return false;
  return tagsOf(given).some((tag) => tag === "*" || tag === etag || tag === `W/${etag}`);
}

/** The entity tags of a header, quotes included; `*` only when it stands alone. What is no tag is left out. */
function tagsOf(header: string): readonly string[] {
  if (header.trim() === "*") return ["*"];
  return header.match(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? [];
}

/** Null for a weak tag: it never matches here. */
function revisionOf(tag: string): string | null {
  return /^"(\d{1,15})(?:-[^"]*)?"$/.exec(tag)?.[1] ?? null;
}
