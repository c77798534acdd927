// What a worker may try with the proxy, and what a host that it may reach may try: over real sockets.

import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { holding } from "../../../../test/support/execution.ts";
import {
  echoServer,
  httpServer,
  openProxy,
  socksRequest,
  tcpServer,
  theirs,
} from "../../../../test/support/sandbox-proxy.ts";
import { until } from "../../../../test/support/until.ts";
import { proxyLimits } from "./proxy.ts";
import { DENIED_REPORTS_MAX } from "./reports.ts";

/** A web server that notes the requests it gets, and a proxy that lets through to it by the name web.test. */
async function webServer(
  answer: Parameters<typeof httpServer>[0] = (_request, response) => response.end("hello"),
) {
  const requests: string[] = [];
  const server = await httpServer(async (request, response) => {
    requests.push(`${request.method} ${request.headers.host}${request.url} ${await text(request)}`);
    answer(request, response);
  });
  const host = `web.test:${server.port}`;
  const proxy = await openProxy({ allow: [host, `127.0.0.1:${server.port}`] });
  return {
    host,
    proxy,
    requests,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

test("a second request on a connection is judged as the first one was", async () => {
  await using web = await webServer();
  const client = await web.proxy.connect();
  client.write(`GET http://${web.host}/ HTTP/1.1\r\nHost: ${web.host}\r\n\r\n`);
  await client.until("hello");
  client.write("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n");
  assert.match(await client.rest(), /^\s*HTTP\/1\.1 403 [\s\S]*add "evil\.test:80"/);
  assert.equal(web.requests.length, 1);
});

test("a redirect to a host that is not allowed leads nowhere", async () => {
  await using web = await webServer((_request, response) => {
    response.writeHead(302, { Location: "http://169.254.169.254/latest/meta-data/" }).end();
  });
  const first = await web.proxy.connect();
  first.write(`GET http://${web.host}/ HTTP/1.1\r\nHost: ${web.host}\r\n\r\n`);
  const [, location = ""] = /location: (\S+)/i.exec(await first.until("\r\n\r\n")) ?? [];
  const answer = await web.proxy.exchange(`GET ${location} HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`);
  assert.match(answer, /^HTTP\/1\.1 403 [\s\S]*add "169\.254\.169\.254:80"/);
});

test("requests that are read differently by different programs reach nobody", async () => {
  await using web = await webServer();
  const start = `POST http://${web.host}/ HTTP/1.1\r\nHost: ${web.host}\r\n`;
  const hidden = `GET http://${web.host}/hidden HTTP/1.1\r\nHost: ${web.host}\r\n\r\n`;
  for (const [what, request] of [
    ["both lengths", `${start}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ["two lengths", `${start}Content-Length: 5\r\nContent-Length: 0\r\n\r\n${hidden}`],
    ["a negative length", `${start}Content-Length: -1\r\n\r\n${hidden}`],
    ["a length with a sign", `${start}Content-Length: +5\r\n\r\nhello`],
    ["an unknown coding", `${start}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`],
    ["two codings", `${start}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${hidden}`],
    [
      "chunked twice",
      `${start}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    ["a coding behind a space", `${start}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ["a folded header", `${start}X: 1\r\n Transfer-Encoding: chunked\r\n\r\n${hidden}`],
    ["lines without CR", `${start.replaceAll("\r\n", "\n")}\n`],
    ["a wrong size of a chunk", `${start}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${hidden}`],
    ["two hosts", `${start}Host: evil.test\r\n\r\n`],
    ["another host", `GET http://${web.host}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n`],
    ["another port", `GET http://${web.host}/ HTTP/1.1\r\nHost: web.test:1\r\n\r\n`],
    ["no host", `GET http://${web.host}/ HTTP/1.1\r\n\r\n`],
    ["a user", `GET http://web.test@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n`],
    ["a path alone", `GET / HTTP/1.1\r\nHost: ${web.host}\r\n\r\n`],
    ["https without CONNECT", `GET https://${web.host}/ HTTP/1.1\r\nHost: ${web.host}\r\n\r\n`],
    ["a backslash", `GET http://web.test\\@evil.test/ HTTP/1.1\r\nHost: web.test\r\n\r\n`],
    ["no HTTP at all", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"],
    ["SOCKS4", Buffer.of(4, 1, 0, 80, 127, 0, 0, 1, 0).toString("latin1")],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ] as const) {
    const answer = await web.proxy.exchange(request);
    assert.match(answer, /^HTTP\/1\.1 (?:400|505) /, what);
    assert.deepEqual(web.requests, [], what);
  }
});

test("what is sent behind a request while it runs is refused, and reaches nobody", async () => {
  await using web = await webServer();
  const request = (path: string) => `GET http://${web.host}${path} HTTP/1.1\r\nHost: ${web.host}\r\n\r\n`;
  const answer = await web.proxy.exchange(request("/a") + request("/b"));
  assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*hello[\s\S]*HTTP\/1\.1 400 /);
  const tunnel = await web.proxy.connect();
  tunnel.write(`${request("/c")}CONNECT ${web.host} HTTP/1.1\r\n\r\n`);
  assert.doesNotMatch(await tunnel.rest(), /established/);
  assert.ok(web.requests.every((line) => !line.includes("/b")));
});

test("the body of a request without a use for one stays a body", async () => {
  await using web = await webServer();
  const hidden = `GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n`;
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
  const length = `Content-Length: ${hidden.length}\r\nConnection: keep-alive, content-length, host\r\n\r\n${hidden}`;
  for (const [i, body] of [chunked, length].entries()) {
    const client = await web.proxy.connect();
    client.write(`GET http://${web.host}/${i} HTTP/1.1\r\nHost: ${web.host}\r\n${body}`);
    await client.until("hello");
    assert.deepEqual(web.requests, [`GET ${web.host}/${i} ${hidden}`]);
    web.requests.length = 0;
  }
});

test("headers without an end are refused", async () => {
  await using web = await webServer();
  const long = `GET http://${web.host}/ HTTP/1.1\r\nHost: ${web.host}\r\nX: ${"x".repeat(100_000)}\r\n\r\n`;
  assert.match(await web.proxy.exchange(long), /^HTTP\/1\.1 431 /);
  assert.match(
    await web.proxy.exchange(`CONNECT ${"a".repeat(100_000)}:80 HTTP/1.1\r\n\r\n`),
    /^HTTP\/1\.1 431 /,
  );
  assert.deepEqual(web.requests, []);
});

test("clients that do not say what they want are closed after a while", async () => {
  const { clock, fire } = holding(proxyLimits.handshakeMs);
  await using echo = await echoServer();
  await using proxy = await openProxy({ allow: [`127.0.0.1:${echo.port}`], clock });
  const slow = [await proxy.connect(), await proxy.connect(), await proxy.connect()];
  slow[1]!.write("GET http://a");
  slow[2]!.write("\x05\x01\x00\x05\x01");
  await slow[2]!.until("\x05\x00");
  const refused = await proxy.connect();
  refused.write("CONNECT evil.test:80 HTTP/1.1\r\n\r\n");
  await refused.until("allow.\n");
  const open = await proxy.connect();
  open.write(`CONNECT 127.0.0.1:${echo.port} HTTP/1.1\r\n\r\n`);
  await open.until("\r\n\r\n");
  fire();
  for (const client of [...slow, refused]) await client.rest();
  open.write("still");
  assert.equal(await open.until("still"), "still");
});

test("an attempt to resolve or to connect ends after a while, and with its client", async () => {
  const { clock, fire } = holding(proxyLimits.connectMs);
  const asked: PromiseWithResolvers<ReturnType<typeof theirs>>[] = [];
  const lookup = () => {
    const answer = Promise.withResolvers<ReturnType<typeof theirs>>();
    asked.push(answer);
    return answer.promise;
  };
  await using echo = await echoServer();
  const target = `a.test:${echo.port}`;
  await using proxy = await openProxy({ allow: [target, `127.0.0.1:${echo.port}`], clock, lookup });
  const asks = async () => {
    const client = await proxy.connect();
    const before = asked.length;
    client.write(`CONNECT ${target} HTTP/1.1\r\n\r\n`);
    await until("the name is asked for", () => asked.length > before);
    return client;
  };
  const waiting = await asks();
  const gone = await asks();
  gone.socket.destroy();
  await gone.closed;
  fire();
  assert.match(await waiting.rest(), /^HTTP\/1\.1 504 Gateway Timeout[\s\S]*: it does not answer\.\n$/);
  const socks = await proxy.connect();
  socks.write(socksRequest({ type: 3, address: "a.test", port: echo.port }));
  await until("the name is asked for", () => asked.length === 3);
  fire();
  assert.equal((await socks.rest()).charCodeAt(3), 6);
  for (const { resolve } of asked) resolve(theirs("127.0.0.1"));
  const open = await asks();
  asked.at(-1)!.resolve(theirs("127.0.0.1"));
  await open.until("established");
  assert.equal(echo.connections, 1, "what was given up does not connect later");
});

test("a connection on which nothing moves is closed, and one that is used is not", async () => {
  const { clock, fire } = holding(proxyLimits.idleMs);
  await using echo = await echoServer();
  await using mute = await tcpServer((socket) => socket.on("error", () => {}).resume());
  const allow = [`127.0.0.1:${echo.port}`, `127.0.0.1:${mute.port}`];
  await using proxy = await openProxy({ allow, clock });
  const idle = await proxy.connect();
  idle.write(`CONNECT 127.0.0.1:${mute.port} HTTP/1.1\r\n\r\n`);
  await idle.until("established");
  const used = await proxy.connect();
  used.write(`CONNECT 127.0.0.1:${echo.port} HTTP/1.1\r\n\r\nhello`);
  await used.until("hello");
  const request = await proxy.connect();
  request.write(`GET http://127.0.0.1:${mute.port}/ HTTP/1.1\r\nHost: 127.0.0.1:${mute.port}\r\n\r\n`);
  await until("it is connected", () => proxy.reports.length === 3);
  for (const word of ["one", "two", "three"]) {
    used.write(word);
    await used.until(word);
    fire();
  }
  await idle.rest();
  assert.match(await request.rest(), /^HTTP\/1\.1 502 /);
  used.write("four");
  assert.equal(await used.until("four"), "four");
});

test("a client that disappears closes its connection, and the other way round", async () => {
  await using echo = await echoServer();
  await using proxy = await openProxy({ allow: [`127.0.0.1:${echo.port}`] });
  const open = async () => {
    const client = await proxy.connect();
    client.write(`CONNECT 127.0.0.1:${echo.port} HTTP/1.1\r\n\r\n`);
    await client.until("established\r\n\r\n");
    return client;
  };
  (await open()).socket.destroy();
  await until("the server's side is closed", () => echo.open.size === 0);
  const client = await open();
  await until("the server has it", () => echo.open.size === 1);
  for (const socket of echo.open) socket.resetAndDestroy();
  await client.rest();
  await until("both are reported", () => proxy.reports.filter(({ kind }) => kind === "closed").length === 2);
});

test("thousands of connections pass, no more than a number at once", async () => {
  await using echo = await echoServer();
  const room = { left: 60 };
  await using proxy = await openProxy({ allow: [`127.0.0.1:${echo.port}`], room });
  const request = `CONNECT 127.0.0.1:${echo.port} HTTP/1.1\r\n\r\nhello`;
  const worker = async () => {
    for (let i = 0; i < 40; i++) {
      const client = await proxy.connect();
      client.write(request);
      await client.until("hello");
      client.socket.end();
      await client.closed;
    }
  };
  await Promise.all(Array.from({ length: 50 }, worker));
  assert.equal(echo.connections, 2_000);
  await until("all are closed", () => room.left === 60);
  const held = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const client = await proxy.connect();
      client.write(request);
      await client.until("hello");
      return client;
    }),
  );
  assert.equal(
    await proxy.exchange(request).catch(() => ""),
    "",
    "beyond the room for clients nobody is served",
  );
  for (const { socket } of held) socket.destroy();
  await proxy.close();
  const [totals] = proxy.reports.slice(-1);
  assert.ok(totals?.kind === "totals" && totals.connections === 2_060 && totals.unreported === 1_060);
  assert.equal(proxy.reports.length, 2_001, "1,000 that were opened and closed, and the totals");
});

test("a sandbox has a limit of its own", async () => {
  await using proxy = await openProxy({ allow: [] });
  const clients = await Promise.all(Array.from({ length: proxyLimits.clientsMax }, () => proxy.connect()));
  assert.equal(await proxy.exchange("CONNECT evil.test:80 HTTP/1.1\r\n\r\n").catch(() => ""), "");
  clients[0]!.socket.destroy();
  await clients[0]!.closed;
  await until("there is room again", async () => {
    const answer = await proxy.exchange("CONNECT evil.test:80 HTTP/1.1\r\n\r\n").catch(() => "");
    return answer.includes(" 403 ");
  });
});

test("a flood of refused connections is a few reports and a number", async () => {
  await using proxy = await openProxy({ allow: [] });
  const client = await proxy.connect();
  const count = DENIED_REPORTS_MAX + 50;
  client.socket.destroy();
  for (let i = 0; i < count; i++) await proxy.exchange(`CONNECT h${i}.evil.test:80 HTTP/1.1\r\n\r\n`);
  await proxy.close();
  assert.equal(proxy.reports.length, DENIED_REPORTS_MAX + 1);
  const [totals] = proxy.reports.slice(-1);
  assert.ok(totals?.kind === "totals" && totals.denied === count && totals.unreported === 50);
});

test("answers that are no HTTP become a 502, and harm nobody", async () => {
  const answers = [
    "HTTP/1.1 099 No\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
    `HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}\r\n\r\n`,
    "HTTP/1.1 200 OK\r\nX\x01Y: 1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nbroken\r\n\r\n",
    "\x00\x01\x02",
    "",
  ];
  await using server = await tcpServer((socket) => {
    socket
      .on("error", () => {})
      .once("data", (data) => {
        const [, index = ""] = /\/(\d+)/.exec(data.toString()) ?? [];
        socket.end(answers[Number(index)]!, "latin1");
      });
  });
  const host = `127.0.0.1:${server.port}`;
  await using proxy = await openProxy({ allow: [host] });
  for (const [i, answer] of answers.entries()) {
    const got = await proxy.exchange(`GET http://${host}/${i} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.match(got, /^HTTP\/1\.1 502 /, JSON.stringify(answer));
  }
});

test("a host that answers before it has read a request is passed on, and one that breaks off is seen to", async () => {
  await using server = await tcpServer((socket) => {
    socket
      .on("error", () => {})
      .once("data", (data) => {
        if (data.includes("/early")) socket.end("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
        else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
      });
  });
  const host = `127.0.0.1:${server.port}`;
  await using proxy = await openProxy({ allow: [host] });
  const early = await proxy.connect();
  early.write(`POST http://${host}/early HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000\r\n\r\nx`);
  assert.match(await early.until("big"), / 413 /);
  early.write("x".repeat(999_999), "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n");
  assert.match(await early.rest(), /^HTTP\/1\.1 403 /);
  const half = await proxy.connect();
  half.write(`GET http://${host}/half HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  assert.match(await half.rest(), /half$/, "the connection ends where the answer did");
});
