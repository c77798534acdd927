// Stands between who connects and what listens, and does to what passes what a network does. What passes is passed whole and in order.

import { once } from "node:events";
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import { Transform, type TransformCallback } from "node:stream";

/**
 * cut: connections end, and new ones at once; silent: nothing comes through, and nobody is told, as when packets are lost;
 * a number: what comes through is so many milliseconds late.
 */
export type Fault = "cut" | "silent" | number;

interface Connection {
  readonly from: string;
  readonly client: Socket;
  readonly pipes: readonly Pipe[];
}

export class TcpProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #target: NetConnectOpts;
  readonly #nameOf: (client: Socket) => string;
  /** By who connects; "" is everybody. */
  readonly #faults = new Map<string, Fault>();
  readonly #connections = new Set<Connection>();

  private constructor(
    server: Server,
    port: number,
    target: NetConnectOpts,
    nameOf: (client: Socket) => string,
  ) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    this.#nameOf = nameOf;
    server.on("connection", (client) => this.#accept(client));
  }

  /** @param nameOf who it is that connects, for faults between two; asked once for each connection */
  static async start(
    target: NetConnectOpts,
    nameOf: (client: Socket) => string = () => "",
  ): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    return new TcpProxy(server, port, target, nameOf);
  }

  /** @param from whose connections have it; everybody's when absent */
  fault(fault: Fault, from = ""): void {
    this.#faults.set(from, fault);
    this.#apply();
  }

  /** @param from whose fault ends; all of them when absent */
  heal(from?: string): void {
    if (from === undefined) this.#faults.clear();
    else this.#faults.delete(from);
    this.#apply();
  }

  close(): void {
    this.#server.close();
    for (const { client } of this.#connections) client.destroy();
  }

  #faultOf(from: string): Fault | null {
    return this.#faults.get("") ?? this.#faults.get(from) ?? null;
  }

  #apply(): void {
    for (const { from, client, pipes } of this.#connections) {
      const fault = this.#faultOf(from);
      if (fault === "cut") client.destroy();
      for (const pipe of pipes) pipe.fault = fault;
    }
  }

  #accept(client: Socket): void {
    // Before anything else: it may be gone in a moment.
    const from = this.#nameOf(client);
    const fault = this.#faultOf(from);
    client.on("error", () => {});
    if (fault === "cut") {
      client.destroy();
      return;
    }
    const target = connect(this.#target);
    const there = new Pipe(fault);
    const back = new Pipe(fault);
    const connection = { from, client, pipes: [there, back] };
    this.#connections.add(connection);
    const end = () => {
      this.#connections.delete(connection);
      for (const stream of [client, target, there, back]) stream.destroy();
    };
    client.on("close", end);
    target.on("error", end).on("close", end);
    client.pipe(there).pipe(target);
    target.pipe(back).pipe(client);
  }
}

/** One direction of a connection. */
class Pipe extends Transform {
  #fault: Fault | null;
  #goOn = () => {};

  constructor(fault: Fault | null) {
    super();
    this.#fault = fault;
  }

  set fault(fault: Fault | null) {
    this.#fault = fault;
    this.#goOn();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#pass(() => done(null, chunk));
  }

  /** The end of one direction is late, or lost, as what came before it. */
  override _flush(done: TransformCallback): void {
    this.#pass(() => done());
  }

  #pass(done: () => void): void {
    const fault = this.#fault;
    const goOn = () => {
      this.#goOn = () => {};
      this.#pass(done);
    };
    if (fault === "silent") this.#goOn = goOn;
    else if (typeof fault === "number") setTimeout(done, fault);
    else done();
  }
}
