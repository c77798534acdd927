// The proxy of the tests does what a network does, and is a mere wire while nothing is wrong.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { holderOfPort, seesProcesses } from "../support/processes.ts";
import { until } from "../support/until.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/** A server that repeats what it hears, behind a proxy that calls its clients by turns a and b. */
async function echo() {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.on("error", () => {}).pipe(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  let clients = 0;
  const proxy = await TcpProxy.start(server.address() as { port: number }, () =>
    clients++ % 2 === 0 ? "a" : "b",
  );
  const sockets: Socket[] = [];
  return {
    proxy,
    async connect() {
      const socket = connect(proxy.port);
      sockets.push(socket);
      let heard = "";
      socket.on("error", () => {});
      socket.setEncoding("utf8").on("data", (chunk: string) => {
        heard += chunk;
      });
      const isOver = once(socket, "close");
      await once(socket, "connect");
      return {
        socket,
        isOver,
        async says(what: string) {
          heard = "";
          socket.write(what);
          await until(`${what} comes back`, () => heard === what);
        },
        heard: () => heard,
      };
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      server.close();
    },
  };
}

test("everything comes through in order, and the ends of both directions", async () => {
  await using server = await echo();
  const socket = connect({ port: server.proxy.port, allowHalfOpen: true });
  const sent = Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join("");
  socket.end(sent);
  assert.equal(await text(socket), sent);
});

test("a cut ends connections and new ones, of one who connects or of all, until it is healed", async () => {
  await using server = await echo();
  const [a, b] = [await server.connect(), await server.connect()];
  server.proxy.fault("cut", "a");
  await a.isOver;
  await b.says("b is there");
  await (await server.connect()).isOver;
  server.proxy.heal("a");
  // One that is called b.
  await (await server.connect()).says("b too");
  await (await server.connect()).says("a again");
  server.proxy.fault("cut");
  await b.isOver;
  await (await server.connect()).isOver;
  server.proxy.heal();
  await (await server.connect()).says("everybody");
});

test("silence holds back what is sent, loses nothing of it, and ends nothing", async () => {
  await using server = await echo();
  const [a, b] = [await server.connect(), await server.connect()];
  await a.says("before");
  server.proxy.fault("silent", "a");
  a.socket.write("held ");
  a.socket.write("back");
  // Had anything of a come through, it would have come before this.
  for (let turns = 0; turns < 10; turns++) await b.says(`turn ${turns}`);
  assert.equal(a.heard(), "before");
  server.proxy.heal("a");
  await until("what was held back has come", () => a.heard() === "beforeheld back");
});

test("which process connects is known where there is /proc", { skip: !seesProcesses }, async (t) => {
  const programs: ChildProcess[] = [];
  const seen: (number | null)[] = [];
  const server = createServer((socket) => {
    seen.push(
      holderOfPort(
        socket.remotePort ?? 0,
        programs.map(({ pid }) => pid ?? 0),
      ),
    );
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const script = `process.stdin.once("data", () => {
    process.stdin.destroy();
    require("node:net").connect(${port});
  })`;
  const start = () => {
    const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "ignore", "ignore"] });
    programs.push(child);
    // One that was killed from outside has ended before it is told to go.
    return { child, isEnded: once(child, "exit") };
  };
  const [one, other] = [start(), start()];
  for (const { child, isEnded } of [other, one]) {
    child.stdin?.write("go");
    await isEnded;
  }
  connect(port).on("error", () => {});
  await until("all have connected", () => seen.length === 3);
  assert.deepEqual(seen, [other.child.pid, one.child.pid, null]);
});

test("other connections that have the same port do not hide whose one is", {
  skip: !seesProcesses,
}, async (t) => {
  const server = createServer((socket) => socket.on("error", () => {}).resume());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const open: Socket[] = [];
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const connected = async (from: { localAddress: string; localPort?: number }) => {
    const socket = connect({ port, host: "127.0.0.1", ...from });
    open.push(socket);
    await once(socket, "connect");
    return socket;
  };
  const { localPort = 0 } = await connected({ localAddress: "127.0.0.2" });
  // Connections that are over keep their port for a minute, and belong to no process then.
  for (let host = 3; host < 13; host++) {
    const over = await connected({ localAddress: `127.0.0.${host}`, localPort });
    over.end();
    await once(over, "close");
  }
  assert.equal(holderOfPort(localPort, [process.pid]), process.pid);
});

test("what is late comes behind what is not, and is not lost", async () => {
  await using server = await echo();
  const [a, b] = [await server.connect(), await server.connect()];
  await a.says("before");
  server.proxy.fault(1_000, "a");
  a.socket.write(" late");
  await b.says("first");
  assert.equal(a.heard(), "before");
  await until("what was late has come", () => a.heard() === "before late");
});
