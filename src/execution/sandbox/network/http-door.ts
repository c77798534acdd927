// HTTP for clients of a sandbox's proxy: CONNECT, and requests whose target is a whole http:// URL.
//
// - Every request is judged by itself, whatever connection it comes on: its target is where it goes, and its Host header
//   has to say the same.
// - Node's parser decides where a request ends, strictly, and its client writes the request anew; so nothing that a client
//   sends can be read as two requests by one and as one by another.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import { STATUS_CODES, request as startRequest } from "../../../lib/node-http.ts";
import type { Client } from "./client.ts";
import type { Exits, NoExit } from "./exits.ts";
import { type Destination, destinationText, parseDestination } from "./hosts.ts";
import { join } from "./tunnel.ts";

const { createServer } = process.getBuiltinModule("node:http");

const HEADER_BYTES_MAX = 16_384;
const HTTP_PORT = 80;
/** The scheme, the authority and all that follows, untouched. */
const ABSOLUTE = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i;
/** Of one connection, not of the message (RFC 9110, 7.6.1). */
const HOP_BY_HOP = new Set([
  ...["connection", "proxy-connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["proxy-authorization", "proxy-authenticate", "proxy-authentication-info"],
]);

export class HttpDoor {
  readonly #exits: Exits;
  readonly #clients = new WeakMap<Socket, Client>();
  readonly #busy = new WeakSet<Socket>();
  readonly #server: Server;

  constructor(exits: Exits) {
    this.#exits = exits;
    // Times are limited by the proxy, for both protocols.
    this.#server = createServer({
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: 0,
      requestTimeout: 0,
      keepAliveTimeout: 0,
      noDelay: true,
    });
    this.#server.on("request", (request, response) => {
      // Node's client may refuse to write what its parser has read.
      this.#forward(request, response).catch(() => request.socket.destroy());
    });
    this.#server.on("connect", (request, socket, head) => void this.#tunnel(request, socket as Socket, head));
  }

  /** Serves a client of which bytes may have been read and put back. */
  serve(socket: Socket, client: Client): void {
    this.#clients.set(socket, client);
    this.#server.emit("connection", socket);
  }

  async #tunnel(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    socket.on("error", () => {});
    // Its answer would come before that of the request that is under way.
    if (this.#busy.has(socket)) return void socket.destroy();
    const client = this.#clients.get(socket)!;
    client.begun();
    const refuse = (status: number, message: string) => {
      endWith(socket, status, message);
      client.ended();
    };
    const destination = parseDestination(request.url ?? "");
    if (destination === null)
      return refuse(400, "CONNECT takes a host and a port, such as api.example.com:443.");
    const exit = await this.#exits.open(destination, socket);
    if (exit.kind !== "connected") return refuse(statusOf(exit), exit.message);
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (head.length > 0) exit.socket.write(head);
    join(socket, exit.socket);
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    response.sendDate = false;
    if (this.#busy.has(socket))
      return answer(response, 400, "The proxy takes one request at a time on a connection.");
    this.#busy.add(socket);
    const client = this.#clients.get(socket)!;
    client.begun();
    response.once("close", () => {
      this.#busy.delete(socket);
      client.ended();
    });
    const target = targetOf(request);
    if (typeof target === "string") return answer(response, 400, target);
    const exit = await this.#exits.open(target.destination, socket);
    if (exit.kind !== "connected") return answer(response, statusOf(exit), exit.message);
    response.once("close", () => exit.socket.destroy());
    send(request, response, target, exit.socket);
  }
}

interface Target {
  readonly destination: Destination;
  readonly path: string;
}

/** @returns what is wrong with the request, as text */
function targetOf({ url = "", headers, headersDistinct }: IncomingMessage): Target | string {
  const [, authority, path = ""] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined)
    return "This is a proxy: it takes http:// URLs, and CONNECT for everything else.";
  const destination = parseDestination(authority, HTTP_PORT);
  if (destination === null) return "The URL has no plain host and port.";
  const [host = "", ...more] = headersDistinct.host ?? [];
  const named = parseDestination(host, HTTP_PORT);
  if (more.length > 0 || named === null || destinationText(named) !== destinationText(destination))
    return "The Host header differs from the URL.";
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return "The only Transfer-Encoding that the proxy takes is chunked.";
  return { destination, path: path.startsWith("/") ? path : `/${path}` };
}

function send(request: IncomingMessage, response: ServerResponse, target: Target, socket: Socket): void {
  const upstream = startRequest({
    createConnection: () => socket,
    method: request.method ?? "GET",
    path: target.path,
    setHost: false,
  });
  const host = destinationText(target.destination);
  const lose = (error: Error) => {
    if (response.headersSent) response.destroy();
    else answer(response, 502, `${host} does not answer with HTTP: ${error.message}`);
  };
  upstream.on("error", lose);
  upstream.on("response", (incoming) => {
    try {
      response.writeHead(incoming.statusCode ?? 0, endToEnd(incoming.rawHeaders));
      pipeline(incoming, response, () => {});
    } catch (error) {
      lose(error as Error);
      upstream.destroy();
    }
  });
  const headers = endToEnd(request.rawHeaders);
  for (let i = 0; i < headers.length; i += 2) upstream.appendHeader(headers[i]!, headers[i + 1]!);
  if (request.headers["transfer-encoding"] !== undefined) upstream.setHeader("Transfer-Encoding", "chunked");
  // The host may answer before it has read everything: then the rest is read and dropped.
  request.pipe(upstream);
  upstream.once("close", () => {
    request.resume();
    // An upgrade that nobody asked for ends without an error.
    if (!response.headersSent) lose(new Error("it closed the connection"));
  });
}

/** Names and values in turns, without those that are of the connection. What frames a message is no client's to drop. */
function endToEnd(raw: readonly string[]): string[] {
  const pairs = raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1]!] as const] : []));
  const named = pairs
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) => value.split(","))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "host" && name !== "content-length");
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  return pairs.filter(([name]) => !dropped.has(name.toLowerCase())).flat();
}

function statusOf(exit: NoExit): number {
  if (exit.kind === "denied") return 403;
  return exit.failure === "timed_out" ? 504 : 502;
}

function answer(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent || response.destroyed) return;
  const { head, body } = refusalOf(message);
  response.writeHead(status, head).end(body);
}

/** The answer to a CONNECT, whose socket Node has given away. */
function endWith(socket: Socket, status: number, message: string): void {
  const { head, body } = refusalOf(message);
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`);
}

function refusalOf(message: string) {
  const body = `${message}\n`;
  const type = "text/plain; charset=utf-8";
  return {
    head: { "Content-Type": type, "Content-Length": Buffer.byteLength(body), Connection: "close" },
    body,
  };
}
