// Authentication (CONTRACTS §2), over real sockets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemIn, problemInRaw, sendRaw, startApp, TOKEN } from "../../../test/support/api.ts";

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`anyone:${password}`).toString("base64")}`,
});

test("with SVC_API_TOKEN set, everything but GET /api/v1/health answers 401 without it, unknown paths included", async () => {
  await using app = await startApp({ apiTokens: [TOKEN] });
  const { origin } = new URL(app.url);
  const routes = [
    ["GET", "/api/v1/whoami"],
    ["HEAD", "/api/v1/whoami"],
    ["POST", "/api/v1/things"],
    ["POST", "/api/v1/health"],
    ["OPTIONS", "/api/v1/health"],
    ["PROPFIND", "/api/v1/health"],
    ["GET", "/api/v1/nope"],
    ["GET", "/docs"],
    ["GET", "/"],
    ["GET", "/api/v1/things/%ff"],
    ["GET", "/api/v1/health/"],
    ["GET", "/api/v1/healthy"],
    ["GET", "/api/v1/%68ealth"],
    ["GET", "//api/v1/health"],
  ] as const;
  for (const [method, path] of routes) {
    const answer = await fetch(`${origin}${path}`, { method });
    assert.equal(answer.status, 401, `${method} ${path}`);
    assert.equal(answer.headers.get("www-authenticate"), "Bearer");
    if (method !== "HEAD") await problemIn(answer, 401, "unauthorized");
  }
  const raw = "GET * HTTP/1.1\r\nHost: a\r\n\r\n";
  problemInRaw(await sendRaw(app, raw), 401, "unauthorized");
});

test("health needs no token, with HEAD or a query neither", async () => {
  await using app = await startApp({ apiTokens: [TOKEN] });
  assert.equal((await fetch(`${app.url}/health`)).status, 200);
  assert.equal((await fetch(`${app.url}/health?a=b`, { headers: bearer("wrong") })).status, 200);
  assert.equal((await fetch(`${app.url}/health`, { method: "HEAD" })).status, 200);
});

test("each of the tokens opens, and all are one principal; the scheme's case does not matter", async () => {
  const older = "another-token-of-the-same-server";
  await using app = await startApp({ apiTokens: [TOKEN, older] });
  const sent = [
    bearer(TOKEN),
    { authorization: `bEARER   ${TOKEN}` },
    basic(TOKEN),
    bearer(older),
    basic(older),
  ];
  for (const headers of sent) {
    const answer = await fetch(`${app.url}/whoami`, { headers });
    assert.deepEqual(await answer.json(), { principal: "token" });
  }
});

test('a wrong token is 401 with error="invalid_token", whatever is wrong with it', async () => {
  await using app = await startApp({ apiTokens: [TOKEN] });
  const wrong = [
    bearer("wrong"),
    bearer(`${TOKEN}x`),
    bearer(TOKEN.slice(1)),
    bearer(TOKEN.toUpperCase()),
    { authorization: TOKEN },
    { authorization: "Bearer" },
    { authorization: "Digest x" },
    { authorization: `Basic ${Buffer.from(TOKEN).toString("base64")}` },
    basic("wrong"),
    { authorization: "Basic %%%" },
  ];
  for (const headers of wrong) {
    const answer = await fetch(`${app.url}/whoami`, { headers });
    assert.equal(answer.headers.get("www-authenticate"), 'Bearer error="invalid_token"');
    const body = await problemIn(answer, 401, "unauthorized");
    assert.ok(!JSON.stringify(body).includes(TOKEN));
  }
});

test("the Basic challenge is sent only to requests that accept text/html", async () => {
  await using app = await startApp({ apiTokens: [TOKEN] });
  const challenge = async (accept: string) =>
    (await fetch(`${app.url}/whoami`, { headers: { accept } })).headers.get("www-authenticate");
  assert.equal(
    await challenge("text/html,application/xhtml+xml"),
    'Bearer, Basic realm="Troupe", charset="UTF-8"',
  );
  for (const accept of ["*/*", "application/json", "text/event-stream"])
    assert.equal(await challenge(accept), "Bearer");
});

test("a Basic-authenticated unsafe method must carry Sec-Fetch-Site: same-origin or none, else 403", async () => {
  await using app = await startApp({ apiTokens: [TOKEN] });
  const stop = (headers: Record<string, string>) =>
    fetch(`${app.url}/things/x/stop`, { method: "POST", headers });
  for (const site of ["cross-site", "same-site", "", "Same-Origin"]) {
    await problemIn(await stop({ ...basic(TOKEN), "sec-fetch-site": site }), 403, "forbidden");
  }
  const raw = `POST /api/v1/things/x/stop HTTP/1.1\r\nHost: a\r\nAuthorization: ${basic(TOKEN).authorization}\r\n\r\n`;
  problemInRaw(await sendRaw(app, raw), 403, "forbidden");
  for (const site of ["same-origin", "none"]) {
    assert.equal((await stop({ ...basic(TOKEN), "sec-fetch-site": site })).status, 200);
  }
  // The rule is Basic's alone; what other sites send is refused whatever it carries (origin-policy.test.ts).
  assert.equal((await stop({ ...bearer(TOKEN), "sec-fetch-site": "same-site" })).status, 200);
  assert.equal((await stop(bearer(TOKEN))).status, 200);
});

test("without a token everybody is anonymous, also who sends one", async () => {
  await using app = await startApp();
  for (const headers of [{}, bearer("x")]) {
    assert.deepEqual(await (await fetch(`${app.url}/whoami`, { headers })).json(), {
      principal: "anonymous",
    });
  }
});
