// The listener for other nodes. What is asked is node-service.ts.
//
// - A connection that does not prove itself in time is closed, before any request is read.
// - Messages, streams of a connection and connections are bounded; what a program sends that is no node yet, to very little.

import { createSecureServer } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { isNode, type NodeCredentials, serverTls } from "./credentials.ts";
import { NodeService } from "./gen/svc/node/v1/node_pb.ts";

const HANDSHAKE_MS = 5_000;
const CONNECTIONS_MAX = 1_000;
const STREAMS_MAX = 10_000;
const JOINER_STREAMS_MAX = 4;
const WELCOME_BYTES_MAX = 4 * 1024;
/** The one path for programs that are no nodes yet. */
const WELCOME = `/${NodeService.typeName}/${NodeService.method.welcome.name}`;

export interface NodeServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly credentials: NodeCredentials;
  readonly messageBytesMax: number;
  readonly routes: (router: ConnectRouter) => void;
  readonly log: { warn(fields: object, message: string): void };
}

export interface NodeServer {
  readonly port: number;
  /** Cuts all connections. */
  close(): Promise<void>;
}

/** @throws the system's error when it cannot listen there */
export async function startNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const { host, port, credentials, messageBytesMax, routes, log } = options;
  const stopping = new AbortController();
  const answerWith = (readMaxBytes: number) =>
    connectNodeAdapter({
      routes,
      readMaxBytes,
      grpcWeb: false,
      connect: false,
      // Nodes are near each other, and lines of events are small.
      acceptCompression: [],
      shutdownSignal: stopping.signal,
    });
  const answer = answerWith(messageBytesMax);
  const answerWelcome = answerWith(WELCOME_BYTES_MAX);
  const server = createSecureServer(
    {
      ...serverTls(credentials),
      handshakeTimeout: HANDSHAKE_MS,
      settings: { maxConcurrentStreams: STREAMS_MAX },
    },
    (request, response) => {
      if (request.url === WELCOME) answerWelcome(request, response);
      else if (isNode(credentials, request.socket)) answer(request, response);
      else response.writeHead(403).end();
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  // Of sockets, and not of sessions: one that is still being made would keep a server that closes waiting for ever.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session) => {
    if (!isNode(credentials, session.socket)) session.settings({ maxConcurrentStreams: JOINER_STREAMS_MAX });
  });
  // A peer that is cut off, or that is none: the connection is gone, and its calls with it.
  server.on("sessionError", () => {});
  server.on("tlsClientError", (error, socket) => {
    const fields = { from: socket.remoteAddress ?? null, reason: error.message.trim() };
    log.warn(
      fields,
      "a connection to the node's port was refused: it did not prove to be a node of this cluster",
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      stopping.abort();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
