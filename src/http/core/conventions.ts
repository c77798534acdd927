// The conventions of the gateway: what happens to every request before its route, in one hook made of the modules beside
// this file. The order matters:
//
// - Request id and CORS headers come first: every answer has them.
// - Then the host name, preflights, the token, the rate limit, and last the origin of the page that sent the request.
// - Requests that the framework cannot route (an undecodable URL) pass the same checks.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from "fastify";
import type { Sessions, Shown } from "../../security/sessions.ts";
import { ANONYMOUS, authenticator, crossSiteBasic, wantsHtml } from "./auth.ts";
import { acceptJson } from "./json-body.ts";
import { hasTwoHosts, isUnsafe, OriginPolicy, type OriginSettings } from "./origin-policy.ts";
import { answerBrokenRequest, answerConnect, badUrl } from "./outside-routes.ts";
import { pathOf } from "./path-of.ts";
import { PROBLEM_TYPE, Problem, problemText } from "./problem.ts";
import { answerProblems, sendProblem } from "./problem-answers.ts";
import { callerOf, RateLimit } from "./rate-limit.ts";
import { continueWhenAllowed } from "./read-rest.ts";
import { openedByKey } from "./run-key.ts";
import type { RunTokens } from "./run-token.ts";
import { admitSession, sessionShown } from "./session-door.ts";
import { SessionStreams } from "./session-streams.ts";
import { validateStrictly } from "./strict-validation.ts";
import type { Tickets } from "./tickets.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller: `anonymous`, `token`, `run:` and the id of the run whose token was sent, or `share:` and a share's. */
    principal: string;
    /** To be told of a response that is a stream; null where nothing but the client ends it. */
    onStream: ((response: ServerResponse) => void) | null;
  }
}

export interface ConventionSettings extends Omit<OriginSettings, "hasToken"> {
  /** Empty: no authentication. */
  readonly apiTokens: readonly string[];
  /** The tokens for reading single runs. */
  readonly runTokens: RunTokens;
  /** Of browsers. */
  readonly sessions: Pick<Sessions, "find" | "isGood" | "onEnd">;
  readonly tickets: Pick<Tickets, "take">;
  /** For each principal or client address; 0: no limit. */
  readonly requestsPerMinuteMax: number;
  /** Wall time in ms since 1970. */
  readonly nowMs: () => number;
  /** Makes request ids unique among processes; letters and digits. */
  readonly processId: string;
}

export interface Conventions {
  /** Options that the server must be made with; `http` is to be merged with the server's own. */
  readonly serverOptions: ServerOptions;
  /** To be called once, before any route is registered. */
  install(app: FastifyInstance): void;
}

type ServerOptions = Required<
  Pick<FastifyServerOptions, "genReqId" | "clientErrorHandler" | "frameworkErrors" | "return503OnClosing">
> & {
  readonly routerOptions: { readonly maxParamLength: number };
  readonly http: { readonly requireHostHeader: boolean };
};

const OPEN_PATH = "/api/v1/health";
const openFolders: readonly string[] = ["/schemas/", "/console/"];
const WEBHOOKS = "/hooks/";
const CONSOLE = "/console";
/** Where browsers sign in. */
const SIGN_IN = "/console/session";
const URL_CHARS_MAX = 8192;

/**
 * Makes the gateway's conventions.
 *
 * @example
 * const conventions = gatewayConventions(settings);
 * const app = Fastify({ ...conventions.serverOptions, bodyLimit });
 * conventions.install(app);
 */
