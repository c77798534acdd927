// The proxy over real sockets: what clients ask for, in both protocols, and what they are told.

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import {
  echoServer,
  httpServer,
  openProxy,
  publicLookup,
  socksRequest,
  tcpServer,
  theirs,
} from "../../../../test/support/sandbox-proxy.ts";

test("CONNECT passes bytes both ways, and reports the connection with its bytes", async () => {
  await using echo = await echoServer();
  await using proxy = await openProxy({ allow: [`echo.test:${echo.port}`, `127.0.0.1:${echo.port}`] });
  const client = await proxy.connect();
  client.write(`CONNECT echo.test:${echo.port} HTTP/1.1\r\nHost: echo.test\r\n\r\nearly `);
  assert.match(await client.until("early "), /^HTTP\/1\.1 200 Connection established\r\n\r\nearly $/);
  client.socket.end("late");
  assert.equal(await client.rest(), "late", "the end of one direction leaves the other one open");
  await proxy.close();
  const connection = { host: "echo.test", port: echo.port, address: "127.0.0.1" };
  const [opened, closed, totals] = proxy.reports;
  assert.deepEqual(opened, { kind: "opened", ...connection });
  assert.ok(closed?.kind === "closed" && closed.duration_ms >= 0);
  assert.deepEqual(
    { ...closed, duration_ms: 0 },
    { kind: "closed", ...connection, sent_bytes: 10, received_bytes: 10, duration_ms: 0 },
  );
  const sums = { connections: 1, denied: 0, unreported: 0, sent_bytes: 10, received_bytes: 10 };
  assert.deepEqual(totals, { kind: "totals", ...sums });
});

