// Which web pages may talk to the gateway (CONTRACTS §2 "Authentication"), over real sockets.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  problemIn,
  problemInRaw,
  sendRaw,
  startApp,
  type TestApp,
  TOKEN,
} from "../../../test/support/api.ts";
import { CHECK_AGENT } from "../../services/checks/http.ts";

const ALLOWED = "https://app.example.org";

/** A request whose Host and Origin are as given, which fetch does not allow. */
const ask = (app: TestApp, line: string, ...headers: string[]) =>
  sendRaw(app, [`${line} HTTP/1.1`, ...headers, "", ""].join("\r\n"));

test("an Origin that is neither the server's own nor in SVC_CORS_ORIGINS gets 403 on unsafe methods", async () => {
  for (const apiTokens of [[], [TOKEN]]) {
    await using app = await startApp({ apiTokens, corsOrigins: [ALLOWED] });
    const from = (method: string, origin: string) =>
      ask(
        app,
        `${method} /api/v1/things/x${method === "POST" ? "/stop" : ""}`,
        `Host: 127.0.0.1:${app.port}`,
        `Origin: ${origin}`,
        `Authorization: Bearer ${TOKEN}`,
        "If-Match: *",
      );
    for (const origin of [
      "https://evil.example",
      "null",
      "http://127.0.0.1",
      `${ALLOWED}.evil.example`,
      "http://localhost",
    ]) {
      problemInRaw(await from("POST", origin), 403, "forbidden");
      problemInRaw(await from("DELETE", origin), 403, "forbidden");
      assert.equal((await from("GET", origin)).status, 200);
    }
    for (const origin of [ALLOWED, `http://127.0.0.1:${app.port}`, `https://127.0.0.1:${app.port}`]) {
      assert.equal((await from("POST", origin)).status, 200);
    }
  }
});

test("a service's health check reads, and changes nothing, whatever token it sends", async () => {
  for (const apiTokens of [[], [TOKEN]]) {
    await using app = await startApp({ apiTokens });
    const check = (line: string) =>
      ask(
        app,
        line,
        `Host: 127.0.0.1:${app.port}`,
        `User-Agent: ${CHECK_AGENT}`,
        `Authorization: Bearer ${TOKEN}`,
        "If-Match: *",
      );
    assert.equal((await check("GET /api/v1/things/x")).status, 200);
    problemInRaw(await check("POST /api/v1/things/x/stop"), 403, "forbidden");
    problemInRaw(await check("DELETE /api/v1/things/x"), 403, "forbidden");
  }
});

test("without a token, a Host header that is not loopback gets 403 (DNS rebinding)", async () => {
  await using app = await startApp();
  for (const host of [
    "evil.example",
    "evil.example:54001",
    "localhost.evil.example",
    "10.0.0.1",
    "127.0.0.1.nip.io",
    "[::2]",
  ]) {
    problemInRaw(await ask(app, "GET /api/v1/whoami", `Host: ${host}`), 403, "forbidden");
    problemInRaw(await ask(app, "GET /api/v1/health", `Host: ${host}`), 403, "forbidden");
  }
  for (const host of ["127.0.0.1", "localhost:54001", "LOCALHOST", "[::1]:9", "app.localhost"]) {
    assert.equal((await ask(app, "GET /api/v1/whoami", `Host: ${host}`)).status, 200);
  }
});

test("the names in SVC_ALLOWED_HOSTS and the bound name are answered, whatever the port; two Host headers are not", async () => {
  await using app = await startApp({
    boundHost: "Build-Host",
    allowedHosts: ["troupe.example.org", "fd00::7"],
  });
  const hosts = ["troupe.example.org", "TROUPE.example.org:8443", "[fd00::7]:1", "build-host:54001"];
  for (const host of hosts) {
    assert.equal((await ask(app, "GET /api/v1/whoami", `Host: ${host}`)).status, 200, host);
  }
  for (const host of ["example.org", "x.troupe.example.org", "troupe.example.org.evil.example"]) {
    problemInRaw(await ask(app, "GET /api/v1/whoami", `Host: ${host}`), 403, "forbidden");
  }
  const twice = ["Host: 127.0.0.1", "hOST: 127.0.0.1"];
  problemInRaw(await ask(app, "GET /api/v1/health", ...twice), 400, "malformed_request");
});