export function gatewayConventions(settings: ConventionSettings): Conventions {
  const admission = new Admission(settings);
  const nextId = requestIds(settings.processId);
  /** For what is no request, and yet is answered under an id. */
  const write = (problem: Problem) => {
    const id = nextId({ headers: {} });
    return {
      headers: { "Content-Type": PROBLEM_TYPE, "X-Request-Id": id },
      body: problemText(problem, id),
    };
  };
  return {
    serverOptions: {
      genReqId: nextId,
      clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket as Socket, write),
      frameworkErrors: (_error, request, reply) => {
        const [asked, answer] = [request as FastifyRequest, reply as FastifyReply];
        admission.check(asked, answer, (refused) => sendProblem(asked, answer, refused ?? badUrl(asked.url)));
      },
      // The framework's own 503 is no problem body; routes answer 503 themselves while the program stops.
      return503OnClosing: false,
      // An id of any length is answered with 404.
      routerOptions: { maxParamLength: URL_CHARS_MAX },
      // Node's own answer has no body.
      http: { requireHostHeader: false },
    },
    install(app) {
      app.decorateRequest("principal", ANONYMOUS);
      app.decorateRequest("onStream", null);
      answerOneAtATime(app);
      answerProblems(app);
      acceptJson(app);
      validateStrictly(app);
      app.addHook("onRequest", (request, reply, done) => admission.check(request, reply, done));
      continueWhenAllowed(app);
      // An unknown expectation is ignored, as RFC 9110 allows: Node's own answer has no body.
      app.server.on("checkExpectation", (request, response) => {
        app.server.emit("request", request, response);
      });
      app.server.on("connect", (_request, socket) => answerConnect(socket as Socket, write));
    },
  };
}

/**
 * Handles the pipelined requests of a connection one after the other. Node would handle all of them at once and buffer
 * every answer, so that a few kilobytes of requests for large pages would fill the memory. To be called before any other
 * hook: a request that waits must not have passed one.
 */
function answerOneAtATime(app: FastifyInstance): void {
  app.addHook("onRequest", (_request, { raw }, done) => {
    // A response gets its socket once those before it have been sent; never when the client has left, and then it is
    // collected with its request.
    if (raw.socket === null) raw.once("socket", () => done());
    else done();
  });
}

const SANE = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Makes the source of request ids: the client's own if it is well-formed, else a new one.
 *
 * @param processId makes the ids unique among processes; letters and digits
 */
function requestIds(processId: string): (request: Pick<IncomingMessage, "headers">) => string {
  let count = 0;
  return ({ headers }) => {
    const given = headers["x-request-id"];
    if (typeof given === "string" && SANE.test(given)) return given;
    return `req_${processId}_${(++count).toString(36)}`;
  };
}

class Admission {
  readonly #access: ReturnType<typeof authenticator>;
  readonly #runTokens: RunTokens;
  readonly #sessions: ConventionSettings["sessions"];
  readonly #streams: SessionStreams;
  readonly #tickets: Pick<Tickets, "take">;
  readonly #hasToken: boolean;
  readonly #origins: OriginPolicy;
  readonly #rate: RateLimit | null;

  constructor(settings: ConventionSettings) {
    const { apiTokens, runTokens, sessions, tickets, requestsPerMinuteMax, nowMs } = settings;
    this.#access = authenticator(apiTokens, runTokens);
    this.#runTokens = runTokens;
    this.#sessions = sessions;
    this.#streams = new SessionStreams(sessions);
    this.#tickets = tickets;
    this.#hasToken = apiTokens.length > 0;
    this.#origins = new OriginPolicy({ ...settings, hasToken: this.#hasToken });
    this.#rate =
      requestsPerMinuteMax === 0 ? null : new RateLimit({ perMinute: requestsPerMinuteMax, nowMs });
  }

  /** Calls `done`, with a problem if there is one; preflights and links with a run's key are answered here instead. */
  check(request: FastifyRequest, reply: FastifyReply, done: (refused?: Problem) => void): void {
    const { headers } = request.raw;
    reply.header("x-request-id", request.id);
    reply.headers(this.#origins.headers(headers));
    const refused = refuseShape(request) ?? this.#origins.refuseHost(request.raw);
    const preflight = refused === null ? this.#origins.preflight(request.method, headers) : null;
    if (preflight !== null) {
      reply.code(204).headers(preflight).send();
      return;
    }
    const opened = refused === null ? openedByKey(request.raw, this.#runTokens) : null;
    if (opened !== null) {
      reply
        .header("set-cookie", opened.cookie)
        .header("cache-control", "no-store")
        .redirect(opened.location, 303);
      return;
    }
    const problem = refused ?? this.#refuse(request);
    if (problem === null) done();
    else if (problem instanceof Problem) done(problem);
    else problem.then((found) => (found === null ? done() : done(found)), done);
  }

  #refuse(request: FastifyRequest): Problem | null | Promise<Problem | null> {
    if (isOpen(request)) return null;
    if (isWebhook(request)) return this.#limit(ANONYMOUS, request);
    if (isSignIn(request)) return this.#limit(ANONYMOUS, request) ?? this.#origins.refuseChange(request.raw);
    const holder = this.#takeTicket(request);
    if (holder !== null) return this.#enter(request, holder);
    const shown = this.#hasToken ? sessionShown(request.raw) : null;
    return shown === null ? this.#admit(request) : this.#admitSession(request, shown);
  }

  /** @returns the principal that the ticket in the address was given to; null without a good one */
  #takeTicket({ method, raw: { url = "" }, query, routeOptions }: FastifyRequest): string | null {
    // A stream ends with its session, which a ticket does not name.
    const mayHaveOne = method === "GET" && url.includes("ticket=") && !routeOptions.url?.endsWith("/stream");
    const holder = mayHaveOne ? this.#tickets.take(url) : null;
    // To the route it is no parameter.
    if (holder !== null) delete (query as { ticket?: string }).ticket;
    return holder;
  }

