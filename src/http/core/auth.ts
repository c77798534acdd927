// Authentication: by an API token, by a run's token for reading that run, or, where no API token is set, as anonymous.
//
// - Secrets are compared in constant time (token-check.ts).
// - All tokens are one principal, so that rotating a token takes nothing away from its caller.

import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "./problem.ts";
import { keyInCookie } from "./run-key.ts";
import type { AskedOfRun, RunTokens } from "./run-token.ts";
import { tokenCheck } from "./token-check.ts";

export type Access =
  | { readonly kind: "granted"; readonly principal: string; readonly isBasic: boolean }
  | { readonly kind: "refused"; readonly problem: Problem };

export const ANONYMOUS = "anonymous";
/** The principal of every configured token, and of who has signed in with one. */
export const TOKEN_HOLDER = "token";

/** The parts of a request that are checked. */
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
  // The Basic challenge makes a browser ask for a password; programs do not get it.
  const challenge = wantsHtml(headers) ? [bearer, 'Basic realm="Troupe", charset="UTF-8"'] : bearer;
  const detail = wasSent
    ? "The token in the Authorization header is none of those in SVC_API_TOKEN."
    : "This server wants its API token. Send the header Authorization: Bearer and the value of SVC_API_TOKEN.";
  return {
    kind: "refused",
    problem: new Problem("unauthorized", detail, { headers: { "www-authenticate": challenge } }),
  };
}

/** A browser adds a stored Basic password to requests of other sites' pages too, so those may not change anything. */
export function crossSiteBasic(headers: IncomingHttpHeaders): Problem | null {
  const site = headers["sec-fetch-site"];
  if (site === "same-origin" || site === "none") return null;
  return new Problem(
    "forbidden",
    "With Basic authentication, only this server's own pages may change anything. Use Authorization: Bearer.",
  );
}

/** Whether a browser shows the answer as a page. */
export const wantsHtml = ({ accept }: IncomingHttpHeaders): boolean =>
  accept?.toLowerCase().includes("text/html") === true;
