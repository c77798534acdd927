// Calls of other nodes: one connection per address, opened when it is needed and closed when it is idle.
//
// - No call waits for ever: connecting, calls and silent connections have their times. A stream may last, as long as its
//   connection answers pings.
// - What fails is a PeerUnreachable, which says whether the call may have had an effect.

import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Clock } from "../../engine/ports.ts";
import { clientTls, type NodeCredentials } from "./credentials.ts";
import { NodeService } from "./gen/svc/node/v1/node_pb.ts";

const CONNECT_MS = 3_000;
/** Of a call; a commit that takes longer is waited for by nobody. */
const CALL_MS = 15_000;
const IDLE_MS = 60_000;
const PING_MS = 5_000;
/** Of a connection that does not answer a ping. */
const SILENT_MS = 5_000;

export type NodeClient = Client<typeof NodeService>;

/** A call of another node did not get its answer. */
export class PeerUnreachable extends Error {
  override readonly name = "PeerUnreachable";
  /** Whether it may have had its effect there. */
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayHaveArrived = mayHaveArrived;
  }
}

export interface PeersParts {
  readonly credentials: NodeCredentials;
  readonly messageBytesMax: number;
  readonly clock: Pick<Clock, "after">;
}

interface Peer {
  readonly connection: Http2SessionManager;
  readonly client: NodeClient;
}

export class Peers {
  readonly #parts: PeersParts;
  readonly #peers = new Map<string, Peer>();
  #isClosed = false;

  constructor(parts: PeersParts) {
    this.#parts = parts;
  }

  /**
   * Makes one call.
   *
   * @param address host:port
   * @param call is given the client and must make one call of it
   * @throws PeerUnreachable
   */
  async call<Answer>(address: string, call: (client: NodeClient) => Promise<Answer>): Promise<Answer> {
    const { client } = await this.#connected(address);
    try {
      return await call(client);
    } catch (error) {
      throw unreachable(address, error, true);
    }
  }

  /**
   * Follows a stream until it ends, or `signal` is aborted.
   *
   * @throws PeerUnreachable; the signal's reason
   */
  async *stream<Message>(
    address: string,
    signal: AbortSignal,
    open: (client: NodeClient, options: { signal: AbortSignal; timeoutMs: 0 }) => AsyncIterable<Message>,
  ): AsyncGenerator<Message> {
    const { client } = await this.#connected(address);
    signal.throwIfAborted();
    try {
      yield* open(client, { signal, timeoutMs: 0 });
    } catch (error) {
      signal.throwIfAborted();
      throw unreachable(address, error, false);
    }
  }

  /** Those to which a connection is open. */
  get connected(): readonly string[] {
    return [...this.#peers].filter(([, { connection }]) => isOpen(connection)).map(([address]) => address);
  }

  /** Cuts all connections; callers that wait for an answer get an error. */
  close(): void {
    this.#isClosed = true;
    for (const { connection } of this.#peers.values()) connection.abort();
    this.#peers.clear();
  }

  async #connected(address: string): Promise<Peer> {
    if (this.#isClosed) throw new PeerUnreachable("This node is shutting down.", false);
    const peer = this.#peers.get(address) ?? this.#newPeer(address);
    if (isOpen(peer.connection)) return peer;
    const isLate = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(CONNECT_MS, isLate.resolve);
    await Promise.race([peer.connection.connect(), isLate.promise]);
    cancel();
    if (isOpen(peer.connection)) return peer;
    const error = peer.connection.error() ?? new Error("it does not answer");
    // The next call begins anew, and not with a connection that may take minutes to fail.
    peer.connection.abort();
    if (this.#peers.get(address) === peer) this.#peers.delete(address);
    throw unreachable(address, error, false);
  }

  #newPeer(address: string): Peer {
    const { credentials, messageBytesMax: readMaxBytes } = this.#parts;
    const url = `https://${address}`;
    const connection = new Http2SessionManager(
      url,
      { idleConnectionTimeoutMs: IDLE_MS, pingIntervalMs: PING_MS, pingTimeoutMs: SILENT_MS },
      clientTls(credentials),
    );
    const transport = createGrpcTransport({
      baseUrl: url,
      sessionManager: connection,
      readMaxBytes,
      defaultTimeoutMs: CALL_MS,
      acceptCompression: [],
    });
    const peer = { connection, client: createClient(NodeService, transport) };
    this.#peers.set(address, peer);
    return peer;
  }
}

const isOpen = (connection: Http2SessionManager) => ["open", "idle"].includes(connection.state());

function unreachable(address: string, error: unknown, mayHaveArrived: boolean): PeerUnreachable {
  const { code, rawMessage } = ConnectError.from(error);
  // What the callee has refused to read had no effect.
  const isRefused =
    code === Code.ResourceExhausted || code === Code.Unimplemented || code === Code.InvalidArgument;
  const why = rawMessage.trim().split("\n")[0] ?? "";
  return new PeerUnreachable(
    `Node ${address} cannot be reached: ${why}`,
    mayHaveArrived && !isRefused,
    error,
  );
}
