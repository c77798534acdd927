// Run tokens, by themselves and over real sockets.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { FastifyInstance } from "fastify";
import { problemIn, problemInRaw, sendRaw, startApp, TOKEN } from "../../../test/support/api.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { RunTokens } from "./run-token.ts";

const tokens = new RunTokens(Buffer.alloc(32, 7));
const MINE = "run_01kdvdna0b0r0m4wxhgbad88n8";
const OTHER = "run_01kdvdna0b0r0m4wxhgbad88n9";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const withRuns = () =>
  startApp({ apiTokens: [TOKEN], runTokens: tokens }, (api: FastifyInstance) => {
    for (const path of ["/runs", "/runs/:id", "/runs/:id/events", "/runs/:id/files/*"]) {
      api.get(path, async (request) => ({ principal: request.principal }));
    }
    for (const method of ["POST", "PATCH", "DELETE", "PUT"]) {
      api.route({ method, url: "/runs/:id", handler: async () => ({ changed: true }) });
    }
  });

test("a run's token reads that run and what lies below it, as the run's own principal", async () => {
  await using app = await withRuns();
  for (const path of ["", "?view=full", "/events", "/events?page_size=2", "/files/a/b%2Fc"]) {
    const answer = await fetch(`${app.url}/runs/${MINE}${path}`, { headers: bearer(tokens.of(MINE)) });
    assert.deepEqual(await answer.json(), { principal: `run:${MINE}` });
  }
  const head = await fetch(`${app.url}/runs/${MINE}`, { method: "HEAD", headers: bearer(tokens.of(MINE)) });
  assert.equal(head.status, 200);
});

test("it is a wrong token for every other run, list, path and method", async () => {
  await using app = await withRuns();
  const refused = [
    ["GET", `/runs/${OTHER}`],
    ["GET", `/runs/${OTHER}/events`],
    ["GET", "/runs"],
    ["GET", "/runs/"],
    ["GET", `/runs?${MINE}`],
    ["GET", `/runs/${MINE}x`],
    ["GET", `/runs/${MINE};/x`],
    ["GET", `/runs/${MINE}%2Fevents`],
    ["GET", `/runs//${MINE}`],
    ["GET", "/whoami"],
    ["GET", "/nope"],
    ["POST", `/runs/${MINE}`],
    ["PATCH", `/runs/${MINE}`],
    ["DELETE", `/runs/${MINE}`],
    ["PUT", `/runs/${MINE}`],
    ["OPTIONS", `/runs/${MINE}`],
  ] as const;
  for (const [method, path] of refused) {
    const answer = await fetch(`${app.url}${path}`, { method, headers: bearer(tokens.of(MINE)) });
    assert.equal(answer.headers.get("www-authenticate"), 'Bearer error="invalid_token"', `${method} ${path}`);
    const body = await problemIn(answer, 401, "unauthorized");
    assert.ok(!JSON.stringify(body).includes("trt_"));
  }
  assert.ok(!app.logged.join().includes("trt_"));
});

test("a path that names another run on its way is refused as it was sent: nothing resolves it", async () => {
  await using app = await withRuns();
  const paths = [`/runs/${MINE}/../${OTHER}`, `/runs/${MINE}/%2e%2e/${OTHER}`, `/x/../runs/${MINE}`];
  for (const path of paths) {
    const answer = await sendRaw(
      app,
      `GET /api/v1${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.of(MINE)}\r\n\r\n`,
    );
    assert.ok(answer.status === 401 || answer.status === 404, answer.body);
    assert.ok(!answer.body.includes(OTHER) || answer.status === 404);
  }
  const absolute = `GET http://a/api/v1/runs/${MINE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.of(MINE)}\r\n\r\n`;
  problemInRaw(await sendRaw(app, absolute), 401, "unauthorized");
});

test("as a Basic password it opens nothing, and the API token goes on opening everything", async () => {
  await using app = await withRuns();
  const basic = `Basic ${Buffer.from(`anyone:${tokens.of(MINE)}`).toString("base64")}`;
  const asPassword = await fetch(`${app.url}/runs/${MINE}`, { headers: { authorization: basic } });
  await problemIn(asPassword, 401, "unauthorized");
  const withApiToken = await fetch(`${app.url}/runs/${OTHER}`, { headers: bearer(TOKEN) });
  assert.match(JSON.stringify(await withApiToken.json()), /"token"/);
});

test("no two runs share a token, and no token opens another run or another installation's", () => {
  const id = fc.stringMatching(/^run_[0-9a-z]{26}$/);
  fc.assert(
    fc.property(id, id, (mine, other) => {
      const read = (runId: string) => ({ method: "GET", url: `/api/v1/runs/${runId}/events` });
      assert.equal(tokens.runRead(read(mine), tokens.of(mine)), mine);
      if (mine === other) return;
      assert.notEqual(tokens.of(mine), tokens.of(other));
      assert.equal(tokens.runRead(read(other), tokens.of(mine)), null);
      const elsewhere = new RunTokens(randomBytes(32));
      assert.equal(elsewhere.runRead(read(mine), tokens.of(mine)), null);
    }),
  );
});

test("a token that was changed anywhere, cut or made longer is none", () => {
  const token = tokens.of(MINE);
  const asked = { method: "GET", url: `/api/v1/runs/${MINE}` };
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.constantFrom(..."AZaz09-_."), (at, char) => {
      const changed = token.slice(0, at) + char + token.slice(at + 1);
      assert.equal(tokens.runRead(asked, changed), changed === token ? MINE : null);
      assert.equal(tokens.runRead(asked, token.slice(0, at)), null);
      assert.equal(tokens.runRead(asked, token + char), null);
    }),
  );
});

test("a link with a run's key opens that run for a browser: the key leaves the address and is kept in a cookie", async () => {
  await using app = await withRuns();
  const ask = (path: string, headers: Record<string, string> = {}) =>
    fetch(app.url + path, { headers, redirect: "manual" });
  const opened = await ask(`/runs/${MINE}/events?page_size=2&key=${tokens.of(MINE)}`);
  assert.equal(opened.status, 303);
  assert.equal(opened.headers.get("location"), `/api/v1/runs/${MINE}/events?page_size=2`);
  const setCookie = opened.headers.get("set-cookie") ?? "";
  assert.match(setCookie, new RegExp(`; HttpOnly; SameSite=Lax; Path=/api/v1/runs/${MINE}$`));
  const cookie = `other=1; ${setCookie.split(";")[0]}`;
  const read = await ask(`/runs/${MINE}/events`, { cookie });
  assert.deepEqual(await read.json(), { principal: `run:${MINE}` });
  for (const path of [`/runs/${OTHER}`, "/runs", "/whoami"]) {
    await problemIn(await ask(path, { cookie }), 401, "unauthorized");
    await problemIn(await ask(`${path}?key=${tokens.of(MINE)}`), 401, "unauthorized");
  }
  // fetch would resolve the dots by itself.
  const leading = `/api/v1/runs/${MINE}/../../../..//evil.example/?key=${tokens.of(MINE)}`;
  const led = await sendRaw(app, `GET ${leading} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  problemInRaw(led, 401, "unauthorized");
  const changed = await fetch(`${app.url}/runs/${MINE}`, { method: "POST", headers: { cookie } });
  await problemIn(changed, 401, "unauthorized");
  // The API token is no key of a run, in neither place.
  await problemIn(await ask(`/runs/${MINE}?key=${TOKEN}`), 401, "unauthorized");
  await problemIn(await ask(`/runs/${MINE}`, { cookie: `troupe_run_key=${TOKEN}` }), 401, "unauthorized");
});
