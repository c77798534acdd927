// Authentication, and which web pages may talk to the gateway. Sentences in quotes are the specification's own,
// shortened.

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Answer, ask, assertProblem, call, createJob, startRun } from "../support/gateway-api.ts";
import { graph, sensor } from "../support/graphs.ts";
import { refusedStartHere, startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { exchange, type RawAnswer, request } from "../support/raw-http.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const bearer = { authorization: `Bearer ${TOKEN}` };
const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`me:${password}`).toString("base64")}`,
});

let open: Program;
let closed: Program;
before(async () => {
  [open, closed] = await Promise.all([
    startGatewayHere(),
    startGatewayHere({
      env: { SVC_ENV: "prod", SVC_API_TOKEN: TOKEN, SVC_CORS_ORIGINS: "https://app.example.org" },
    }),
  ]);
});
after(() => Promise.all([open.stop(), closed.stop()]));

/** A request to the origin's root, with headers that a client would not let one set. */
async function raw(
  program: Program,
  method: string,
  path: string,
  headers: readonly string[],
): Promise<RawAnswer> {
  const [answer] = await exchange(program, request(method, path, [...headers, "Connection: close"]));
  assert.ok(answer !== undefined);
  return answer;
}

interface Operation {
  readonly method: string;
  readonly path: string;
}

/** Every route there is, its parameters filled in. */
async function everyRoute(): Promise<readonly Operation[]> {
  const answer = await fetch(`${closed.url}/openapi.json`, { headers: bearer });
  const { paths } = (await answer.json()) as { readonly paths: Readonly<Record<string, JsonObject>> };
  const documented = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((key) => /^(get|put|post|patch|delete)$/.test(key))
      .map((method) => ({ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, "some_id") })),
  );
  const hidden = ["/docs", "/docs/", "/docs/reference.js", "/openapi.json"];
  return [...documented, ...hidden.map((path) => ({ method: "GET", path }))];
}

/** Answers without a token to whom it knows otherwise. */
const isWebhook = ({ path }: Operation) => path.startsWith("/hooks/");
const isHealth = ({ method, path }: Operation) => method === "GET" && path === "/api/v1/health";
/** Whether a browser has to sign in, and how it does (test/gateway/sessions.test.ts). */
const isSignIn = ({ method, path }: Operation) => path === "/console/session" && method !== "DELETE";
const root = (program: Program): Program => ({ ...program, api: program.url });

describe("bearer tokens", () => {
  test('"The header is Authorization: Bearer <API_TOKEN>": with it a request is served', async () => {
    assert.equal((await ask(closed, "GET", "/jobs", { headers: bearer })).status, 200);
    const lower = { authorization: `bearer ${TOKEN}` };
    assert.equal((await ask(closed, "GET", "/jobs", { headers: lower })).status, 200);
  });

  test('"GET /health needs no authentication"', async () => {
    assert.equal((await ask(closed, "GET", "/health")).status, 200);
    assert.equal((await ask(closed, "GET", "/health?x=1")).status, 200);
    assert.equal((await ask(closed, "GET", "/health", { headers: basic("wrong") })).status, 200);
    assertProblem(await ask(closed, "POST", "/health"), 401, "unauthorized");
  });

  test('"When SVC_API_TOKEN is configured, every other request must carry the header": every route, walked', async () => {
    const routes = await everyRoute();
    assert.ok(routes.length > 35, `${routes.length} routes`);
    assert.ok(routes.some(isHealth));
    for (const route of routes) {
      const { method, path } = route;
      if (isHealth(route) || isWebhook(route) || isSignIn(route)) continue;
      // Its clients read their own protocol's errors.
      const assertRefused = (answer: Answer) =>
        path.includes("/llm/")
          ? assert.deepEqual([answer.status, (answer.body.error as JsonObject).code], [401, "unauthorized"])
          : assertProblem(answer, 401, "unauthorized");
      const without = await ask(root(closed), method, path);
      assertRefused(without);
      assert.equal(without.headers.get("www-authenticate"), "Bearer", `${method} ${path}`);
      const wrong = await ask(root(closed), method, path, { headers: { authorization: "Bearer nonsense" } });
      assertRefused(wrong);
      assert.equal(wrong.headers.get("www-authenticate"), 'Bearer error="invalid_token"');
      assert.ok(!wrong.text.includes("nonsense") && !wrong.text.includes(TOKEN));
    }
  });

  test('"everything but GET /api/v1/health answers 401 without it, /docs and unknown paths included"', async () => {
    for (const path of [
      "/",
      "/docs",
      "/consoles",
      "/api/v2",
      "/nothing",
      "/api/v1",
      "/api/v1/health/",
      "/%zz",
    ]) {
      assertProblem(await ask(root(closed), "GET", path), 401, "unauthorized");
    }
  });

  test("the settings in use are shown without their secrets", async () => {
    const { text, body } = await ask(closed, "GET", "/system/settings", { headers: bearer });
    const settings = new Map((body.settings as readonly JsonObject[]).map((one) => [one.variable, one]));
    const { meaning: _, ...shown } = settings.get("SVC_API_TOKEN") ?? {};
    assert.deepEqual(shown, { variable: "SVC_API_TOKEN", value: "********", from: "environment" });
    assert.ok(!text.includes(TOKEN));
    assert.equal(settings.get("SVC_HOME")?.value, closed.home);
  });

  test("a token that is nearly right, sent twice, or without its scheme is wrong", async () => {
    for (const header of [
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
      `Bearer ${TOKEN.toUpperCase()}`,
      "Bearer",
      TOKEN,
      `Token ${TOKEN}`,
    ]) {
      const answer = await ask(closed, "GET", "/jobs", { headers: { authorization: header } });
      assertProblem(answer, 401, "unauthorized");
    }
    const inTheUrl = await ask(closed, "GET", `/jobs?access_token=${TOKEN}`);
    assertProblem(inTheUrl, 401, "unauthorized");
  });
});

describe("protected deployments", () => {
  const refused = async (env: Readonly<Record<string, string>>) => {
    const home = await temporaryHome();
    try {
      return await refusedStartHere({ args: ["up"], home, env });
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  };

  test('"Protected deployments set SVC_ENV to prod and configure SVC_API_TOKEN": without it the start is refused, exit code 2', async () => {
    const { code, text } = await refused({ SVC_ENV: "prod" });
    assert.equal(code, 2);
    assert.match(text, /SVC_API_TOKEN/);
  });

  test('"The listener is not exposed publicly without an authentication boundary": a non-loopback bind needs a token', async () => {
    const { code, text } = await refused({ SVC_API_HOST: "0.0.0.0" });
    assert.equal(code, 2);
    assert.match(text, /SVC_API_TOKEN/);
  });

  test('"Page tokens are bound to the principal that made the original query"', async () => {
    const home = await temporaryHome();
    const key = Buffer.alloc(32, 3).toString("base64");
    const start = (token: string | undefined) =>
      startGatewayHere({ home, env: { SVC_API_TOKEN: token, SVC_SECRET_KEY: key } });
    try {
      let token: unknown;
      {
        await using first = await start(undefined);
        const jobId = await createJob(first, graph("page", [sensor("s")]));
        await startRun(first, jobId);
        await startRun(first, jobId);
        token = (await call(first, "GET", "/runs?page_size=1")).next_page_token;
        assert.equal((await ask(first, "GET", `/runs?page_token=${token}`)).status, 200);
      }
      await using second = await start(TOKEN);
      const list = `/runs?page_token=${token}`;
      assertProblem(await ask(second, "GET", list, { headers: bearer }), 400, "invalid_page_token");
      const own = await call(second, "GET", "/runs?page_size=1", undefined, bearer);
      const next = await ask(second, "GET", `/runs?page_token=${own.next_page_token}`, { headers: bearer });
      assert.equal(next.status, 200);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  test("a rotated token keeps its idempotency keys and page tokens: several are accepted, from a file too", async () => {
    const home = await temporaryHome();
    const file = join(home, "tokens");
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    const start = async (content: string) => {
      await writeFile(file, content);
      return startGatewayHere({ home, env: { SVC_ENV: "prod", SVC_API_TOKEN_FILE: file } });
    };
    const [old, next] = ["the-token-of-last-year", "the-token-of-this-year"] as const;
    try {
      let jobId: string;
      let token: unknown;
      {
        await using open = await startGatewayHere({ home });
        jobId = await createJob(open, graph("rotated", [sensor("s")]));
      }
      const run = (program: Program, with_: string) => {
        const headers = { ...as(with_), "idempotency-key": "once" };
        return call(program, "POST", `/jobs/${jobId}/runs`, { inputs: {} }, headers);
      };
      let first: JsonObject;
      {
        await using before = await start(`${old}\n`);
        first = await run(before, old);
        await call(before, "POST", `/jobs/${jobId}/runs`, { inputs: {} }, as(old));
        token = (await call(before, "GET", "/runs?page_size=1", undefined, as(old))).next_page_token;
        assertProblem(await ask(before, "GET", "/jobs", { headers: as(next) }), 401, "unauthorized");
      }
      {
        await using both = await start(`${next}\n${old}\n`);
        for (const one of [next, old]) assert.equal((await run(both, one)).run_id, first.run_id);
        const page = await ask(both, "GET", `/runs?page_token=${token}`, { headers: as(next) });
        assert.equal(page.status, 200, page.text);
      }
      await using after = await start(`${next}\n`);
      assert.equal((await run(after, next)).run_id, first.run_id);
      assertProblem(await ask(after, "GET", "/jobs", { headers: as(old) }), 401, "unauthorized");
      assert.ok(!after.output().includes(next) && !after.output().includes(old));
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

describe("browsers", () => {
  const html = { accept: "text/html,*/*" };

  test('"Basic with the token as password is accepted too"', async () => {
    assert.equal((await ask(closed, "GET", "/jobs", { headers: basic(TOKEN) })).status, 200);
    assertProblem(await ask(closed, "GET", "/jobs", { headers: basic("wrong") }), 401, "unauthorized");
  });

  test('"the Basic challenge is sent only to requests that accept text/html"', async () => {
    const challenge = ({ headers }: Answer) => headers.get("www-authenticate") ?? "";
    assert.match(challenge(await ask(closed, "GET", "/jobs", { headers: html })), /Basic /);
    assert.doesNotMatch(challenge(await ask(closed, "GET", "/jobs")), /Basic/);
  });

  test('"a Basic-authenticated unsafe method must carry Sec-Fetch-Site: same-origin or none, else 403"', async () => {
    const secret = `Authorization: ${basic(TOKEN).authorization}`;
    for (const [site, status] of [
      ["same-origin", 404],
      ["none", 404],
      ["cross-site", 403],
      ["same-site", 403],
      [null, 403],
    ] as const) {
      const headers = [secret, ...(site === null ? [] : [`Sec-Fetch-Site: ${site}`])];
      const answer = await raw(closed, "POST", "/api/v1/jobs/job_none/cancel", headers);
      assert.equal(answer.status, status, `${site}: ${answer.body}`);
    }
  });

  test('"A request with an Origin header that is neither the server\'s own nor in SVC_CORS_ORIGINS gets 403 on unsafe methods"', async () => {
    const host = new URL(closed.url).host;
    for (const [origin, status] of [
      ["https://evil.example", 403],
      ["null", 403],
      [`http://${host}`, 404],
      ["https://app.example.org", 404],
    ] as const) {
      const headers = [`Host: ${host}`, `Authorization: Bearer ${TOKEN}`, `Origin: ${origin}`];
      const unsafe = await raw(closed, "POST", "/api/v1/jobs/job_none/cancel", headers);
      assert.equal(unsafe.status, status, `${origin}: ${unsafe.body}`);
      const safe = await raw(closed, "GET", "/api/v1/jobs", headers);
      assert.equal(safe.status, 200);
      const isListed = origin === "https://app.example.org";
      assert.equal(safe.headers.get("access-control-allow-origin"), isListed ? origin : undefined);
    }
  });

  test('"without a token, a Host header that is not loopback gets 403 (DNS rebinding)"', async () => {
    for (const [host, status] of [
      ["127.0.0.1:54001", 200],
      ["localhost", 200],
      ["[::1]:1", 200],
      ["rebound.example.org", 403],
      ["127.0.0.1.example.org", 403],
    ] as const) {
      const answer = await raw(open, "GET", "/api/v1/jobs", [`Host: ${host}`]);
      assert.equal(answer.status, status, host);
    }
    const behindProxy = ["Host: gateway.example.org", `Authorization: Bearer ${TOKEN}`];
    assert.equal((await raw(closed, "GET", "/api/v1/jobs", behindProxy)).status, 200);
  });
});
