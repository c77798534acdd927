// The proxy of sandboxes: what a connection through it costs over a direct one, and how fast bytes pass.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/app/clock.ts";
import { SandboxNetworks } from "../src/execution/sandbox/network/sandbox-networks.ts";

const CONNECTIONS = 2_000;
const ROUNDS = 5;
const BYTES = 1024 ** 3;
const CHUNK = Buffer.alloc(256 * 1024);

export async function measureSandboxNetwork(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("sandbox-network")) return figures;
  const folder = await mkdtemp(join(tmpdir(), "troupe-network-"));
  const server = createServer((socket) => void serve(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const networks = new SandboxNetworks({ clock: systemClock, log: console });
  const path = join(folder, "proxy");
  const network = await networks.open({
    socketPath: path,
    allow: [`127.0.0.1:${port}`],
    onReport: () => {},
    onLost: (reason) => console.error(reason),
  });
  const request = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
  const direct = { port, host: "127.0.0.1" };
  const added: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const directMs = await connections(direct, "");
    added.push(((await connections({ path }, request)) - directMs) / (CONNECTIONS / ROUNDS));
  }
  figures.set("a connection of a sandbox, over a direct one", `${median(added).toFixed(2)} ms`);
  const seconds = await download({ path }, request);
  figures.set("— bytes through the proxy", `${Math.round(BYTES / 1024 ** 2 / seconds)} MiB/s`);
  await network.close();
  await networks.close();
  server.close();
  await rm(folder, { recursive: true });
  return figures;
}

/** Answers one byte with one byte, and `*` with very many. */
async function serve(socket: Socket): Promise<void> {
  socket.on("error", () => {});
  const [asked] = (await once(socket, "data")) as [Buffer];
  if (asked.toString() !== "*") return void socket.end("x");
  for (let sent = 0; sent < BYTES; sent += CHUNK.length) {
    if (!socket.write(CHUNK)) await once(socket, "drain");
  }
  socket.end();
}

async function opened(to: NetConnectOpts, request: string): Promise<Socket> {
  const socket = connect(to);
  await once(socket, "connect");
  if (request !== "") {
    socket.write(request);
    await once(socket, "data");
  }
  return socket;
}

/** @returns how many milliseconds they take one after the other */
async function connections(to: NetConnectOpts, request: string): Promise<number> {
  const from = performance.now();
  for (let i = 0; i < CONNECTIONS / ROUNDS; i++) {
    const socket = await opened(to, request);
    socket.write("?");
    await once(socket, "data");
    socket.destroy();
  }
  return performance.now() - from;
}

/** @returns how many seconds it takes */
async function download(to: NetConnectOpts, request: string): Promise<number> {
  const socket = await opened(to, request);
  const from = performance.now();
  socket.write("*");
  socket.resume();
  await once(socket, "end");
  return (performance.now() - from) / 1_000;
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
