// Browsers that sign in to the console: cookie and key, links, shares, tickets; and what somebody can do who has only one of them.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Answer, ask, assertProblem, call, completed, createJob } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { Judge, type OpenApi } from "../support/openapi.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { exchange, type RawAnswer, request } from "../support/raw-http.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const bearer = { authorization: `Bearer ${TOKEN}` };

let program: Program;
let host: string;
let runs: readonly [string, string];
let artifact: string;
let judge: Judge;
before(async () => {
  const home = await temporaryHome();
  {
    await using open = await startGatewayHere({ home });
    const write = 'echo secret-of-the-run > "$SVC_OUTPUT_DIR/final.txt"';
    const jobId = await createJob(open, graph("shown", [executor("writer", write)]));
    const [first, second] = [await completed(open, jobId), await completed(open, jobId)];
    runs = [String(first.run.run_id), String(second.run.run_id)];
    const { items } = await call(open, "GET", `/runs/${runs[0]}/artifacts`);
    const written = (items as readonly JsonObject[]).find(({ name }) => name === "final.txt");
    artifact = String(written?.artifact_id);
  }
  program = await startGatewayHere({ home, env: { SVC_API_TOKEN: TOKEN } });
  host = new URL(program.url).host;
  const document = await ask({ ...program, api: program.url }, "GET", "/openapi.json", { headers: bearer });
  judge = new Judge(document.body as unknown as OpenApi);
});
after(async () => {
  await program.stop();
  await rm(program.home, { recursive: true, force: true });
});

/** What a browser is told when it has signed in. */
interface SignedIn {
  readonly cookie: string;
  readonly key: string;
  readonly body: JsonObject;
}

const page = () => [`Host: ${host}`, `Origin: http://${host}`, "Sec-Fetch-Site: same-origin"];

/** A request as a page of the gateway's own origin would send it. @param path from the origin's root */
async function send(
  method: string,
  path: string,
  headers: readonly string[] = [],
  body?: JsonObject,
): Promise<RawAnswer> {
  const text = body === undefined ? "" : JSON.stringify(body);
  const [answer] = await exchange(program, request(method, path, [...headers, "Connection: close"], text));
  assert.ok(answer !== undefined, `${method} ${path}`);
  return answer;
}

async function signIn(body: JsonObject): Promise<SignedIn> {
  const answer = await send("POST", "/console/session", page(), body);
  assert.equal(answer.status, 200, answer.body);
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  const told = JSON.parse(answer.body) as JsonObject;
  return { cookie, key: String(told.key), body: told };
}

const signed = ({ cookie, key }: SignedIn) => [...page(), `Cookie: ${cookie}`, `X-Console-Key: ${key}`];
const withCookie = ({ cookie }: SignedIn) => [`Host: ${host}`, `Cookie: ${cookie}`];
const problemOf = ({ body }: RawAnswer) => JSON.parse(body) as JsonObject;

test("a token is exchanged for a cookie that no script reads and a key; with both a page does what the token may", async () => {
  const answer = await send("POST", "/console/session", page(), { token: TOKEN });
  assert.match(
    answer.headers.get("set-cookie") ?? "",
    /^troupe_\d+=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/,
  );
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.ok(!answer.body.includes(/=([\w-]{43})/.exec(answer.headers.get("set-cookie") ?? "")?.[1] ?? "="));
  const browser = await signIn({ token: TOKEN });
  assert.equal(browser.body.run_id, null);
  assert.equal((await send("GET", "/api/v1/runs", signed(browser))).status, 200);
  assert.equal((await send("POST", "/api/v1/jobs/job_none/cancel", signed(browser))).status, 404);
  const state = await send("GET", "/console/session", signed(browser));
  assert.deepEqual(JSON.parse(state.body), { needs_token: true, signed_in: true, run_id: null });
  const stranger = await send("GET", "/console/session", page());
  assert.deepEqual(JSON.parse(stranger.body), { needs_token: true, signed_in: false, run_id: null });
});

test("elsewhere than on this machine only https may set the cookie", async () => {
  const away = [
    "Host: troupe.example.org",
    "Origin: https://troupe.example.org",
    "Sec-Fetch-Site: same-origin",
  ];
  const answer = await send("POST", "/console/session", away, { token: TOKEN });
  const cookie = answer.headers.get("set-cookie") ?? "";
  assert.match(cookie, /^__Host-troupe=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Secure$/);
  const key = `X-Console-Key: ${JSON.parse(answer.body).key}`;
  const shown = [...away, key];
  assert.equal(
    (await send("GET", "/api/v1/runs", [...shown, `Cookie: ${cookie.split(";")[0]}`])).status,
    200,
  );
  const renamed = (cookie.split(";")[0] ?? "").replace("__Host-", "");
  assert.equal((await send("GET", "/api/v1/runs", [...shown, `Cookie: ${renamed}`])).status, 401);
});

