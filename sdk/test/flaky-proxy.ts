// A TCP proxy between a client and a gateway: it cuts connections when it is told to, and stays when the gateway goes.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface FlakyProxy extends AsyncDisposable {
  readonly url: string;
  /** Connections so far. */
  readonly connections: number;
  /** Where new connections lead from now on. */
  leadTo(url: string): void;
  /**
   * How many bytes of its answers a new connection lets through before it is cut; null: all. Asked for once per
   * connection.
   */
  cutAfterBytes: () => number | null;
}

export async function flakyProxy(target: string): Promise<FlakyProxy> {
  const sockets = new Set<Socket>();
  let goal = new URL(target);
  let connections = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    connections++;
    const far = connect(Number(goal.port), goal.hostname);
    let left = proxy.cutAfterBytes() ?? Number.POSITIVE_INFINITY;
    keep(near);
    keep(far);
    near.pipe(far);
    far.on("data", (bytes: Buffer) => {
      const part = bytes.subarray(0, Math.max(0, left));
      left -= bytes.length;
      if (part.length > 0) near.write(part);
      if (left <= 0) {
        // What was let through arrives before the end.
        near.end(() => near.destroy());
        far.destroy();
      }
    });
    far.on("close", () => near.end());
    near.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy: FlakyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    leadTo(url) {
      goal = new URL(url);
    },
    cutAfterBytes: () => null,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
