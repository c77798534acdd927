// Who is asking: the holder of the one API token, a reader of one run with that run's token, or, where no API token is
// set, anybody on this machine.
//
// A1. Secrets are compared as digests, in constant time.
// A2. The principal is never the token; it may be stored and compared.

import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "./problem.ts";
import type { AskedOfRun, RunTokens } from "./run-token.ts";

export type Access =
  | { readonly kind: "granted"; readonly principal: string; readonly isBasic: boolean }
  | { readonly kind: "refused"; readonly problem: Problem };

export const ANONYMOUS = "anonymous";

/** What is looked at of a request. */
export interface Asking extends AskedOfRun {
  readonly headers: IncomingHttpHeaders;
}

/**
 * Makes the check of a request's Authorization header.
 *
 * @param token the API token; null grants everything to `anonymous`
 * @param runTokens accepted beside it
 * @returns a function that allocates nothing for a request that it grants to the API token, but the digest
 */
export function authenticator(token: string | null, runTokens: RunTokens): (asking: Asking) => Access {
  if (token === null) {
    const anybody: Access = Object.freeze({ kind: "granted", principal: ANONYMOUS, isBasic: false });
    return () => anybody;
  }
  const expected = digest(token);
  const principal = `token_${expected.toString("hex").slice(0, 16)}`;
  const byBearer: Access = Object.freeze({ kind: "granted", principal, isBasic: false });
  const byBasic: Access = Object.freeze({ kind: "granted", principal, isBasic: true });
  return (asking) => {
    const { headers } = asking;
    const given = credentials(headers.authorization);
    if (given === null) return refused(headers);
    if (timingSafeEqual(digest(given.secret), expected)) return given.isBasic ? byBasic : byBearer;
    const runId = given.isBasic ? null : runTokens.runRead(asking, given.secret);
    return runId === null ? refused(headers) : reader(runId);
  };
}

const reader = (runId: string): Access => ({ kind: "granted", principal: `run:${runId}`, isBasic: false });

const digest = (text: string) => hash("sha256", text, "buffer");

interface Credentials {
  readonly secret: string;
  readonly isBasic: boolean;
}

function credentials(header: string | undefined): Credentials | null {
  if (header === undefined) return null;
  const space = header.indexOf(" ");
  const scheme = header.slice(0, space).toLowerCase();
  const rest = header.slice(space + 1).trim();
  if (scheme === "bearer") return { secret: rest, isBasic: false };
  if (scheme !== "basic") return null;
  const userAndPassword = Buffer.from(rest, "base64").toString("utf8");
  const colon = userAndPassword.indexOf(":");
  return colon < 0 ? null : { secret: userAndPassword.slice(colon + 1), isBasic: true };
}

function refused(headers: IncomingHttpHeaders): Access {
  const wasSent = headers.authorization !== undefined;
  const bearer = wasSent ? 'Bearer error="invalid_token"' : "Bearer";
  // A browser that meets the Basic challenge asks its user for a password; a program must not be led there.
  const isBrowser = headers.accept?.toLowerCase().includes("text/html") === true;
  const challenge = isBrowser ? [bearer, 'Basic realm="Troupe", charset="UTF-8"'] : bearer;
  const detail = wasSent
    ? "The token in the Authorization header is not the one in SVC_API_TOKEN."
    : "This server wants its API token. Send the header Authorization: Bearer and the value of SVC_API_TOKEN.";
  return {
    kind: "refused",
    problem: new Problem("unauthorized", detail, { headers: { "www-authenticate": challenge } }),
  };
}

/** A browser adds a stored Basic password to whatever a foreign page sends, so that page must not change anything. */
export function crossSiteBasic(headers: IncomingHttpHeaders): Problem | null {
  const site = headers["sec-fetch-site"];
  if (site === "same-origin" || site === "none") return null;
  return new Problem(
    "forbidden",
    "With Basic authentication, only this server's own pages may change anything. Use Authorization: Bearer.",
  );
}