test("the cookie alone, which every port of the host is sent, opens documents that say nothing, and no more", async () => {
  const browser = await signIn({ token: TOKEN });
  for (const path of ["/docs", "/openapi.json", "/"]) {
    const { status } = await send("GET", path, withCookie(browser));
    assert.ok(status === 200 || status === 302, `${path}: ${status}`);
  }
  const dashboard = await send("GET", `/api/v1/runs/${runs[0]}/dashboard`, withCookie(browser));
  assert.equal(dashboard.headers.get("location"), `/console/runs/${runs[0]}`);
  for (const path of [
    "/api/v1/runs",
    `/api/v1/runs/${runs[0]}`,
    `/api/v1/runs/${runs[0]}/dashboard/config.json`,
    "/api/v1/sessions",
    "/docs/../api/v1/runs",
  ]) {
    assert.equal((await send("GET", path, withCookie(browser))).status, 401, path);
  }
  for (const key of ["x", browser.cookie.split("=")[1] ?? ""]) {
    const headers = [...withCookie(browser), `X-Console-Key: ${key}`];
    assert.equal((await send("GET", "/api/v1/runs", headers)).status, 401);
  }
  assert.equal(
    (await send("GET", "/api/v1/runs", [`Host: ${host}`, `X-Console-Key: ${browser.key}`])).status,
    401,
  );
});

