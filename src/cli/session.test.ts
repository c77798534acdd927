import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { TroupeUnreachable } from "../../sdk/src/index.ts";
import { freePorts } from "../../test/support/ports.ts";
import { testCall } from "../../test/support/test-call.ts";
import { explain } from "./cli.ts";
import { exitCodes } from "./command.ts";
import type { ServerAddress } from "./connection.ts";
import { explained, withServer } from "./session.ts";

async function serving(context: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  // Or a connection could be closed just as the next request goes out on it.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function problem(status: number, body: object = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/problem+json" });
    response.end(
      JSON.stringify({ code: "x", title: "T", status, detail: "It is so.", request_id: "r1", ...body }),
    );
  };
}

const gateway: ServerAddress = {
  name: "gateway",
  baseUrl: "http://h/api/v1",
  place: "http://h/api/v1",
  token: null,
  fetch,
};

/** What a person sees when a command looks at a run there. */
async function look(url: string, env: NodeJS.ProcessEnv = {}) {
  const call = testCall({ url }, [], env);
  try {
    return await withServer(call, async ({ client }) => {
      await client.runs.get("run_1");
      return exitCodes.success;
    });
  } catch (error) {
    return explain(error);
  }
}

describe("what the gateway refuses becomes lines and an exit code", () => {
  test("a validation problem has each error on its own line, with its path: exit code 2", async (t) => {
    const errors = [
      { path: "/a", code: "x", message: "is wrong" },
      { path: "/b", code: "x", message: "is \x1b[31mred" },
      { path: "", code: "x", message: "All of it." },
    ];
    assert.deepEqual(await look(await serving(t, problem(422, { errors }))), {
      code: 2,
      lines: ["troupe: It is so. (HTTP 422)", "  /a: is wrong", "  /b: is red", "  All of it."],
    });
  });
  test("of very many errors the first ones are shown", async (t) => {
    const errors = Array.from({ length: 60 }, (_, i) => ({ path: `/${i}`, code: "x", message: "is wrong" }));
    const { lines } = (await look(await serving(t, problem(400, { errors })))) as {
      lines: readonly string[];
    };
    assert.equal(lines.length, 52);
    assert.equal(lines.at(-1), "  … and 10 more errors");
  });
  test("401 names the variable to set, and whether a token was sent", async (t) => {
    const url = await serving(t, problem(401));
    const lines = (advice: string) => ({ code: 1, lines: ["troupe: It is so. (HTTP 401)", advice] });
    const without = "Set SVC_API_TOKEN to the token that the gateway was started with.";
    assert.deepEqual(await look(url), lines(without));
    const wrong =
      "SVC_API_TOKEN is set here, but the gateway has another token. Set it to the gateway's own.";
    assert.deepEqual(await look(url, { SVC_API_TOKEN: "0123456789abcdef" }), lines(wrong));
  });
  test("a fault of the gateway names the request for its log", async (t) => {
    assert.deepEqual(await look(await serving(t, problem(500))), {
      code: 1,
      lines: ["troupe: It is so. (HTTP 500)", "The gateway's log has the cause under the request id r1."],
    });
  });
  test("what is missing or in the way is exit code 1", async (t) => {
    for (const status of [404, 409]) {
      const expected = { code: 1, lines: [`troupe: It is so. (HTTP ${status})`] };
      assert.deepEqual(await look(await serving(t, problem(status))), expected);
    }
  });
  test("anything but an error of the client stays what it is", () => {
    const bug = new TypeError("bug");
    assert.equal(explained(bug, gateway), bug);
  });
  test("the error for an unreachable gateway tells how to start one; for another server's answer, what to check", () => {
    const lost = explained(new TroupeUnreachable("Lost."), gateway) as Error;
    assert.match(lost.message, /^Lost\.\nIs it running\? `troupe up` starts one/);
    const stranger = explained(new TroupeUnreachable("Check the URL.", { status: 502 }), gateway) as Error;
    assert.equal(stranger.message, "Check the URL.");
  });
});

describe("finding the gateway", () => {
  test("an unreachable one is reported after a single attempt", async () => {
    const port = await freePorts(1);
    const expected = [
      `troupe: No Troupe gateway answers at http://127.0.0.1:${port}/api/v1.`,
      "Start one with `troupe up`, or name another with --url.",
    ];
    assert.deepEqual(await look(`http://127.0.0.1:${port}`), { code: 1, lines: expected });
  });
  test("one that is busy for a moment is asked again", async (t) => {
    let requests = 0;
    const url = await serving(t, (request, response) => {
      requests++;
      if (requests === 1) return problem(503)(request, response);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    assert.equal(await look(url), 0);
    assert.equal(requests, 2);
  });
  test("the address is --url, else the configured port", async () => {
    const seen: string[] = [];
    const remember = (options: Record<string, string>, env: NodeJS.ProcessEnv) =>
      withServer(testCall(options, [], env), async ({ client }) => {
        seen.push(client.baseUrl);
        return 0;
      });
    await remember({}, {});
    await remember({}, { SVC_API_PORT: "5001", SVC_API_HOST: "0.0.0.0" });
    await remember({}, { SVC_API_PORT: "5001", SVC_API_HOST: "::1" });
    await remember({ url: "https://example.org/behind" }, { SVC_API_PORT: "5001" });
    assert.deepEqual(seen, [
      "http://127.0.0.1:54001/api/v1",
      "http://127.0.0.1:5001/api/v1",
      "http://[::1]:5001/api/v1",
      "https://example.org/behind/api/v1",
    ]);
    await assert.rejects(remember({}, { SVC_API_PORT: "0" }), {
      name: "UsageError",
      message: /SVC_API_PORT is 0.*--url/,
    });
  });
});
