// Ports of a test's own. A port that was free a moment ago is soon somebody else's: the system gives it to the next
// server that asks for any, or to a connection. These lie below the ports that the system gives away by itself (on
// Linux from 32,768 on), and a test process keeps its own from all others.
//
// - No two test processes have a port in common: each holds the first port of a block, and gives out those behind it.
// - A process's blocks are released when it ends, however it ends.
// - No port is given out twice, nor one on which something listens.

import { createServer, type Server } from "node:net";

const FIRST = 20_032;
const BLOCK = 64;
const BLOCKS = 198;

/** What is left of the block that was taken last. */
let next = 0;
let end = 0;

/** @returns the first of `count` ports in a row, 63 at most, on which nobody listens, nor will, but the caller's programs */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    while (next + count > end) await takeBlock();
    const first = next;
    // Before the look at them, for callers that come meanwhile.
    next += count;
    if (await areFree(first, count)) return first;
  }
}

/** For a program's environment: ports for dashboards that no other test's programs use. */
export async function dashboardPorts(count = 40): Promise<Readonly<Record<string, string>>> {
  const first = await freePorts(count);
  return {
    SVC_BLUEPRINT_WEB_UI_PORT_START: String(first),
    SVC_BLUEPRINT_WEB_UI_PORT_END: String(first + count - 1),
  };
}

/** A server that is connected to by nobody; it keeps others from the port. @throws when the port is taken */
export function listenAt(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(server));
  });
}

export function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

async function takeBlock(): Promise<void> {
  for (let n = 0; n < BLOCKS; n++) {
    // From another place in each process, as two that start at once would get in each other's way.
    const holder = FIRST + ((process.pid + n) % BLOCKS) * BLOCK;
    const server = await listenAt(holder).catch(() => null);
    if (server === null) continue;
    server.unref();
    next = holder + 1;
    end = holder + BLOCK;
    return;
  }
  throw new Error(`All ${BLOCKS} blocks of ports for tests are taken.`);
}

async function areFree(first: number, count: number): Promise<boolean> {
  for (let port = first; port < first + count; port++) {
    const server = await listenAt(port).catch(() => null);
    if (server === null) return false;
    await closed(server);
  }
  return true;
}
