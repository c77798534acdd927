// How the console's files are served. test/browser/console.test.ts sees them in a browser.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { pino } from "pino";
import { loadConfig } from "../../app/config.ts";
import { type GatewayParts, gatewayServer } from "./server.ts";

function serverWith(env: Readonly<Record<string, string>>) {
  const loaded = loadConfig(env, "gateway");
  assert.ok(loaded.kind === "ok");
  const parts = {
    config: loaded.config,
    nowMs: () => 0,
    processId: "test",
    sessions: { onEnd: () => {} },
    version: "1.2.3",
    stopping: new AbortController().signal,
  } as unknown as GatewayParts;
  const app = gatewayServer(parts, pino({ level: "silent" }));
  after(() => app.close());
  return app;
}

const app = serverWith({});
const get = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  app.inject({ url, headers: { host: "localhost", ...headers } });

test("every path is the one page, whose scripts are all preloaded, and there, and only the console's own", async () => {
  const page = await get("/console/runs/run_1/logs?text=x");
  assert.equal(page.statusCode, 200);
  assert.equal(page.body, (await get("/console")).body);
  const scripts = [...page.body.matchAll(/modulepreload" href="([^"]+)"/g)].map(([, url = ""]) => url);
  assert.ok(scripts.includes("/console/assets/vendor/preact.js"));
  assert.ok(scripts.includes("/console/assets/dashboard/format.js"));
  for (const url of scripts) assert.equal((await get(url)).statusCode, 200, url);
  const policy = String(page.headers["content-security-policy"]);
  assert.ok(policy.includes("script-src 'self';") && policy.includes("require-trusted-types-for 'script'"));
  assert.ok(!policy.includes("unsafe"), policy);
});

test("all that a browser may open by itself has the page's policy: pages, pictures and workers", async () => {
  const policyOf = async (url: string) => (await get(url)).headers["content-security-policy"];
  const policy = await policyOf("/console");
  const assets = "/console/assets/console";
  for (const name of ["icon.svg", "list-worker.js", "run/layout-worker.js", "index.html"])
    assert.equal(await policyOf(`${assets}/${name}`), policy, name);
  for (const name of ["main.js", "console.css"]) {
    const { headers } = await get(`${assets}/${name}`);
    assert.equal(headers["content-security-policy"], undefined);
    assert.equal(headers["x-content-type-options"], "nosniff");
  }
});

test("a file is compressed for who takes it, and sent once", async () => {
  const url = "/console/assets/console/main.js";
  const plain = await get(url);
  const compressed = await get(url, { "accept-encoding": "gzip, br" });
  assert.equal(compressed.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(compressed.rawPayload).toString(), plain.body);
  // A strong tag is of these very bytes.
  assert.notEqual(compressed.headers.etag, plain.headers.etag);
  const again = await get(url, { "if-none-match": String(plain.headers.etag) });
  assert.deepEqual([again.statusCode, again.body], [304, ""]);
});

for (const name of [
  "console/tsconfig.json",
  "dashboard/server.test.ts",
  "console/..%2finject.ts",
  "x.js",
  "vendor/preact.d.ts",
]) {
  test(`${name} is not served`, async () => {
    assert.equal((await get(`/console/assets/${name}`)).statusCode, 404);
  });
}

test("SVC_CONSOLE=false serves none of it, and leads browsers to the documentation", async () => {
  const without = serverWith({ SVC_CONSOLE: "false" });
  const headers = { host: "localhost", accept: "text/html" };
  for (const url of ["/console", "/console/runs", "/console/assets/console/main.js", "/console/session"]) {
    assert.equal((await without.inject({ url, headers })).statusCode, 404, url);
  }
  assert.equal((await without.inject({ url: "/", headers })).headers.location, "/docs");
});
