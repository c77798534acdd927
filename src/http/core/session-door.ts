// How a browser that has signed in is admitted (src/security/sessions.ts): by the cookie of its session, with the session's second
// key in a header.
//
// - Cookies reach every port of a host. So the cookie alone opens only documents that say nothing of what is here.
// - Only a page of this very origin may change anything: the browser must say so, twice.
// - A session that was opened with a share reads that run, and nothing else.

import type { IncomingHttpHeaders } from "node:http";
import type { SessionRecord } from "../../security/session-records.ts";
import type { Sessions, Shown } from "../../security/sessions.ts";
import { TOKEN_HOLDER } from "./auth.ts";
import { isLoopbackHost, isUnsafe } from "./origin-policy.ts";
import { pathOf } from "./path-of.ts";
import { Problem } from "./problem.ts";
import type { AskedOfRun } from "./run-token.ts";

const KEY_HEADER = "x-console-key";
/** Pages whose content is the same for everybody; what they show is asked for with the key. */
const DOCUMENT = /^(?:\/|\/openapi\.json|\/docs(?:\/[\w.-]*)?|\/api\/v1\/runs\/[\w-]{1,128}\/dashboard)$/;
const SIGN_IN = "Open /console and sign in.";

/** A request as it is judged here. */
export interface AskedBySession extends AskedOfRun {
  readonly headers: IncomingHttpHeaders;
}

/** What a request shows of a session; null: it has no cookie of one, or other credentials. */
export function sessionShown({ headers }: AskedBySession): Shown | null {
  if (headers.authorization !== undefined || headers.cookie === undefined) return null;
  const name = `${cookieName(headers.host)}=`;
  const pair = headers.cookie.split(";").find((one) => one.trim().startsWith(name));
  if (pair === undefined) return null;
  const key = headers[KEY_HEADER];
  return { secret: pair.trim().slice(name.length), key: typeof key === "string" ? key : null };
}

/** The Set-Cookie header that gives a browser its session; null takes it away. */
export function sessionCookie(host: string | undefined, secret: string | null): string {
  const secure = isLoopbackHost(host) ? "" : "; Secure";
  const ends = secret === null ? "; Max-Age=0" : "";
  return `${cookieName(host)}=${secret ?? ""}; HttpOnly; SameSite=Strict; Path=/${secure}${ends}`;
}

/** With the port: two gateways of one machine share its cookies. Elsewhere than on this machine only https may set it. */
function cookieName(host = ""): string {
  const port = /:(\d+)$/.exec(host)?.[1];
  return `${isLoopbackHost(host) ? "" : "__Host-"}troupe${port === undefined ? "" : `_${port}`}`;
}

/**
 * Admits a request by what it shows of a session.
 *
 * @returns the principal that it is made as, or what refuses it
 */
export async function admitSession(
  sessions: Pick<Sessions, "find">,
  asked: AskedBySession,
  shown: Shown,
): Promise<string | Problem> {
  const found = await sessions.find(shown);
  if (found.kind === "none") return new Problem("unauthorized", `Your session has ended. ${SIGN_IN}`);
  const { method = "", url = "", headers } = asked;
  if (isUnsafe(method) && !isSameOrigin(headers)) {
    return new Problem("forbidden", "With a session, only the console's own pages may change anything.");
  }
  if (!found.hasKey && (isUnsafe(method) || !DOCUMENT.test(pathOf(url)))) {
    return new Problem(
      "unauthorized",
      `A session's cookie opens nothing without the key that its pages hold. ${SIGN_IN}`,
    );
  }
  if (!mayReach(found.session, { method, url })) {
    return new Problem(
      "forbidden",
      `This link shows the run ${found.session.runId} alone. Sign out in /console, then sign in with the token.`,
    );
  }
  return principalOf(found.session);
}

/** Browsers set both by themselves. */
function isSameOrigin({ "sec-fetch-site": site, origin, host }: IncomingHttpHeaders): boolean {
  return site === "same-origin" && (origin === `http://${host}` || origin === `https://${host}`);
}

/** What every session may ask for. */
const OWN: ReadonlySet<string> = new Set(["/console/session", "/console/tickets"]);

/** Whether a session may ask for this; one of a share reads its run. */
export function mayReach({ runId }: SessionRecord, { method = "", url = "" }: AskedOfRun): boolean {
  const path = pathOf(url);
  if (runId === null || OWN.has(path)) return true;
  return !isUnsafe(method) && `${path}/`.startsWith(`/api/v1/runs/${runId}/`);
}

const principalOf = ({ runId, openedBy }: SessionRecord): string =>
  runId === null ? TOKEN_HOLDER : `share:${openedBy}`;
