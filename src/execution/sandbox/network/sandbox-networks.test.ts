// The thread of the proxies, as the runtime uses it.

import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { test } from "node:test";
import { holding, realClock } from "../../../../test/support/execution.ts";
import { echoServer, RawClient, socketFolder } from "../../../../test/support/sandbox-proxy.ts";
import { until } from "../../../../test/support/until.ts";
import type { NetworkReport } from "./reports.ts";
import { SandboxNetworks } from "./sandbox-networks.ts";

function networks(clock: ConstructorParameters<typeof SandboxNetworks>[0]["clock"] = realClock) {
  const errors: string[] = [];
  const log = { warn: () => {}, error: (_fields: unknown, message: string) => void errors.push(message) };
  const all = new SandboxNetworks({ clock, log });
  const open = async (allow: readonly string[], socketPath: string) => {
    const reports: NetworkReport[] = [];
    const lost: string[] = [];
    const network = await all.open({
      socketPath,
      allow,
      onReport: (report) => reports.push(report),
      onLost: (reason) => lost.push(reason),
    });
    return { network, reports, lost };
  };
  return { all, open, errors, [Symbol.asyncDispose]: () => all.close() };
}

const connectTo = async (path: string, port: number) => {
  const client = await RawClient.connect(path);
  client.write(`CONNECT localhost:${port} HTTP/1.1\r\n\r\nhello`);
  return client;
};

test("each sandbox has a socket of its own, with its own policy and its own reports", async () => {
  await using echo = await echoServer();
  using first = socketFolder();
  using second = socketFolder();
  await using sandboxes = networks();
  const open = await sandboxes.open([`localhost:${echo.port}`, `127.0.0.1:${echo.port}`], first.path);
  const shut = await sandboxes.open(["api.example.com:443"], second.path);
  assert.equal(statSync(first.path).mode & 0o666, 0o666, "its folder decides who reaches it");
  assert.match(await (await connectTo(first.path, echo.port)).until("hello"), / 200 /);
  assert.match(await (await connectTo(second.path, echo.port)).until("allow.\n"), / 403 /);
  await Promise.all([open.network.close(), shut.network.close()]);
  assert.deepEqual(
    open.reports.map(({ kind }) => kind),
    ["opened", "closed", "totals"],
  );
  assert.deepEqual(
    shut.reports.map(({ kind }) => kind),
    ["denied", "totals"],
  );
  assert.ok(!existsSync(first.path) && !existsSync(second.path));
});

test("a socket that cannot be made is an error with its reason", async () => {
  using folder = socketFolder();
  await using sandboxes = networks();
  await sandboxes.open([], folder.path);
  await assert.rejects(sandboxes.open([], folder.path), /cannot be made: .*EADDRINUSE/);
  await assert.rejects(sandboxes.open([], `/nowhere/${folder.path}`), /cannot be made: /);
  await assert.rejects(sandboxes.open([], `/${"x".repeat(107)}`), /may have 107 bytes/);
});

test("when the thread is lost, its sandboxes are told, and the next one gets a new thread", async () => {
  await using echo = await echoServer();
  using first = socketFolder();
  using second = socketFolder();
  await using sandboxes = networks();
  const allow = [`localhost:${echo.port}`, `127.0.0.1:${echo.port}`];
  const one = await sandboxes.open(allow, first.path);
  const client = await connectTo(first.path, echo.port);
  await client.until("hello");
  await sandboxes.all.thread?.terminate();
  assert.deepEqual(one.lost, ["The proxy of the sandbox's network was lost: its thread has ended."]);
  assert.deepEqual(sandboxes.errors, ["the proxy of the sandboxes was lost"]);
  await client.rest();
  await one.network.close();
  await sandboxes.open(allow, second.path);
  assert.match(await (await connectTo(second.path, echo.port)).until("hello"), / 200 /);
});

test("the thread ends when no sandbox has needed it for a while", async () => {
  const { clock, fire } = holding(30_000);
  using folder = socketFolder();
  await using sandboxes = networks(clock);
  const one = await sandboxes.open([], folder.path);
  await one.network.close();
  const again = await sandboxes.open([], folder.path);
  fire();
  assert.match(await (await connectTo(folder.path, 1)).until("allow.\n"), / 403 /, "it is needed again");
  await again.network.close();
  assert.notEqual(sandboxes.all.thread, null);
  fire();
  assert.equal(sandboxes.all.thread, null);
  await sandboxes.open([], folder.path);
  await until("it is there", () => existsSync(folder.path));
});