test("what a page of another site embeds or reads is refused, unless it follows a link or its origin is allowed", async () => {
  for (const apiTokens of [[], [TOKEN]]) {
    await using app = await startApp({ apiTokens, corsOrigins: [ALLOWED] });
    const status = async (line: string, ...headers: string[]) => {
      const common = [`Host: 127.0.0.1:${app.port}`, `Authorization: Bearer ${TOKEN}`, "If-Match: *"];
      return (await ask(app, line, ...common, ...headers)).status;
    };
    const cross = "Sec-Fetch-Site: cross-site";
    for (const mode of ["no-cors", "cors", "same-origin", "websocket"]) {
      assert.equal(await status("GET /api/v1/whoami", cross, `Sec-Fetch-Mode: ${mode}`), 403, mode);
      assert.equal(await status("POST /api/v1/things/x/stop", cross, `Sec-Fetch-Mode: ${mode}`), 403, mode);
    }
    assert.equal(await status("GET /api/v1/whoami", cross, "Sec-Fetch-Mode: navigate"), 200);
    assert.equal(await status("POST /api/v1/things/x/stop", cross, "Sec-Fetch-Mode: navigate"), 403);
    assert.equal(await status("GET /api/v1/whoami", cross, `Origin: ${ALLOWED}`), 200);
    assert.equal(await status("POST /api/v1/things/x/stop", cross, `Origin: ${ALLOWED}`), 200);
    for (const site of ["same-origin", "none", "same-site"]) {
      assert.equal(await status("GET /api/v1/whoami", `Sec-Fetch-Site: ${site}`), 200, site);
    }
  }
});

test("with a token, any Host is answered", async () => {
  await using app = await startApp({ apiTokens: [TOKEN] });
  const answer = await ask(
    app,
    "GET /api/v1/whoami",
    "Host: troupe.example.org",
    `Authorization: Bearer ${TOKEN}`,
  );
  assert.equal(answer.status, 200);
});

test("a preflight of an allowed origin is answered without the token; another origin's is not", async () => {
  await using app = await startApp({ apiTokens: [TOKEN], corsOrigins: [ALLOWED] });
  const preflight = (origin: string) =>
    fetch(`${app.url}/runs`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "if-match",
      },
    });
  const answer = await preflight(ALLOWED);
  assert.equal(answer.status, 204);
  assert.equal(answer.headers.get("access-control-allow-origin"), ALLOWED);
  assert.equal(answer.headers.get("access-control-allow-credentials"), null);
  assert.equal(answer.headers.get("vary"), "Origin");
  assert.match(answer.headers.get("access-control-allow-methods") ?? "", /PATCH/);
  for (const name of ["authorization", "idempotency-key", "if-match", "last-event-id", "content-type"]) {
    assert.ok(answer.headers.get("access-control-allow-headers")?.includes(name), name);
  }
  await problemIn(await preflight("https://evil.example"), 401, "unauthorized");
});

test("answers to an allowed origin may be read by it: successes, problems and streams", async () => {
  await using app = await startApp({ apiTokens: [TOKEN], corsOrigins: [ALLOWED, "http://localhost:5173"] });
  const ask = (path: string, headers: Record<string, string>) =>
    fetch(`${app.url}${path}`, { headers: { origin: ALLOWED, ...headers } });
  const stream = await ask("/stream", { authorization: `Bearer ${TOKEN}` });
  const answers = [
    await ask("/whoami", { authorization: `Bearer ${TOKEN}` }),
    await ask("/whoami", {}),
    await ask("/nope", { authorization: `Bearer ${TOKEN}` }),
    await ask("/things/%ff", { authorization: `Bearer ${TOKEN}` }),
    stream,
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 401, 404, 400, 200],
  );
  for (const { headers } of answers) {
    assert.equal(headers.get("access-control-allow-origin"), ALLOWED);
    for (const name of ["etag", "location", "x-request-id", "idempotency-replayed", "retry-after"]) {
      assert.ok(headers.get("access-control-expose-headers")?.includes(name), name);
    }
    assert.equal(headers.get("vary"), "Origin");
    assert.match(headers.get("x-request-id") ?? "", /./);
  }
  await stream.body?.cancel();
});

test("caches are told that answers depend on the origin, also for requests without one; without a list, nothing is added", async () => {
  await using listed = await startApp({ corsOrigins: [ALLOWED] });
  assert.equal((await fetch(`${listed.url}/whoami`)).headers.get("vary"), "Origin");
  await using bare = await startApp();
  const { headers } = await fetch(`${bare.url}/whoami`, { headers: { origin: ALLOWED } });
  assert.equal(headers.get("vary"), null);
  assert.equal(headers.get("access-control-allow-origin"), null);
});
