// SOCKS5 (RFC 1928) for clients of a sandbox's proxy: no authentication, CONNECT only.

import type { Socket } from "node:net";
import type { Client } from "./client.ts";
import type { ExitFailure, Exits, NoExit } from "./exits.ts";
import { canonicalHost, type Destination, isPort } from "./hosts.ts";
import { join } from "./tunnel.ts";

export const SOCKS_VERSION = 5;
const NO_AUTHENTICATION = 0;
const NO_ACCEPTABLE_METHOD = 0xff;
const CONNECT = 1;
const REPLY = {
  succeeded: 0,
  other: 1,
  denied: 2,
  unreachable: 3,
  unknown_host: 4,
  connection_refused: 5,
  timed_out: 6,
  commandNotSupported: 7,
  addressTypeNotSupported: 8,
} as const satisfies Readonly<Record<ExitFailure, number>> & Readonly<Record<string, number>>;

/** The bytes of a client, as many at a time as its next message has. */
class Bytes {
  readonly #socket: Socket;
  #held = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** @returns null when the client closes before it has sent so many */
  async take(count: number): Promise<Buffer | null> {
    while (this.#held.length < count) {
      const chunk = this.#socket.read() as Buffer | null;
      if (chunk !== null) this.#held = Buffer.concat([this.#held, chunk]);
      else if (this.#socket.readableEnded || this.#socket.destroyed) return null;
      else await this.#more();
    }
    const taken = this.#held.subarray(0, count);
    this.#held = this.#held.subarray(count);
    return taken;
  }

  /** Leaves what was not taken to who reads next. */
  giveBack(): void {
    if (this.#held.length > 0) this.#socket.unshift(this.#held);
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#socket.off("readable", wake).off("end", wake).off("close", wake);
        resolve();
      };
      this.#socket.on("readable", wake).on("end", wake).on("close", wake);
    });
  }
}

export async function serveSocks(socket: Socket, exits: Exits, client: Client): Promise<void> {
  const bytes = new Bytes(socket);
  const methods = await greeting(bytes);
  if (methods === null) return void socket.destroy();
  if (!methods.includes(NO_AUTHENTICATION))
    return void socket.end(Buffer.of(SOCKS_VERSION, NO_ACCEPTABLE_METHOD));
  socket.write(Buffer.of(SOCKS_VERSION, NO_AUTHENTICATION));
  const asked = await request(bytes);
  if (asked === null) return void socket.destroy();
  if (typeof asked === "number") return void socket.end(reply(asked));
  client.begun();
  const exit = await exits.open(asked, socket);
  if (exit.kind !== "connected") {
    socket.end(reply(codeOf(exit)));
    client.ended();
    return;
  }
  socket.write(reply(REPLY.succeeded));
  bytes.giveBack();
  join(socket, exit.socket);
}

async function greeting(bytes: Bytes): Promise<Buffer | null> {
  const head = await bytes.take(2);
  return head === null ? null : bytes.take(head[1]!);
}

/** @returns where to, or the code of what is wrong with the request; null: it is none */
async function request(bytes: Bytes): Promise<Destination | number | null> {
  const head = await bytes.take(4);
  if (head === null || head[0] !== SOCKS_VERSION) return null;
  const [, command, , type] = head;
  if (command !== CONNECT) return REPLY.commandNotSupported;
  const text = await addressOf(bytes, type!);
  if (text === null) return null;
  if (text === "") return REPLY.addressTypeNotSupported;
  const port = (await bytes.take(2))?.readUInt16BE();
  if (port === undefined) return null;
  const host = canonicalHost(text);
  return host === null || !isPort(port) ? REPLY.denied : { host, port };
}

/** @returns the address as text; empty for a type that nobody knows; null when the client closed */
async function addressOf(bytes: Bytes, type: number): Promise<string | null> {
  switch (type) {
    case 1:
      return (await bytes.take(4))?.join(".") ?? null;
    case 3: {
      const length = await bytes.take(1);
      return length === null ? null : ((await bytes.take(length[0]!))?.toString("latin1") ?? null);
    }
    case 4: {
      const address = await bytes.take(16);
      return address?.toString("hex").replace(/(....)(?=.)/g, "$1:") ?? null;
    }
    default:
      return "";
  }
}

const codeOf = (exit: NoExit) => (exit.kind === "denied" ? REPLY.denied : REPLY[exit.failure]);

/** Without the address that the connection is made from, which is nothing for a sandbox to know. */
function reply(code: number): Buffer {
  return Buffer.of(SOCKS_VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0);
}
