// The proxy of one sandbox: a unix socket through which its workers reach what the policy allows, and nothing else. It
// speaks HTTP (http-door.ts) and SOCKS5 (socks-door.ts), told apart by a client's first byte, and never looks into TLS.

import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "../../../engine/ports.ts";
import type { AllowList } from "./allow-list.ts";
import type { Client } from "./client.ts";
import { Exits, type Lookup } from "./exits.ts";
import { HttpDoor } from "./http-door.ts";
import { type NetworkReport, NetworkReports } from "./reports.ts";
import { SOCKS_VERSION, serveSocks } from "./socks-door.ts";

export const proxyLimits = {
  /** Clients of one sandbox at once; what comes beyond is closed. */
  clientsMax: 256,
  /** For a client to say what it wants, from its begin or its last request. */
  handshakeMs: 30_000,
  /** For resolving and connecting together. */
  connectMs: 20_000,
  /** A connection without a byte in either direction for so long, or twice that, is closed. */
  idleMs: 600_000,
};

/** Room for the clients of all sandboxes: each takes two files of the program. */
export interface ClientRoom {
  left: number;
}

export interface SandboxProxyParts {
  /** At most 107 bytes. Everybody may write to the socket: its folder decides who reaches it. */
  readonly socketPath: string;
  readonly allow: AllowList;
  readonly lookup: Lookup;
  readonly clock: Pick<Clock, "steadyMs" | "after">;
  readonly room: ClientRoom;
  readonly report: (report: NetworkReport) => void;
}

export class SandboxProxy {
  readonly #parts: SandboxProxyParts;
  readonly #reports: NetworkReports;
  readonly #exits: Exits;
  readonly #http: HttpDoor;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();

  private constructor(parts: SandboxProxyParts) {
    const { allow, lookup, clock } = parts;
    const { connectMs, idleMs } = proxyLimits;
    this.#parts = parts;
    this.#reports = new NetworkReports(parts.report);
    this.#exits = new Exits({ allow, lookup, clock, reports: this.#reports, connectMs, idleMs });
    this.#http = new HttpDoor(this.#exits);
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = proxyLimits.clientsMax;
    // Without files for another client it is not accepted; those that are there go on.
    this.#server.on("error", () => {});
  }

  /** @throws when the socket cannot be made */
  static async listen(parts: SandboxProxyParts): Promise<SandboxProxy> {
    const proxy = new SandboxProxy(parts);
    proxy.#server.listen({ path: parts.socketPath, readableAll: true, writableAll: true });
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** Closes all connections, reports them and the totals, and removes the socket. */
  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const client of this.#clients) client.destroy();
    await Promise.all([closed, this.#exits.close()]);
    this.#reports.totals();
  }

  #accept(socket: Socket): void {
    const { clock, room } = this.#parts;
    socket.on("error", () => {});
    if (room.left === 0) return void socket.destroy();
    room.left--;
    this.#clients.add(socket);
    const wait = () => clock.after(proxyLimits.handshakeMs, () => socket.destroy());
    let cancel = wait();
    socket.once("close", () => {
      cancel();
      this.#clients.delete(socket);
      room.left++;
    });
    const client: Client = {
      begun: () => cancel(),
      ended: () => {
        cancel();
        if (!socket.destroyed) cancel = wait();
      },
    };
    socket.once("readable", () => this.#serve(socket, client));
  }

  #serve(socket: Socket, client: Client): void {
    const first = socket.read(1) as Buffer | null;
    if (first === null) return void socket.destroy();
    socket.unshift(first);
    if (first[0] === SOCKS_VERSION) void serveSocks(socket, this.#exits, client);
    else this.#http.serve(socket, client);
  }
}
