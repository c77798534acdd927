// The port of the runtime protocol, while what serves it is being made.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { until } from "../../test/support/until.ts";
import type { Config } from "./config.ts";
import { listenForProtocol } from "./protocol.ts";

test("a caller that is gone before there is a server harms nobody, and one that waits is served", async () => {
  const made = Promise.withResolvers<void>();
  const taken: Socket[] = [];
  const open = async () => {
    await made.promise;
    return {
      take: (socket: Socket) => void taken.push(socket.resume()),
      close: async () => {
        for (const socket of taken) socket.destroy();
      },
    };
  };
  const config = { grpcHost: "127.0.0.1", grpcPort: 0 } as Config;
  const listener = await listenForProtocol(config, open, { error: (fields) => assert.fail(String(fields)) });
  const gone = connect(listener.port, "127.0.0.1");
  await once(gone, "connect");
  await new Promise<void>((resolve) => gone.write("PRI", () => resolve()));
  gone.resetAndDestroy();
  const waits = connect(listener.port, "127.0.0.1");
  await once(waits, "connect");
  made.resolve();
  await until("the other one is served", () =>
    taken.some(({ remotePort }) => remotePort === waits.localPort),
  );
  // Until all of them are closed, so that the reset has been seen.
  await listener.close();
});

test("a connection whose other end is gone without a word is found out", {
  skip: process.platform === "linux" ? false : "the timers of connections are read from /proc",
}, async () => {
  const taken: Socket[] = [];
  const open = async () => ({
    take: (socket: Socket) => void taken.push(socket.resume()),
    close: async () => {
      for (const socket of taken) socket.destroy();
    },
  });
  const config = { grpcHost: "127.0.0.1", grpcPort: 0 } as Config;
  const listener = await listenForProtocol(config, open, { error: (fields) => assert.fail(String(fields)) });
  const caller = connect(listener.port, "127.0.0.1");
  caller.on("error", () => {});
  await until("it is served", () => taken.length === 1);
  const hex = (port: number | undefined) => Number(port).toString(16).toUpperCase().padStart(4, "0");
  const ends = new RegExp(`:${hex(listener.port)} \\S+:${hex(caller.localPort)} 01 \\S+ (\\d+):`);
  // 02: the next thing that the connection waits for is a probe.
  assert.equal(ends.exec(readFileSync("/proc/net/tcp", "latin1"))?.[1], "02");
  await listener.close();
});
