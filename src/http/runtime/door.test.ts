// Who is let into the runtime API; that the commands get in by themselves is in test/integration/runtime-door.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify from "fastify";
import { guardDoor } from "./door.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";

function serve(tokens: readonly string[]) {
  const app = Fastify();
  guardDoor(app, { boundHost: "127.0.0.1", allowedHosts: [], tokens });
  for (const url of ["/api/v1/jobs", "/api/v1/health"]) {
    app.route({ method: ["GET", "POST"], url, handler: async () => ({}) });
  }
  return app;
}

test("with a token, only the health check is answered without it", async () => {
  await using app = serve([TOKEN]);
  const ask = (method: "GET" | "POST", url: string, authorization?: string) =>
    app.inject({ method, url, headers: authorization === undefined ? {} : { authorization } });
  for (const authorization of [undefined, "Bearer ", `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, TOKEN]) {
    for (const method of ["GET", "POST"] as const) {
      const { statusCode, headers } = await ask(method, "/api/v1/jobs", authorization);
      assert.deepEqual([statusCode, headers["www-authenticate"]], [401, "Bearer"], String(authorization));
    }
    assert.equal((await ask("GET", "/api/v1/health", authorization)).statusCode, 200);
    assert.equal((await ask("POST", "/api/v1/health", authorization)).statusCode, 401);
  }
  assert.equal((await ask("POST", "/api/v1/jobs", `Bearer ${TOKEN}`)).statusCode, 200);
  assert.equal((await ask("GET", "/api/v1/jobs", `bearer  ${TOKEN}`)).statusCode, 200);
});

test("without a token, everybody on this machine is answered", async () => {
  await using app = serve([]);
  assert.equal((await app.inject({ method: "POST", url: "/api/v1/jobs" })).statusCode, 200);
});
