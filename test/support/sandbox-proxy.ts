// What the tests of sandboxes' networks share: a proxy, its clients byte by byte, and a server behind it.

import type { LookupAddress } from "node:dns";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, createServer, isIPv6, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/engine/ports.ts";
import { AllowList } from "../../src/execution/sandbox/network/allow-list.ts";
import type { Lookup } from "../../src/execution/sandbox/network/exits.ts";
import { type ClientRoom, SandboxProxy } from "../../src/execution/sandbox/network/proxy.ts";
import type { NetworkReport } from "../../src/execution/sandbox/network/reports.ts";
import { realClock } from "./execution.ts";

export const theirs = (...addresses: string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));

export const publicLookup: Lookup = async () => theirs("192.0.2.1");

/** A folder for a socket, removed when it is disposed of. */
export function socketFolder() {
  const folder = mkdtempSync(join(tmpdir(), "net-"));
  return {
    path: join(folder, "proxy.sock"),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export interface ProxyOptions {
  readonly allow: readonly string[];
  /** Every name is this machine unless it is given. */
  readonly lookup?: Lookup;
  readonly clock?: Clock;
  readonly room?: ClientRoom;
}

export async function openProxy({ allow, lookup, clock = realClock, room = { left: 1_000 } }: ProxyOptions) {
  const folder = socketFolder();
  const reports: NetworkReport[] = [];
  const proxy = await SandboxProxy.listen({
    socketPath: folder.path,
    allow: new AllowList(allow),
    lookup: lookup ?? (async () => theirs("127.0.0.1")),
    clock,
    room,
    report: (report) => reports.push(report),
  });
  let closing: Promise<void> | null = null;
  const close = () => (closing ??= proxy.close().finally(() => folder[Symbol.dispose]()));
  const connectClient = () => RawClient.connect(folder.path);
  return {
    reports,
    socketPath: folder.path,
    connect: connectClient,
    /** Sends bytes, and reads until the proxy has ended its side. */
    async exchange(bytes: string | Buffer): Promise<string> {
      const client = await connectClient();
      client.write(bytes);
      const answer = await client.rest();
      client.socket.destroy();
      return answer;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A connection to a unix socket; bytes are shown as Latin-1. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received = "";
  #isOver = false;
  #wake = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    const over = () => {
      this.#isOver = true;
      this.#wake();
    };
    socket.on("data", (text: string) => {
      this.#received += text;
      this.#wake();
    });
    socket.on("error", () => {}).on("end", over);
    this.closed = new Promise((resolve) =>
      socket.on("close", () => {
        over();
        resolve();
      }),
    );
  }

  static connect(path: string): Promise<RawClient> {
    const client = new RawClient(connect({ path, allowHalfOpen: true }));
    return new Promise((resolve, reject) => {
      client.socket.once("connect", () => resolve(client)).once("error", reject);
    });
  }

  write(...parts: readonly (string | Buffer)[]): void {
    for (const part of parts) this.socket.write(part, "latin1");
  }

  written(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Takes what comes up to and including a text. */
  async until(text: string): Promise<string> {
    for (;;) {
      const at = this.#received.indexOf(text);
      if (at >= 0) {
        const taken = this.#received.slice(0, at + text.length);
        this.#received = this.#received.slice(at + text.length);
        return taken;
      }
      if (this.#isOver) throw new Error(`The connection has ended without ${text}: ${this.#received}`);
      await this.#more();
    }
  }

  /** Takes what comes until the other side ends. */
  async rest(): Promise<string> {
    while (!this.#isOver) await this.#more();
    return this.#received;
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** A server that sends back what it gets, and ends when its client does. */
export async function echoServer(host = "127.0.0.1", port = 0) {
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    connections++;
    open.add(socket);
    socket.on("error", () => {}).on("close", () => open.delete(socket));
    socket.pipe(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen({ host, port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    open,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function tcpServer(serve: (socket: Socket) => void) {
  return listening(createServer(serve));
}

export function httpServer(serve: RequestListener) {
  return listening(createHttpServer(serve));
}

async function listening(server: ReturnType<typeof createServer>) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}

/** A greeting and a request of SOCKS5. */
export function socksRequest(spec: {
  readonly command?: number;
  readonly type: number;
  readonly address: string | readonly number[];
  readonly port: number;
}): Buffer {
  const { command = 1, type, address, port } = spec;
  const bytes = typeof address === "string" ? [address.length, ...Buffer.from(address, "latin1")] : address;
  return Buffer.of(5, 1, 0, 5, command, 0, type, ...bytes, port >> 8, port & 0xff);
}