test("what is not in the policy is refused with the line to add, once reported, and never resolved", async () => {
  const asked: string[] = [];
  const lookup = async (name: string) => {
    asked.push(name);
    return publicLookup(name);
  };
  await using proxy = await openProxy({ allow: ["api.example.com:443"], lookup });
  for (const target of ["secret-data.evil.test:443", "secret-data.evil.test:443", "api.example.com:80"]) {
    const answer = await proxy.exchange(`CONNECT ${target} HTTP/1.1\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 403 Forbidden\r\n/);
    const line = `The sandbox's policy refuses ${target}: it is not in the sandbox's policy. To allow it, add "${target}" to sandbox.network.allow.\n`;
    assert.ok(answer.endsWith(`\r\n\r\n${line}`), answer);
  }
  await proxy.close();
  assert.deepEqual(asked, []);
  const reason = "it is not in the sandbox's policy";
  const evil = { host: "secret-data.evil.test", port: 443, reason, add: "secret-data.evil.test:443" };
  const api = { host: "api.example.com", port: 80, reason, add: "api.example.com:80" };
  assert.deepEqual(proxy.reports.slice(0, 2), [
    { kind: "denied", ...evil },
    { kind: "denied", ...api },
  ]);
  const sums = { connections: 0, denied: 3, unreported: 1, sent_bytes: 0, received_bytes: 0 };
  assert.deepEqual(proxy.reports.slice(2), [{ kind: "totals", ...sums }]);
});

test("names that resolve to addresses of the machine, its networks or a cloud are refused by those addresses", async () => {
  const addresses = new Map([
    ["loopback.test", "127.0.0.1"],
    ["loopback6.test", "::1"],
    ["private.test", "10.1.2.3"],
    ["metadata.test", "169.254.169.254"],
    ["mapped.test", "::ffff:127.0.0.1"],
    ["unspecified.test", "0.0.0.0"],
    ["zone.test", "fe80::1%lo"],
  ]);
  const lookup = async (name: string) => {
    const address = addresses.get(name)!;
    return [{ address, family: address.includes(":") ? 6 : 4 }];
  };
  const allow = [...addresses.keys()].map((name) => `${name}:80`);
  await using proxy = await openProxy({ allow, lookup });
  for (const [name, address] of addresses) {
    const answer = await proxy.exchange(`CONNECT ${name}:80 HTTP/1.1\r\n\r\n`);
    if (name === "zone.test") assert.match(answer, /^HTTP\/1\.1 502 /);
    else assert.match(answer, /^HTTP\/1\.1 403 /);
    const add = address.includes(":") ? `[${address}]:80` : `${address}:80`;
    if (name !== "zone.test") assert.ok(answer.includes(`To allow it, add "${add}" to`), answer);
  }
});

test("a name whose addresses differ in kind is connected to by those that are allowed", async () => {
  await using echo = await echoServer();
  const lookup = async () => theirs("10.0.0.1", "127.0.0.1", "169.254.169.254");
  await using proxy = await openProxy({ allow: [`a.test:${echo.port}`, `127.0.0.1:${echo.port}`], lookup });
  const client = await proxy.connect();
  client.write(`CONNECT a.test:${echo.port} HTTP/1.1\r\n\r\n`);
  await client.until("\r\n\r\n");
  assert.deepEqual(
    proxy.reports.map((report) => report.kind === "opened" && report.address),
    ["127.0.0.1"],
  );
});

test("a name is resolved once: what it resolves to later changes nothing", async () => {
  await using echo = await echoServer();
  await using other = await echoServer("127.0.0.2", echo.port);
  const answers = [theirs("127.0.0.1"), theirs("127.0.0.2"), theirs("127.0.0.2")];
  let asked = 0;
  await using proxy = await openProxy({
    allow: [`a.test:${echo.port}`, `127.0.0.1:${echo.port}`],
    lookup: async () => answers[asked++]!,
  });
  const client = await proxy.connect();
  client.write(`CONNECT a.test:${echo.port} HTTP/1.1\r\n\r\nhello`);
  assert.match(await client.until("hello"), / 200 /);
  assert.equal(asked, 1);
  const second = await proxy.exchange(`CONNECT a.test:${echo.port} HTTP/1.1\r\n\r\nhello`);
  assert.match(second, / 403 [\s\S]*127\.0\.0\.2 is a loopback address/);
  assert.equal(other.connections, 0);
});

test("odd spellings of addresses, paths of sockets and other nonsense are no hosts", async () => {
  const allow = ["127.0.0.1:80", "[::1]:80", "127.0.0.1:443"];
  await using proxy = await openProxy({ allow, lookup: async () => assert.fail("nothing is resolved") });
  for (const target of [
    ...["127.1:80", "0x7f.0.0.1:80", "0x7f000001:80", "2130706433:80", "0177.0.0.1:80", "127.0.0.1.:80"],
    ...["[::1%lo]:80", "[0:0:0:0:0:0:0:1%25lo]:80", "127.0.0.1:080000", "127.0.0.1:0", "127.0.0.1", ":80"],
    ...["/run/docker.sock:80", "unix:/run/docker.sock", "a..b:80", "user@127.0.0.1:80", "127.0.0.1:80/path"],
    ...[
      "%31%32%37.0.0.1:80",
      "*.example.com:80",
      "http://127.0.0.1:80/",
      "127.0.0.1:80:80",
      "[127.0.0.1]:80",
    ],
  ])
    assert.match(await proxy.exchange(`CONNECT ${target} HTTP/1.1\r\n\r\n`), /^HTTP\/1\.1 400 /, target);
  assert.deepEqual(proxy.reports, []);
});

test("IPv6 hosts are reached where they are listed", async (t) => {
  const echo = await echoServer("::1").catch(() => null);
  if (echo === null) return t.skip("this machine has no IPv6");
  await using _ = echo;
  await using proxy = await openProxy({ allow: [`[::1]:${echo.port}`] });
  for (const host of ["[::1]", "[0:0:0:0:0:0:0:1]"]) {
    const client = await proxy.connect();
    client.write(`CONNECT ${host}:${echo.port} HTTP/1.1\r\n\r\nhi`);
    assert.match(await client.until("hi"), / 200 /);
  }
  const socks = await proxy.connect();
  socks.write(socksRequest({ type: 4, address: [...Array(15).fill(0), 1], port: echo.port }), "hello");
  assert.match(await socks.until("hello"), /hello$/);
});

test("SOCKS5 connects by name and by address, and says why it does not", async () => {
  await using echo = await echoServer();
  const unused = await unusedPort();
  const { port } = echo;
  await using proxy = await openProxy({
    allow: [
      `echo.test:${port}`,
      `127.0.0.1:${port}`,
      `127.0.0.1:${unused}`,
      "unknown.test:80",
      "private.test:80",
    ],
    lookup: async (name) => {
      if (name === "unknown.test") throw Object.assign(new Error("?"), { code: "ENOTFOUND" });
      return name === "private.test" ? theirs("10.0.0.1") : theirs("127.0.0.1");
    },
  });
  for (const request of [
    socksRequest({ type: 3, address: "echo.test", port }),
    socksRequest({ type: 3, address: "127.0.0.1", port }),
    socksRequest({ type: 1, address: [127, 0, 0, 1], port }),
  ]) {
    const client = await proxy.connect();
    client.write(request, "hello");
    assert.equal(await client.until("hello"), "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00hello");
  }
  const code = async (request: Buffer) => (await proxy.exchange(request)).charCodeAt(3);
  const address = [127, 0, 0, 1];
  assert.equal(await code(socksRequest({ type: 3, address: "evil.test", port: 443 })), 2, "not listed");
  assert.equal(
    await code(socksRequest({ type: 3, address: "private.test", port: 80 })),
    2,
    "private address",
  );
  assert.equal(await code(socksRequest({ type: 1, address: [169, 254, 169, 254], port: 80 })), 2, "metadata");
  assert.equal(await code(socksRequest({ type: 3, address: "127.1", port })), 2, "an odd spelling");
  assert.equal(await code(socksRequest({ type: 3, address: "/run/docker.sock", port })), 2, "a path");
  assert.equal(await code(socksRequest({ type: 3, address: "unknown.test", port: 80 })), 4, "unknown");
  assert.equal(await code(socksRequest({ type: 1, address, port: unused })), 5, "nothing listens");
  assert.equal(await code(socksRequest({ command: 2, type: 1, address, port })), 7, "BIND");
  assert.equal(await code(socksRequest({ command: 3, type: 1, address, port })), 7, "UDP ASSOCIATE");
  assert.equal(await code(socksRequest({ type: 9, address, port })), 8, "an unknown type");
  assert.equal(await proxy.exchange(Buffer.of(5, 1, 2)), "\x05\xff", "only with a password");
  assert.equal(await proxy.exchange(Buffer.of(5, 1, 0, 4, 1, 0, 1)), "\x05\x00", "another version");
});

test("SOCKS5 is understood byte by byte, and bytes that follow at once are passed on", async () => {
  await using echo = await echoServer();
  await using proxy = await openProxy({ allow: [`127.0.0.1:${echo.port}`] });
  const client = await proxy.connect();
  for (const byte of socksRequest({ type: 1, address: [127, 0, 0, 1], port: echo.port })) {
    await client.written(Buffer.of(byte));
  }
  client.write("hello");
  assert.match(await client.until("hello"), /hello$/);
});

test("plain requests are passed on with their bodies, and without what belongs to the connection", async () => {
  const seen: { request: IncomingMessage; body: string }[] = [];
  await using server = await httpServer(async (request, response) => {
    seen.push({ request, body: await text(request) });
    response.writeHead(201, [
      "X-A",
      "1",
      "X-A",
      "2",
      "Connection",
      "x-hop",
      "X-Hop",
      "1",
      "Proxy-Authenticate",
      "Basic",
    ]);
    response.end("done");
  });
  const host = `web.test:${server.port}`;
  await using proxy = await openProxy({ allow: [host, `127.0.0.1:${server.port}`] });
  const client = await proxy.connect();
  const lines = [
    `POST http://${host}/a/../b%2f?q=1 HTTP/1.1`,
    `Host: ${host}`,
    ...[
      "X-B: 1",
      "x-b: 2",
      "Connection: keep-alive, X-Secret-Hop",
      "X-Secret-Hop: 1",
      "Proxy-Authorization: Basic eA==",
    ],
    ...["TE: trailers", "Transfer-Encoding: chunked"],
  ];
  client.write(`${lines.join("\r\n")}\r\n\r\n5\r\nhello\r\n0\r\n\r\n`);
  const answer = await client.until("done");
  assert.match(answer, /^HTTP\/1\.1 201 Created\r\nX-A: 1\r\nX-A: 2\r\n/);
  assert.doesNotMatch(answer, /x-hop|proxy-auth/i);
  client.write(`GET http://${host}?q HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  assert.match(await client.until("done"), / 201 /);
  const [first, second] = seen;
  assert.equal(first?.request.url, "/a/../b%2f?q=1");
  assert.equal(first?.body, "hello");
  const kept = first?.request.rawHeaders.map((text) => text.toLowerCase()) ?? [];
  assert.deepEqual(kept, [
    "host",
    host,
    "x-b",
    "1",
    "x-b",
    "2",
    "transfer-encoding",
    "chunked",
    "connection",
    "close",
  ]);
  assert.equal(second?.request.url, "/?q");
  await proxy.close();
  assert.equal(proxy.reports.filter(({ kind }) => kind === "closed").length, 2);
});

test("a host that cannot be reached is told from one that is refused", async () => {
  const unused = await unusedPort();
  await using silent = await tcpServer((socket) => socket.resume().end("nonsense\r\n"));
  await using proxy = await openProxy({
    allow: [`127.0.0.1:${unused}`, "unknown.test:80", "nothing.test:80", `127.0.0.1:${silent.port}`],
    lookup: async (name) => {
      if (name === "nothing.test") return [];
      throw Object.assign(new Error("?"), { code: "EAI_AGAIN" });
    },
  });
  const connect = (target: string) => proxy.exchange(`CONNECT ${target} HTTP/1.1\r\n\r\n`);
  assert.match(
    await connect(`127.0.0.1:${unused}`),
    /^HTTP\/1\.1 502 Bad Gateway[\s\S]*\n127\.0\.0\.1:\d+ cannot be reached: nothing listens at its port\.\n$/,
  );
  assert.match(await connect("unknown.test:80"), / 502 [\s\S]*: the name server does not answer\.\n$/);
  assert.match(await connect("nothing.test:80"), / 502 [\s\S]*: its name has no address\.\n$/);
  const target = `127.0.0.1:${silent.port}`;
  const plain = await proxy.exchange(`GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  assert.match(plain, /^HTTP\/1\.1 502 [\s\S]*does not answer with HTTP/);
  assert.ok(proxy.reports.every(({ kind }) => kind !== "denied"));
});

async function unusedPort(): Promise<number> {
  await using server = await tcpServer(() => {});
  return server.port;
}
