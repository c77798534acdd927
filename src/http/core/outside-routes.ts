// Answers to what never becomes a request: invalid HTTP, requests that time out, CONNECT. They are written to the socket
// directly. The connection is destroyed even if the client keeps its half open: the server does not track a CONNECT
// socket, and stopping would wait for it.

import type { Socket } from "node:net";
import { STATUS_CODES } from "../../lib/node-http.ts";
import { Problem, shown } from "./problem.ts";

/** The headers and the body of a problem's answer, as an API writes them. */
export type WriteProblem = (problem: Problem) => {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** What Node keeps on the socket about the answer that is being sent on it. */
interface AnsweringSocket extends Socket {
  readonly _httpMessage?: { readonly headersSent: boolean } | null;
}

/** Answers a connection whose bytes could not be read as a request. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket, write: WriteProblem): void {
  // In the middle of an answer, such as an event stream, no other can be written.
  const isAnswering = (socket as AnsweringSocket)._httpMessage?.headersSent === true;
  if (error.code === "ECONNRESET" || !socket.writable || isAnswering) socket.destroy();
  else answer(socket, problemOf(error.code), write);
}

/** Answers CONNECT, which asks for a tunnel. */
export function answerConnect(socket: Socket, write: WriteProblem): void {
  answer(
    socket,
    new Problem("malformed_request", "This server is no proxy: it does not take CONNECT."),
    write,
  );
}

/** For a request whose URL the framework cannot decode. */
export const badUrl = (url: string) =>
  new Problem(
    "malformed_request",
    `The URL ${shown(url)} cannot be decoded; each % must begin an encoded byte.`,
  );

function problemOf(code: string | undefined): Problem {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem(
        "headers_too_large",
        "The request's headers are too large. Send fewer or shorter ones.",
      );
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new Problem("payload_too_large", "The body's chunk extensions are too large. Leave them out.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem("request_timeout", "The request did not arrive in time. Send it again.");
    default:
      return new Problem("malformed_request", "The request is not valid HTTP. Check how it is sent.");
  }
}

/** How long a client has to read the answer before the connection is destroyed. */
const LINGER_MS = 1_000;

function answer(socket: Socket, problem: Problem, write: WriteProblem): void {
  const { headers, body } = write(problem);
  socket.on("error", () => socket.destroy());
  // What it still sends is discarded: closing with unread bytes would reset the connection and lose the answer.
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  const lines = Object.entries({
    ...headers,
    "Content-Length": Buffer.byteLength(body),
    Connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n${body}`);
}
