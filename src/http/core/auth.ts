// Who is asking: the holder of an API token, a reader of one run with that run's token, or, where no API token is
// set, anybody on this machine.
//
// A1. Secrets are compared in constant time (token-check.ts).
// A2. All tokens are one principal, so that what belongs to a caller outlives the rotation of its token.

import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "./problem.ts";
import { keyInCookie } from "./run-key.ts";
import type { AskedOfRun, RunTokens } from "./run-token.ts";
import { tokenCheck } from "./token-check.ts";

export type Access =
  | { readonly kind: "granted"; readonly principal: string; readonly isBasic: boolean }
  | { readonly kind: "refused"; readonly problem: Problem };

export const ANONYMOUS = "anonymous";
/** Whoever has one of the configured tokens. */
const TOKEN_HOLDER = "token";

/** What is looked at of a request. */
export interface Asking extends AskedOfRun {
  readonly headers: IncomingHttpHeaders;
}

/**
 * Makes the check of a request's Authorization header.
 *
 * @param tokens the API tokens; without any, everything is granted to `anonymous`
 * @param runTokens accepted beside it
 * @returns a function that allocates nothing for a request that it grants to an API token, but the digest
 */
export function authenticator(tokens: readonly string[], runTokens: RunTokens): (asking: Asking) => Access {
  if (tokens.length === 0) {
    const anybody: Access = Object.freeze({ kind: "granted", principal: ANONYMOUS, isBasic: false });
    return () => anybody;
  }
  const isToken = tokenCheck(tokens);
  const principal = TOKEN_HOLDER;
  const byBearer: Access = Object.freeze({ kind: "granted", principal, isBasic: false });
  const byBasic: Access = Object.freeze({ kind: "granted", principal, isBasic: true });
  return (asking) => {
    const { headers } = asking;
    const given = credentials(headers.authorization);
    if (given === null) {
      const key = keyInCookie(headers.cookie);
      const runId = key === null ? null : runTokens.runRead(asking, key);
      return runId === null ? refused(headers) : reader(runId);
    }
    if (isToken(given.secret)) return given.isBasic ? byBasic : byBearer;
    const runId = given.isBasic ? null : runTokens.runRead(asking, given.secret);
    return runId === null ? refused(headers) : reader(runId);
  };
}

const reader = (runId: string): Access => ({ kind: "granted", principal: `run:${runId}`, isBasic: false });

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
    ? "The token in the Authorization header is none of those in SVC_API_TOKEN."
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
