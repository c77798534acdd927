// Which web pages may talk to the gateway.
//
// O1. Without a token, only requests to a loopback host name are answered: a page cannot reach the gateway through a
//     name of its own that it points to this machine (DNS rebinding).
// O2. A page of another origin changes nothing, unless its origin is allowed by name.
// O3. Answers say which allowed origin may read them; cookies and stored passwords are never asked for.

import type { IncomingHttpHeaders } from "node:http";
import { isLoopbackHost } from "./local-callers.ts";
import { Problem } from "./problem.ts";

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export const isUnsafe = (method: string) => !safeMethods.has(method);

type Headers = Readonly<Record<string, string>>;

const preflightHeaders: Headers = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers":
    "authorization, content-type, idempotency-key, if-match, if-none-match, if-range, last-event-id, range, x-request-id",
  "access-control-max-age": "600",
};
const EXPOSED =
  "etag, location, x-request-id, idempotency-replayed, retry-after, content-disposition, content-range, accept-ranges, allow";
const none: Headers = Object.freeze({});

export interface OriginSettings {
  readonly hasToken: boolean;
  readonly corsOrigins: readonly string[];
}

export class OriginPolicy {
  readonly #hasToken: boolean;
  /** The headers of answers to each allowed origin. */
  readonly #allowed: ReadonlyMap<string, Headers>;
  readonly #withoutOrigin: Headers;

  constructor({ hasToken, corsOrigins }: OriginSettings) {
    this.#hasToken = hasToken;
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

  /** O1. A client without a Host header is no browser. */
  refuseHost({ host }: IncomingHttpHeaders): Problem | null {
    if (this.#hasToken || host === undefined || isLoopbackHost(host)) return null;
    return new Problem(
      "forbidden",
      "Without SVC_API_TOKEN this server answers only to loopback host names, such as 127.0.0.1.",
    );
  }

  /** O2, for an unsafe method. */
  refuseOrigin({ origin, host }: IncomingHttpHeaders): Problem | null {
    if (origin === undefined || this.#allowed.has(origin)) return null;
    if (host !== undefined && (origin === `http://${host}` || origin === `https://${host}`)) return null;
    return new Problem(
      "forbidden",
      "This server does not take changes from other web sites. SVC_CORS_ORIGINS lists those it does.",
    );
  }
}

function answerHeaders(origin: string): Headers {
  return Object.freeze({
    "access-control-allow-origin": origin,
    "access-control-expose-headers": EXPOSED,
    vary: "Origin",
  });
}
