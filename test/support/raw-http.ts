// HTTP by hand: bytes go into a socket as the test wrote them, and what comes back is taken apart by as little
// code as possible. For requests that no client would send.

import { connect, type Socket } from "node:net";
import type { Program } from "./program.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Opens a connection to the program. */
export async function dial(program: Program): Promise<Socket> {
  const { hostname, port } = new URL(program.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  // A server may reset what it refuses; what it said before that is what counts.
  socket.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}

/** Sends bytes, waits until the server has closed, and takes its answers apart, in order. */
export async function exchange(program: Program, bytes: string | Buffer): Promise<readonly RawAnswer[]> {
  const socket = await dial(program);
  socket.write(bytes);
  const text = await everything(socket);
  socket.destroy();
  return answers(text);
}

/** Everything the server sends until it closes or resets the connection. */
export function everything(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => {
    const done = () => resolve(Buffer.concat(chunks).toString("utf8"));
    socket.once("end", done);
    socket.once("close", done);
  });
}

/** Reads until the connection has brought `count` whole answers. */
export async function read(socket: Socket, count: number): Promise<readonly RawAnswer[]> {
  const chunks: Buffer[] = [];
  // Together, as a chunk may end in the middle of a character.
  const found = () => answers(Buffer.concat(chunks).toString("utf8"));
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer);
    if (found().length >= count) break;
  }
  return found();
}

/** A request's head and body; Host, Content-Type and Content-Length are added unless they are given. */
export function request(method: string, path: string, headers: readonly string[] = [], body = ""): string {
  const given = headers.join("\r\n").toLowerCase();
  const add = (name: string, value: string | number) =>
    given.includes(`${name.toLowerCase()}:`) ? [] : [`${name}: ${value}`];
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...add("Host", "127.0.0.1"),
    ...(body === "" ? [] : add("Content-Type", "application/json")),
    ...(body === "" || given.includes("transfer-encoding")
      ? []
      : add("Content-Length", Buffer.byteLength(body))),
    ...headers,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** Takes answers with a Content-Length, or without a body, out of a stream of bytes. */
function answers(text: string): RawAnswer[] {
  const found: RawAnswer[] = [];
  let rest = text;
  for (;;) {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return found;
    const [start = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(":")).toLowerCase(),
        line.slice(line.indexOf(":") + 1).trim(),
      ]),
    );
    const bytes = Buffer.from(rest.slice(end + 4));
    const length = Number(headers.get("content-length") ?? 0);
    if (bytes.length < length) return found;
    found.push({ status: Number(start.split(" ")[1]), headers, body: bytes.toString("utf8", 0, length) });
    rest = bytes.toString("utf8", length);
  }
}
