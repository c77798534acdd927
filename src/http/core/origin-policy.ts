// Which web pages may talk to an API.
//
// - Without a token, only requests to a name of this server are answered: a loopback name, the bound address, or one in
//   SVC_ALLOWED_HOSTS. A page cannot get here through a name of its own that it points to this machine (DNS rebinding).
// - A page of another origin changes nothing, unless its origin is in SVC_CORS_ORIGINS. It reads nothing either; links
//   may be followed.
// - Answers allow an allowed origin to read them; credentials are never allowed.
// - All of this holds whatever address is bound.
// - A health check, which a manifest may point at any address, changes nothing.

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { CHECK_AGENT } from "../../services/checks/http.ts";
import { Problem, shown } from "./problem.ts";

const LOOPBACK_NAME = /^(localhost|127(\.\d{1,3}){3}|::1|[a-z0-9-]+\.localhost)$/;
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export const isUnsafe = (method: string) => !safeMethods.has(method);

type Headers = Readonly<Record<string, string>>;

const preflightHeaders: Headers = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers":
    "authorization, content-type, idempotency-key, if-match, if-none-match, if-range, last-event-id, prefer, range, x-request-id",
  "access-control-max-age": "600",
};
const EXPOSED =
  "etag, location, x-request-id, idempotency-replayed, preference-applied, retry-after, content-disposition, content-range, accept-ranges, allow";
const none: Headers = Object.freeze({});

export interface OriginSettings {
  /** Whether callers have to show a token, which a page of another site does not have. */
  readonly hasToken: boolean;
  /** What the listener binds: a name or an address. */
  readonly boundHost: string;
  /** Further names of this server (SVC_ALLOWED_HOSTS), in lower case and without a port. */
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}

export class OriginPolicy {
  readonly #hasToken: boolean;
  readonly #names: ReadonlySet<string>;
  /** The headers of answers to each allowed origin. */
  readonly #allowed: ReadonlyMap<string, Headers>;
  readonly #withoutOrigin: Headers;

  constructor({ hasToken, boundHost, allowedHosts, corsOrigins }: OriginSettings) {
    this.#hasToken = hasToken;
    this.#names = new Set([boundHost.toLowerCase(), ...allowedHosts]);
    this.#allowed = new Map(corsOrigins.map((origin) => [origin, answerHeaders(origin)]));
    // A cache must not hand one origin's answer to another.
    this.#withoutOrigin = corsOrigins.length === 0 ? none : Object.freeze({ vary: "Origin" });
  }

  /** What every answer to this request carries, streams and problems included. */
  headers(request: IncomingHttpHeaders): Headers {
    const { origin } = request;
    return (origin === undefined ? undefined : this.#allowed.get(origin)) ?? this.#withoutOrigin;
  }

  /** Headers of the 204 that a browser wants before it sends what a page of an allowed origin asks for, or null. */
  preflight(method: string, request: IncomingHttpHeaders): Headers | null {
    const isPreflight = method === "OPTIONS" && request["access-control-request-method"] !== undefined;
    return isPreflight && request.origin !== undefined && this.#allowed.has(request.origin)
      ? preflightHeaders
      : null;
  }

  /** A client without a Host header is no browser. */
  refuseHost({ headers: { host }, socket }: IncomingMessage): Problem | null {
    if (this.#hasToken || host === undefined) return null;
    const name = nameOf(host);
    if (isLoopbackHost(host) || this.#names.has(name)) return null;
    // A listener on all addresses is known by the one at which it was reached. No web site has that as its name.
    if (name === socket.localAddress?.replace(/^::ffff:/, "")) return null;
    return new Problem(
      "forbidden",
      `${shown(host)} is not a name of this server. Use its address, such as 127.0.0.1, or list the name in SVC_ALLOWED_HOSTS.`,
    );
  }

  /** Of a request of an unsafe method. */
  refuseChange({ headers }: IncomingMessage): Problem | null {
    if (headers["user-agent"] === CHECK_AGENT) {
      return new Problem("forbidden", "A service's health check may only read here: give it the method GET.");
    }
    const { origin } = headers;
    const isForeign = origin === undefined ? isCrossSite(headers) : !this.#isKnown(origin, headers.host);
    return isForeign ? otherSites("take changes from") : null;
  }

  /** Of any other request. */
  refuseRead({ headers }: IncomingMessage): Problem | null {
    if (!isCrossSite(headers) || headers["sec-fetch-mode"] === "navigate") return null;
    const { origin } = headers;
    if (origin !== undefined && this.#isKnown(origin, headers.host)) return null;
    return otherSites("answer to");
  }

  #isKnown(origin: string, host: string | undefined): boolean {
    return this.#allowed.has(origin) || origin === `http://${host}` || origin === `https://${host}`;
  }
}

/** Browsers add the header by themselves; a page can neither set it nor leave it out. */
const isCrossSite = (headers: IncomingHttpHeaders) => headers["sec-fetch-site"] === "cross-site";

/** Whether a Host header names this machine as only itself can reach it. */
export const isLoopbackHost = (host = ""): boolean => LOOPBACK_NAME.test(nameOf(host));

/** A Host header without its port, in lower case; an IPv6 address without brackets. */
function nameOf(host: string): string {
  const [, name = host] = /^\[(.*)\](?::\d+)?$/.exec(host) ?? /^([^:]*)(?::\d+)?$/.exec(host) ?? [];
  return name.toLowerCase();
}

const otherSites = (what: string) =>
  new Problem(
    "forbidden",
    `This server does not ${what} other web sites. SVC_CORS_ORIGINS lists those that may call the gateway.`,
  );

/** With two Host headers a proxy and this server may see different names: such requests are refused. */
export function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === "host") count++;
  }
  return count > 1;
}

function answerHeaders(origin: string): Headers {
  return Object.freeze({
    "access-control-allow-origin": origin,
    "access-control-expose-headers": EXPOSED,
    vary: "Origin",
  });
}