  async #admitSession(request: FastifyRequest, shown: Shown): Promise<Problem | null> {
    const principal = await admitSession(this.#sessions, request.raw, shown);
    if (!(principal instanceof Problem)) {
      request.onStream = (response) => this.#streams.hold(response, shown);
      return this.#enter(request, principal);
    }
    // The browser may have a run's key, too.
    return this.#access(request.raw).kind === "granted"
      ? this.#admit(request)
      : (this.#limit(ANONYMOUS, request) ?? principal);
  }

  /** Lets the request of a known caller in, unless there are too many of them, or a page of another site sent it. */
  #enter(request: FastifyRequest, principal: string): Problem | null {
    const { method, raw } = request;
    request.principal = principal;
    const limited = this.#limit(principal, request);
    if (limited !== null) return limited;
    return isUnsafe(method) ? this.#origins.refuseChange(raw) : this.#origins.refuseRead(raw);
  }

  #admit(request: FastifyRequest): Problem | null {
    const { method, raw } = request;
    const access = this.#access(raw);
    if (access.kind === "refused") return this.#limit(ANONYMOUS, request) ?? access.problem;
    const problem = this.#enter(request, access.principal);
    if (problem !== null || !isUnsafe(method)) return problem;
    return access.isBasic ? crossSiteBasic(raw.headers) : null;
  }

  #limit(principal: string, request: FastifyRequest): Problem | null {
    if (this.#rate === null) return null;
    const waitSeconds = this.#rate.take(
      principal === ANONYMOUS ? callerOf(request.raw.socket.remoteAddress) : principal,
    );
    if (waitSeconds === 0) return null;
    return new Problem(
      "rate_limited",
      `More requests than SVC_RATE_LIMIT allows in a minute. Wait ${waitSeconds} s, then try again.`,
      { headers: { "retry-after": String(waitSeconds) } },
    );
  }
}

function refuseShape({ raw }: FastifyRequest): Problem | null {
  if ((raw.url?.length ?? 0) > URL_CHARS_MAX) {
    return new Problem(
      "uri_too_long",
      `The URL is longer than ${URL_CHARS_MAX} characters. Shorten the path or the query.`,
    );
  }
  if (hasTwoHosts(raw)) {
    return new Problem("malformed_request", "The request has more than one Host header. Send one.");
  }
  if (raw.headers.host === undefined && raw.httpVersionMinor === 1) {
    return new Problem("malformed_request", "An HTTP/1.1 request needs a Host header.");
  }
  return null;
}

/**
 * Health, the schemas for editors, the console's files and a browser's way to them need no token and do not count against the
 * rate limit; only these exact paths.
 */
function isOpen({ method, raw: { url = "", headers } }: FastifyRequest): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  const path = pathOf(url);
  if (path === "/") return wantsHtml(headers);
  return path === OPEN_PATH || path === CONSOLE || openFolders.some((folder) => path.startsWith(folder));
}

/** The exchange of a token or a link for a session. */
const isSignIn = ({ method, raw: { url = "" } }: FastifyRequest): boolean =>
  method === "POST" && pathOf(url) === SIGN_IN;

/** What another program sends, which its signature admits (src/http/resources/webhook-requests.ts), and no page of a browser. */
const isWebhook = ({ method, raw: { url = "" } }: FastifyRequest): boolean =>
  method === "POST" && url.startsWith(WEBHOOKS);
