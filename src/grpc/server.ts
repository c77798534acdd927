// The listener of the runtime protocol: gRPC, gRPC-Web and Connect's JSON on one port. Without TLS the first bytes of a
// connection choose HTTP/2 or HTTP/1.1; with TLS, ALPN does.
//
// - Who has no token where one is asked for, or is a page of another site, is refused before a message is read.
// - Messages, streams of a connection and connections are bounded.

import type { EventEmitter } from "node:events";
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type Http2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { DescService, Message } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  cors,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { compressionGzip, connectNodeAdapter } from "@connectrpc/connect-node";
import { isUnsafe, OriginPolicy, type OriginSettings } from "../http/core/origin-policy.ts";
import { tokenCheck } from "../http/core/token-check.ts";
import { type Apis, ask, follow, passedBack, passedOn, remoteAddressKey } from "./calls.ts";
import { callError } from "./errors.ts";
import { addHealth, addReflection } from "./reflection.ts";
import { protocol } from "./rules.ts";

const STREAMS_MAX = 1_000;
const HANDSHAKE_MS = 5_000;
/** A connection on which nothing is called is closed. */
const IDLE_MS = 300_000;
/** A longer deadline would be one of a millisecond. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** How long calls may take to be answered when the program stops. */
const LAST_ANSWERS_MS = 1_000;
const http1Limits = { headersTimeout: 20_000, requestTimeout: 300_000, connectionsCheckingInterval: 5_000 };

export type ProtocolTls = Pick<SecureContextOptions, "cert" | "key" | "ca">;

export interface ProtocolParts {
  readonly apis: Apis;
  /** Empty: no authentication. */
  readonly tokens: readonly string[];
  readonly origins: Omit<OriginSettings, "hasToken">;
  /** Null: no TLS. With `ca`, clients need a certificate of one of these authorities. */
  readonly tls: ProtocolTls | null;
  readonly messageBytesMax: number;
  /** Whether new work is taken. */
  readonly isServing: () => boolean;
  /** Aborted when the program begins to stop: streams end. */
  readonly stopping: AbortSignal;
}

export interface ProtocolServer {
  /** Serves a connection that somebody has made to the port. */
  take(socket: Socket): void;
  /** Lets calls end that do so in a moment, and cuts all connections. */
  close(): Promise<void>;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Made with the first connection: it brings gRPC, HTTP/2 and all of TLS along. */
export function protocolServer(parts: ProtocolParts): ProtocolServer {
  const { messageBytesMax: readMaxBytes, tls } = parts;
  const cut = new AbortController();
  const call = connectNodeAdapter({
    routes: (router) => addMethods(router, parts),
    readMaxBytes,
    maxTimeoutMs: TIMER_MAX_MS,
    jsonOptions: { ignoreUnknownFields: false },
    acceptCompression: [compressionGzip],
    shutdownSignal: cut.signal,
    contextValues: ({ socket }) => createContextValues().set(remoteAddressKey, socket.remoteAddress ?? ""),
  });
  const policy = new OriginPolicy({ ...parts.origins, hasToken: parts.tokens.length > 0 });
  const refusalOf = admission(parts, policy);
  const handle = (request: Request, response: Response) => {
    const { headers, method = "" } = request;
    for (const [name, value] of Object.entries(policy.headers(headers))) response.setHeader(name, value);
    if (response.hasHeader("access-control-expose-headers"))
      response.setHeader("access-control-expose-headers", exposedHeaders);
    const preflight = policy.preflight(method, headers);
    const refused = preflight === null ? refusalOf(request) : null;
    if (preflight !== null) answerPreflight(response, preflight);
    else if (refused === null) call(request as never, withReadableMessage(response) as never);
    else refuse(response, refused);
  };
  const settings = { maxConcurrentStreams: STREAMS_MAX };
  const sockets = new Set<Socket>();
  let onEmpty = () => {};
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0) onEmpty();
    });
  };
  const closing = (server: Http1Connections, sessions: ReadonlySet<Http2Session>) => async () => {
    server.closeIdleConnections();
    for (const session of sessions) session.close();
    if (sockets.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LAST_ANSWERS_MS);
        onEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    cut.abort();
    for (const socket of sockets) socket.destroy();
  };
  if (tls !== null) {
    const options = {
      ...tls,
      requestCert: tls.ca !== undefined,
      rejectUnauthorized: tls.ca !== undefined,
      allowHTTP1: true,
      ...http1Limits,
      handshakeTimeout: HANDSHAKE_MS,
      settings,
    };
    const secure = createSecureServer(options, handle) as Http2SecureServer & Http1Connections;
    const sessions = sessionsOf(secure);
    watchSlowRequests(secure);
    return {
      take(socket) {
        keep(socket);
        secure.emit("connection", socket);
      },
      close: closing(secure, sessions),
    };
  }
  const http1 = createHttpServer(http1Limits, handle);
  watchSlowRequests(http1);
  const http2 = createHttp2Server({ settings }, handle);
  const sessions = sessionsOf(http2);
  return {
    take(socket) {
      keep(socket);
      socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
      socket.once("data", (first: Buffer) => {
        socket.setTimeout(0);
        if (!first.subarray(0, HTTP2_BEGINS.length).equals(HTTP2_BEGINS)) {
          http1.emit("connection", socket);
          // The parser reads from the system from now on, past what is put back into the stream.
          socket.emit("data", first);
          return;
        }
        socket.pause();
        socket.unshift(first);
        http2.emit("connection", socket);
      });
    },
    close: closing(http1, sessions),
  };
}

