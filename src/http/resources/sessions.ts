// Sessions of browsers: /console/session and /console/tickets, which the console's pages use, and /api/v1/sessions, where sessions
// and links are listed, made and ended.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { GatewayRecords } from "../../launch/records.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { SessionRecord } from "../../security/session-records.ts";
import { type Made, type Opened, type Sessions, SHARE_DAYS } from "../../security/sessions.ts";
import { invalidBody, oneMistake, Problem } from "../core/problem.ts";
import { callerOf, RateLimit } from "../core/rate-limit.ts";
import { addRoutes, get, post, remove } from "../core/route.ts";
import { admitSession, sessionCookie, sessionShown } from "../core/session-door.ts";
import type { Tickets } from "../core/tickets.ts";
import { tokenCheck } from "../core/token-check.ts";
import { Type } from "../core/type.ts";
import { findRun } from "./find-run.ts";
import { answerIdempotent, type IdempotencyParts, sendGiven } from "./idempotent.ts";
import { type PageParts, sendPage } from "./lists.ts";
import { idempotencyKeyHeader, pageOf, pageQuery } from "./schemas.ts";

/** From one address; a person needs one or two. */
const SIGN_INS_PER_MINUTE = 30;
const DAYS_MAX = 365;
const KINDS = ["session", "link", "share"] as const;

