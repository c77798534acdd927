// An HTTP client that costs next to nothing, so that what is measured is the server: requests are written as they were
// prepared, answers are read up to their Content-Length.

import { connect, type Socket } from "node:net";

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** A request as bytes. */
export function request(
  url: URL,
  method: string,
  path: string,
  given: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string } = {},
): Buffer {
  const { headers = {}, body } = given;
  const length =
    body === undefined
      ? []
      : [`Content-Length: ${Buffer.byteLength(body)}`, "Content-Type: application/json"];
  const lines = [
    `${method} ${url.pathname}${path} HTTP/1.1`,
    `Host: ${url.host}`,
    ...length,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body ?? ""}`);
}

/** One connection, one request at a time. */
export class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { resolve(reply: Reply): void; reject(error: Error): void } | null = null;

  constructor(url: URL) {
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    this.#socket.on("data", (chunk) => this.#take(chunk as Buffer));
    this.#socket.on("error", (error) => this.#waiting?.reject(error));
    this.#socket.on("close", () => this.#waiting?.reject(new Error("the connection was closed")));
  }

  send(bytes: Buffer): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (this.#received.length < headEnd + 4 + length) return;
    const body = this.#received.toString("utf8", headEnd + 4, headEnd + 4 + length);
    this.#received = this.#received.subarray(headEnd + 4 + length);
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve({ status: Number(head.slice(9, 12)), body });
  }
}