/** Of connections that speak HTTP/1.1. */
type Http1Connections = Pick<HttpServer, "closeIdleConnections">;

const HTTP2_BEGINS = Buffer.from("PRI");

/** Node looks for requests that take too long in servers that listen; these are given their connections. */
const watchSlowRequests = (server: EventEmitter) => void server.emit("listening");

/** The sessions there are; those without calls are closed after a while. */
function sessionsOf(server: Http2Server | Http2SecureServer): ReadonlySet<Http2Session> {
  const sessions = new Set<Http2Session>();
  // A client that is cut off, or that is none: the connection is gone, and its calls with it.
  server.on("sessionError", () => {});
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    let calls = 0;
    session.on("stream", (stream: ServerHttp2Stream) => {
      calls++;
      stream.once("close", () => calls--);
    });
    session.setTimeout(IDLE_MS, () => {
      if (calls === 0) session.close();
    });
  });
  return sessions;
}

function addMethods(router: ConnectRouter, { apis, isServing, stopping }: ProtocolParts): void {
  for (const { service, rules } of protocol) {
    const methods = service.methods.map((method) => {
      const rule = rules[method.localName]!;
      const answer = method.methodKind === "server_streaming" ? follow : ask;
      const handle = (request: Message, context: HandlerContext) =>
        answer(apis, rule, method, request, context);
      return [method.localName, handle] as const;
    });
    router.service(service, Object.fromEntries(methods) as unknown as Partial<ServiceImpl<DescService>>);
  }
  const services = protocol.map(({ service }) => service);
  addHealth(router, services, { isServing, stopping });
  addReflection(router, services);
}

interface Refusal {
  readonly status: 401 | 403;
  readonly code: string;
  readonly message: string;
}

/** @returns what says why a request is refused; null when it is admitted */
function admission(
  { tokens }: Pick<ProtocolParts, "tokens">,
  policy: OriginPolicy,
): (request: Request) => Refusal | null {
  const hasToken = tokens.length > 0;
  const isToken = tokenCheck(tokens);
  return ({ headers, method = "", socket }) => {
    const host = headers.host ?? (headers[":authority"] as string | undefined);
    const asked = { headers: { ...headers, host }, socket } as IncomingMessage;
    const problem =
      policy.refuseHost(asked) ?? (isUnsafe(method) ? policy.refuseChange(asked) : policy.refuseRead(asked));
    if (problem !== null) return { status: 403, code: problem.code, message: problem.message };
    const token = /^bearer +(.*)$/i.exec(headers.authorization ?? "")?.[1]?.trim() ?? "";
    if (!hasToken || isToken(token)) return null;
    return {
      status: 401,
      code: "unauthorized",
      message:
        "This port wants the token: send the metadata `authorization: Bearer` and the value of SVC_API_TOKEN.",
    };
  };
}

const exposedHeaders = [...cors.exposedHeaders, ...passedBack].join(", ");
const allowedHeaders = [...cors.allowedHeaders, ...passedOn].join(", ");

/** For a page of an origin that may call. */
function answerPreflight(response: Response, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader("access-control-allow-headers", allowedHeaders);
  response.statusCode = 204;
  response.end();
}

/** In the form of each of the three protocols. */
function refuse(response: Response, { status, code, message }: Refusal): void {
  const type = String(response.req.headers["content-type"] ?? "");
  const error = callError(status, { code, detail: message });
  // Not by writeHead: over HTTP/2 the head must be the end as well.
  if (type.startsWith("application/grpc")) {
    const headers = new Headers({ "content-type": type });
    setTrailerStatus(headers, error);
    for (const [name, value] of headers) response.setHeader(name, value);
    response.setHeader("grpc-message", encodeURI(message));
    response.end();
  } else {
    response.statusCode = status;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(errorToJson(error, undefined)));
  }
}

/** Connect encodes more of a message than must be, and @grpc/grpc-js does not decode all of that. */
function withReadableMessage(response: Response): Response {
  const addTrailers = response.addTrailers.bind(response) as (trailers: OutgoingHttpHeaders) => void;
  response.addTrailers = (trailers: object) => {
    const { "grpc-message": message, ...others } = trailers as OutgoingHttpHeaders;
    const readable = message === undefined ? null : encodeURI(decodeURIComponent(String(message)));
    addTrailers({ ...others, ...(readable !== null && { "grpc-message": readable }) });
  };
  return response;
}
