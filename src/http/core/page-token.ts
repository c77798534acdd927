// Page tokens: where the next page of a list begins.
//
// - A token is valid for the principal and the query that it was made for, for 24 hours, and authenticated. The
//   server stores nothing.
// - A token has one spelling: another text that decodes to the same bytes is refused.

import { createHmac, timingSafeEqual } from "node:crypto";
import { Problem } from "./problem.ts";

export const PAGE_TOKEN_MS = 24 * 60 * 60 * 1_000;
const MAC_BYTES = 16;
const TOKEN_CHARS_MAX = 1_024;

/** The sort key of the last item that was shown. */
export type Position = readonly (string | number)[];

/** The caller and the list that a token belongs to. */
export interface Walk {
  readonly principal: string;
  /** Canonical text of the list and its filters. */
  readonly query: string;
}

export interface PageState {
  readonly position: Position;
  /** Items that the walk may still show; null when it has no limit. */
  readonly remaining: number | null;
}

/** @param key 32 random bytes that stay the same over restarts */
export function encodePageToken(key: Buffer, walk: Walk, state: PageState, nowMs: number): string {
  const content = Buffer.from(JSON.stringify([nowMs + PAGE_TOKEN_MS, state.remaining, ...state.position]));
  const token = Buffer.concat([macOf(key, walk, content), content]).toString("base64url");
  // Sort keys are ids and times that this server made, so this is a mistake of a list.
  if (token.length > TOKEN_CHARS_MAX) throw new Error("a list's sort key is too long for a page token");
  return token;
}

/** @throws Problem `invalid_page_token` */
export function decodePageToken(key: Buffer, walk: Walk, token: string, nowMs: number): PageState {
  if (token.length > TOKEN_CHARS_MAX) throw invalid();
  const bytes = Buffer.from(token, "base64url");
  if (bytes.length <= MAC_BYTES || bytes.toString("base64url") !== token) throw invalid();
  const content = bytes.subarray(MAC_BYTES);
  if (!timingSafeEqual(bytes.subarray(0, MAC_BYTES), macOf(key, walk, content))) throw invalid();
  // Authenticated: it is what encodePageToken wrote.
  const [expiresAtMs, remaining, ...position] = JSON.parse(content.toString()) as [
    number,
    number | null,
    ...(string | number)[],
  ];
  if (nowMs >= expiresAtMs) throw invalid();
  return { position, remaining };
}

function macOf(key: Buffer, { principal, query }: Walk, content: Buffer): Buffer {
  // The list's JSON keeps the two texts apart, and its end from the content.
  return createHmac("sha256", key)
    .update(JSON.stringify([principal, query]))
    .update(content)
    .digest()
    .subarray(0, MAC_BYTES);
}

function invalid(): Problem {
  return new Problem(
    "invalid_page_token",
    "The page_token is not one that this query was answered with in the last 24 hours. Start again without it.",
    {
      errors: [
        { path: "page_token", code: "invalid_value", message: "is changed, expired, or from another query" },
      ],
    },
  );
}