const SessionSchema = Type.Object(
  {
    session_id: Type.String({ examples: ["session_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    kind: Type.OneOf(
      KINDS,
      "session: a browser that has signed in. link: signs a browser in, once. share: shows one run to everybody who has it.",
    ),
    run_id: Type.Nullable(Type.String("The one run that it shows; null: everything.")),
    opened_by: Type.Nullable(Type.String("The share that opened the session.")),
    created_at: Type.Time("When it was made."),
    expires_at: Type.Time("When it ends; a session that is used, later."),
    path: Type.Optional(
      Type.String(
        "Of a new link or share: what to open, on this gateway. Shown once: a repeated request is answered without it.",
        { examples: ["/console#link=Yk3…"] },
      ),
    ),
  },
  "A session of a browser, or a link that opens one.",
);

const SessionPageSchema = pageOf(SessionSchema, "sessions and links that are good, newest first");

const SessionsQuery = Type.Input({
  ...pageQuery,
  kind: Type.OneOf(KINDS, "Only of this kind."),
  run_id: Type.String("Only those that show this run alone."),
});

const NewSessionBody = Type.Input(
  {
    kind: Type.OneOf(
      ["link", "share"],
      "link: for the console, good once within a minute. share: for one run.",
    ),
    run_id: Type.String("The run that a share shows."),
    days: Type.Integer("How long a share is good.", { minimum: 1, maximum: DAYS_MAX, default: SHARE_DAYS }),
  },
  { required: ["kind"], examples: [{ kind: "share", run_id: "run_01k9z1v7m3e8q2x4c6t8b0n5dh" }] },
);

const SignInBody = Type.Input(
  {
    token: Type.String("The API token.", { maxLength: 4_096 }),
    link: Type.String("The end of a link, behind #link=.", { maxLength: 200 }),
    share: Type.String("The end of a link to a run, behind #share=.", { maxLength: 200 }),
  },
  { examples: [{ token: "the value of SVC_API_TOKEN" }] },
);

const SignedInSchema = Type.Object(
  {
    key: Type.String("The session's second key: every request sends it as X-Console-Key, beside the cookie."),
    expires_at: Type.Time("When the session ends unless it is used."),
    run_id: Type.Nullable(Type.String("The one run that the session shows; null: everything.")),
  },
  "A new session. Its first secret is in an HttpOnly cookie.",
);

const SignInStateSchema = Type.Object(
  {
    needs_token: Type.Boolean("Whether the gateway asks for a sign-in."),
    signed_in: Type.Boolean("Whether this request would be let in."),
    run_id: Type.Nullable(Type.String("The one run that the session shows; null: everything.")),
  },
  "Whether a browser has to sign in.",
);

const TicketBody = Type.Input(
  {
    path: Type.String("What is to be read, with its query.", {
      pattern: "^/api/v1/[!-~]*$",
      maxLength: 2_000,
      examples: ["/api/v1/runs/run_01k9z1v7m3e8q2x4c6t8b0n5dh/artifacts/a_1"],
    }),
  },
  { required: ["path"] },
);

const TicketSchema = Type.Object(
  { url: Type.String("The path with a ticket: may be read once, within a minute.") },
  "A ticket.",
);

/** By the names that clients see. */
export const schemas = {
  Session: SessionSchema,
  SessionPage: SessionPageSchema,
  NewSession: NewSessionBody,
  SignIn: SignInBody,
  SignedIn: SignedInSchema,
  SignInState: SignInStateSchema,
  TicketRequest: TicketBody,
  Ticket: TicketSchema,
};

export interface Parts extends IdempotencyParts, PageParts {
  readonly sessions: Sessions;
  readonly tickets: Tickets;
  readonly records: Pick<GatewayRecords, "run" | "sessions">;
  readonly nowMs: () => number;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { sessions, records, nowMs } = parts;

  addRoutes(api, "console", [
    get("/sessions", {
      operationId: "listSessions",
      summary: "List sessions and links",
      query: SessionsQuery,
      answers: { 200: SessionPageSchema },
      handle: (request, reply) => {
        const { kind = null, run_id: runId = null } = request.query;
        return sendPage<SessionRecord>(parts, request, reply, {
          rows: (limit, after) =>
            records.sessions.list({
              kind,
              runId,
              nowMs: nowMs(),
              limit,
              after: after === null ? null : String(after[0]),
            }),
          positionOf: (session) => [session.sessionId],
          render: (session) => JSON.stringify(rendered(session)),
        });
      },
    }),

    post("/sessions", {
      operationId: "createSession",
      summary: "Make a link",
      description:
        "A link signs a browser in to the console, once, within a minute. A share shows one run to everybody who has it, for reading alone.",
      headers: idempotencyKeyHeader,
      body: NewSessionBody,
      answers: { 201: SessionSchema },
      problems: ["run_not_found", "conflict"],
      async handle(request, reply) {
        const { kind, run_id: runId, days = SHARE_DAYS } = request.body;
        if (kind === "share" && runId === undefined)
          throw invalidBody(oneMistake("/run_id", "required", "must be given"));
        const made: { one?: Made } = {};
        const given = await answerIdempotent(parts, request, async () => {
          if (runId !== undefined) await findRun(parts, runId);
          const make =
            kind === "share" && runId !== undefined
              ? sessions.prepareShare(runId, days)
              : sessions.prepareLink();
          return async (writes) => {
            made.one = await make(writes);
            const { session } = made.one;
            const location = `/api/v1/sessions/${session.sessionId}`;
            return { status: 201, headers: { location }, body: JSON.stringify(rendered(session)) };
          };
        });
        // Kept is the answer without the path.
        if (given.isReplay || made.one === undefined) return sendGiven(reply, given);
        const { session, secret } = made.one;
        return sendGiven(
          reply,
          given,
          JSON.stringify({ ...rendered(session), path: pathTo(session, secret) }),
        );
      },
    }),

    get("/sessions/:session_id", {
      operationId: "getSession",
      summary: "Get a session or a link",
      answers: { 200: SessionSchema },
      async handle(request) {
        const { session_id: sessionId } = request.params;
        const session = await records.sessions.session(sessionId);
        if (session === null || session.expiresAtMs <= nowMs()) throw notFound(sessionId);
        return rendered(session);
      },
    }),

    remove("/sessions/:session_id", {
      operationId: "endSession",
      summary: "End a session or a link",
      description:
        "With a share, the sessions end that it has opened. Other gateways notice within five seconds.",
      answers: { 204: Type.Null("It has ended.") },
      async handle(request, reply) {
        const { session_id: sessionId } = request.params;
        if (!(await sessions.end(sessionId))) throw notFound(sessionId);
        return reply.code(204).send();
      },
    }),
  ]);
}

/** Routes beside /api/v1. */
export function consoleRoutes(
  app: FastifyInstance,
  parts: Parts & { readonly apiTokens: readonly string[] },
) {
  const { sessions, tickets, nowMs } = parts;
  const isToken = tokenCheck(parts.apiTokens);
  const limit = new RateLimit({ perMinute: SIGN_INS_PER_MINUTE, nowMs });

  const sendOpened = ({ headers: { host } }: FastifyRequest, reply: FastifyReply, opened: Opened) =>
    reply
      .header("set-cookie", sessionCookie(host, opened.secret))
      .header("cache-control", "no-store")
      .send({
        key: opened.key,
        expires_at: isoTime(opened.session.expiresAtMs),
        run_id: opened.session.runId,
      });

  addRoutes(app, "console", [
    get("/console/session", {
      operationId: "getSignIn",
      summary: "Ask whether a browser has to sign in",
      security: [],
      answers: { 200: SignInStateSchema },
      async handle({ raw }, reply) {
        reply.header("cache-control", "no-store");
        if (!sessions.areNeeded) return { needs_token: false, signed_in: true, run_id: null };
        const shown = sessionShown(raw);
        const found = shown === null ? null : await sessions.find(shown);
        return found?.kind === "session" && found.hasKey
          ? { needs_token: true, signed_in: true, run_id: found.session.runId }
          : { needs_token: true, signed_in: false, run_id: null };
      },
    }),

    post("/console/session", {
      operationId: "signIn",
      summary: "Sign a browser in",
      description:
        "With the API token, with a link, or with a share. Gives a cookie and a key: a request needs both. The session ends twelve hours after its last use, or with a change of SVC_API_TOKEN.",
      security: [],
      body: SignInBody,
      answers: { 200: SignedInSchema },
      problems: ["unauthorized", "conflict"],
      async handle(request, reply) {
        const waitSeconds = limit.take(callerOf(request.raw.socket.remoteAddress));
        if (waitSeconds > 0) throw tooMany(waitSeconds);
        if (!sessions.areNeeded) {
          throw new DomainError("conflict", "This gateway asks for no sign-in: open /console.");
        }
        const { token, link, share } = request.body;
        const given = [token, link, share].filter((one) => one !== undefined);
        if (given.length !== 1)
          throw invalidBody(oneMistake("/token", "invalid_value", "give one of token, link and share"));
        if (token !== undefined) {
          if (!isToken(token)) throw refused("This is no API token of the gateway: SVC_API_TOKEN has them.");
          return sendOpened(request, reply, await sessions.openForToken());
        }
        const opened =
          link === undefined
            ? await sessions.openWithShare(share as string)
            : await sessions.openWithLink(link);
        if (opened === null) throw refused(link === undefined ? OLD_SHARE : OLD_LINK);
        return sendOpened(request, reply, opened);
      },
    }),

    remove("/console/session", {
      operationId: "signOut",
      summary: "Sign a browser out",
      answers: { 204: Type.Null("The session has ended.") },
      async handle(request, reply) {
        const shown = sessionShown(request.raw);
        const found = shown === null ? null : await sessions.find(shown);
        if (found?.kind === "session") await sessions.end(found.session.sessionId);
        return reply.header("set-cookie", sessionCookie(request.headers.host, null)).code(204).send();
      },
    }),

    post("/console/tickets", {
      operationId: "createTicket",
      summary: "Get an address that may be read once",
      description:
        "For what a browser asks for by itself, such as a download: it sends no key with that. Streams take none.",
      body: TicketBody,
      answers: { 200: TicketSchema },
      async handle(request) {
        const { path } = request.body;
        const shown = sessionShown(request.raw);
        if (shown !== null) {
          const asked = { method: "GET", url: path, headers: request.headers };
          const holder = await admitSession(sessions, asked, shown);
          if (holder instanceof Problem) throw holder;
        }
        return { url: sessions.areNeeded ? tickets.issue(path, request.principal) : path };
      },
    }),
  ]);
}

const notFound = (sessionId: string) =>
  new DomainError(
    "session_not_found",
    `Session ${sessionId} was not found, or has ended. List the sessions to find its id.`,
  );

const OLD_LINK =
  "The link was used before, or is older than a minute. Get another one with `troupe console`.";
const OLD_SHARE = "The link to this run is good no more. Ask the person who gave it to you for another one.";

const refused = (detail: string) => new Problem("unauthorized", detail);

const tooMany = (waitSeconds: number) =>
  new Problem("rate_limited", `Too many sign-ins from this address. Wait ${waitSeconds} s, then try again.`, {
    headers: { "retry-after": String(waitSeconds) },
  });

const pathTo = ({ kind, runId }: SessionRecord, secret: string): string =>
  kind === "share" ? `/console/runs/${runId}#share=${secret}` : `/console#link=${secret}`;

const rendered = ({ sessionId, kind, runId, openedBy, createdAtMs, expiresAtMs }: SessionRecord) => ({
  session_id: sessionId,
  kind,
  run_id: runId,
  opened_by: openedBy,
  created_at: isoTime(createdAtMs),
  expires_at: isoTime(expiresAtMs),
});
