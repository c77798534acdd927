// The port of the runtime protocol. It costs little until somebody connects: what serves it is loaded and made then.

import { type AddressInfo, createServer } from "node:net";
import type { ProtocolServer, ProtocolTls } from "../grpc/server.ts";
import type { Config } from "./config.ts";
import { explainAddress, StartFailed } from "./listen.ts";

const CONNECTIONS_MAX = 1_000;
/** Quiet for so long, a connection is probed: a machine that is gone takes no leave of the calls that it follows. */
const PROBED_AFTER_MS = 60_000;

export interface ProtocolPort {
  readonly port: number;
  /** Ends the calls, and stops listening. */
  close(): Promise<void>;
}

/** What the port is served with. @throws StartFailed when the files do not fit together */
export function protocolTls({ tlsCert, tlsKey, tlsClientCa }: Config): ProtocolTls | null {
  if (tlsCert === null || tlsKey === null) return null;
  const tls = { cert: tlsCert.pem, key: tlsKey.pem, ...(tlsClientCa !== null && { ca: tlsClientCa.pem }) };
  try {
    process.getBuiltinModule("node:tls").createSecureContext(tls);
    return tls;
  } catch (error) {
    const { message } = error as Error;
    throw new StartFailed(`SVC_TLS_CERT, SVC_TLS_KEY and SVC_TLS_CLIENT_CA cannot be used: ${message}`, true);
  }
}

/**
 * @param open makes the server
 * @throws StartFailed
 */
export async function listenForProtocol(
  { grpcHost: host, grpcPort: port }: Config,
  open: () => Promise<ProtocolServer>,
  log: { error(fields: object, message: string): void },
): Promise<ProtocolPort> {
  let opened: Promise<ProtocolServer> | null = null;
  const probing = { keepAlive: true, keepAliveInitialDelay: PROBED_AFTER_MS };
  const listener = createServer(probing, (socket) => {
    // A caller may be gone before there is a server that listens to that.
    socket.on("error", () => socket.destroy());
    opened ??= open();
    opened.then(
      (server) => {
        if (!socket.destroyed) server.take(socket);
      },
      (error: unknown) => {
        log.error({ err: error }, "the runtime protocol could not be served: the connection is closed");
        socket.destroy();
      },
    );
  });
  listener.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    listener.once("error", (error) => {
      reject(new StartFailed(explainAddress(error, { host, port, variable: "SVC_GRPC_PORT" })));
    });
    listener.listen(port, host, resolve);
  });
  return {
    port: (listener.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      await opened?.then(
        (server) => server.close(),
        () => {},
      );
      await closed;
    },
  };
}