test("only a page of this very origin changes something: the browser has to say so twice", async () => {
  const browser = await signIn({ token: TOKEN });
  const shown = [`Host: ${host}`, `Cookie: ${browser.cookie}`, `X-Console-Key: ${browser.key}`];
  const own = `Origin: http://${host}`;
  const site = "Sec-Fetch-Site: same-origin";
  for (const [headers, status] of [
    [[own, site], 404],
    [[own], 403],
    [[site], 403],
    [[own, "Sec-Fetch-Site: same-site"], 403],
    [["Origin: http://127.0.0.1:1", site], 403],
    [["Origin: null", site], 403],
  ] as const) {
    const answer = await send("POST", "/api/v1/jobs/job_none/cancel", [...shown, ...headers]);
    assert.equal(answer.status, status, `${headers}: ${answer.body}`);
  }
  const foreign = [`Host: ${host}`, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"];
  assert.equal((await send("POST", "/console/session", foreign, { token: TOKEN })).status, 403);
});

test("wrong sign-ins say what to do; signing out ends the session", async () => {
  const wrong = await send("POST", "/console/session", page(), { token: "wrong" });
  assert.equal(wrong.status, 401);
  assert.match(String(problemOf(wrong).detail), /SVC_API_TOKEN/);
  assert.ok(!wrong.headers.has("set-cookie") && !wrong.body.includes("wrong"));
  for (const body of [{}, { token: TOKEN, link: "x" }, { password: "x" }]) {
    assert.equal((await send("POST", "/console/session", page(), body)).status, 422, JSON.stringify(body));
  }
  const browser = await signIn({ token: TOKEN });
  const out = await send("DELETE", "/console/session", signed(browser));
  assert.equal(out.status, 204);
  assert.match(out.headers.get("set-cookie") ?? "", /^troupe_\d+=;.*Max-Age=0$/);
  const ended = await send("GET", "/api/v1/runs", signed(browser));
  assert.equal(ended.status, 401);
  assert.match(String(problemOf(ended).detail), /session has ended/);
});

test("a link signs one browser in; `troupe console` makes it; a repeated request is answered without it", async () => {
  const headers = { ...bearer, "idempotency-key": "a-link" };
  const made = await call(program, "POST", "/sessions", { kind: "link" }, headers);
  const [, link = ""] = /^\/console#link=([\w-]{43})$/.exec(String(made.path)) ?? [];
  const again = await call(program, "POST", "/sessions", { kind: "link" }, headers);
  assert.deepEqual({ ...again, path: made.path }, made);
  assert.ok(!("path" in again));
  const browser = await signIn({ link });
  assert.equal((await send("GET", "/api/v1/runs", signed(browser))).status, 200);
  const second = await send("POST", "/console/session", page(), { link });
  assert.equal(second.status, 401);
  assert.match(String(problemOf(second).detail), /troupe console/);
});

test("a share shows its run, and nothing else; it is listed, and ends with all that it has opened", async () => {
  assertProblem(await asToken("POST", "/sessions", { kind: "share" }), 422, "validation_failed");
  assertProblem(await asToken("POST", "/sessions", { kind: "share", run_id: "run_x" }), 404, "run_not_found");
  const made = (await asToken("POST", "/sessions", { kind: "share", run_id: runs[0], days: 2 })).body;
  const [, share = ""] = /^\/console\/runs\/run_\w+#share=([\w-]{43})$/.exec(String(made.path)) ?? [];
  const browser = await signIn({ share });
  assert.equal(browser.body.run_id, runs[0]);
  assert.equal((await send("GET", `/api/v1/runs/${runs[0]}`, signed(browser))).status, 200);
  assert.equal((await send("GET", `/api/v1/runs/${runs[0]}/outputs`, signed(browser))).status, 200);
  for (const [method, path] of [
    ["GET", `/api/v1/runs/${runs[1]}`],
    ["GET", `/api/v1/runs/${runs[0]}x`],
    ["GET", "/api/v1/runs"],
    ["GET", "/api/v1/sessions"],
    ["GET", "/docs"],
    ["POST", "/api/v1/sessions"],
    ["POST", `/api/v1/runs/${runs[0]}/cancel`],
    ["PATCH", `/api/v1/runs/${runs[0]}`],
  ] as const) {
    const answer = await send(method, path, signed(browser), method === "GET" ? undefined : {});
    assert.equal(answer.status, 403, `${method} ${path}: ${answer.body}`);
  }
  const path = `/api/v1/runs/${runs[1]}/outputs`;
  assert.equal((await send("POST", "/console/tickets", signed(browser), { path })).status, 403);
  const { items } = (await asToken("GET", `/sessions?run_id=${runs[0]}`)).body;
  const listed = items as readonly JsonObject[];
  assert.deepEqual(listed.map(({ kind, opened_by }) => [kind, opened_by]).sort(), [
    ["session", made.session_id],
    ["share", null],
  ]);
  assert.ok(!JSON.stringify(listed).includes(share) && !JSON.stringify(listed).includes(browser.key));
  const { path: _once, ...lasting } = made;
  assert.deepEqual((await asToken("GET", `/sessions/${made.session_id}`)).body, lasting);
  assert.equal((await asToken("DELETE", `/sessions/${made.session_id}`)).status, 204);
  assertProblem(await asToken("GET", `/sessions/${made.session_id}`), 404, "session_not_found");
  assert.equal((await send("GET", `/api/v1/runs/${runs[0]}`, signed(browser))).status, 401);
  assert.equal((await send("POST", "/console/session", page(), { share })).status, 401);
  assertProblem(await asToken("DELETE", `/sessions/${made.session_id}`), 404, "session_not_found");
});

test("what a browser loads by itself has a ticket in its address, once", async () => {
  const browser = await signIn({ token: TOKEN });
  const path = `/api/v1/runs/${runs[0]}/artifacts/${artifact}`;
  assert.equal((await send("POST", "/console/tickets", withCookie(browser), { path })).status, 403);
  for (const wrong of ["/console", "https://evil.example/api/v1/", "/api/v1/runs\n"]) {
    assert.equal((await send("POST", "/console/tickets", signed(browser), { path: wrong })).status, 422);
  }
  const answer = await send("POST", "/console/tickets", signed(browser), { path });
  const { url } = JSON.parse(answer.body) as { readonly url: string };
  assert.equal((await send("POST", url, [`Host: ${host}`])).status, 401);
  assert.equal((await send("GET", url.replace(runs[0], runs[1]), [`Host: ${host}`])).status, 401);
  const read = await send("GET", url, withCookie(browser));
  assert.equal(read.status, 200, read.body);
  assert.match(read.body, /secret-of-the-run/);
  assert.equal((await send("GET", url, withCookie(browser))).status, 401);
  // A stream would outlive its session.
  const stream = { path: `/api/v1/runs/${runs[0]}/events/stream` };
  const given = await send("POST", "/console/tickets", signed(browser), stream);
  const { url: ofStream } = JSON.parse(given.body) as { readonly url: string };
  for (const way of [ofStream, ofStream.replace("/stream?", "/stre%61m?")])
    assert.equal((await send("GET", way, [`Host: ${host}`])).status, 401, way);
  assert.ok(!program.output().includes("ticket="));
});

test("too many sign-ins from one address have to wait", async () => {
  let last = await send("POST", "/console/session", page(), { token: "wrong" });
  for (let tries = 0; tries < 30 && last.status === 401; tries++) {
    last = await send("POST", "/console/session", page(), { token: "wrong" });
  }
  assert.equal(last.status, 429);
  assert.match(last.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
});

test("without a token there is no sign-in, and a session from another time is none", async () => {
  await using open = await startGatewayHere();
  const state = await ask({ ...open, api: open.url }, "GET", "/console/session");
  assert.deepEqual(state.body, { needs_token: false, signed_in: true, run_id: null });
  const refused = await ask({ ...open, api: open.url }, "POST", "/console/session", { body: { token: "x" } });
  assertProblem(refused, 409, "conflict");
  assertProblem(await ask(open, "POST", "/sessions", { body: { kind: "link" } }), 409, "conflict");
  const cookie = `troupe_${new URL(open.url).port}=old`;
  assert.equal((await ask(open, "GET", "/runs", { headers: { cookie } })).status, 200);
});

async function asToken(method: string, path: string, body?: JsonObject): Promise<Answer> {
  const answer = await ask(program, method, path, { headers: bearer, ...(body !== undefined && { body }) });
  judge.check(method, `/api/v1${path}`, answer);
  return answer;
}
