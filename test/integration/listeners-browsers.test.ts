// What a web page that somebody happens to visit can do to the listeners of the program: nothing, whatever they bind.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { exchange, request } from "../support/raw-http.ts";

/** Both APIs on all addresses: the runtime API without a password, the gateway by its token or without one. */
const NAME = "troupe.example.org";
const TOKEN = "correct-horse-battery-staple-0123456789";
const everywhere = {
  SVC_RUNTIME_API_HOST: "0.0.0.0",
  SVC_ALLOW_REMOTE_RUNTIME: "true",
  SVC_ALLOWED_HOSTS: NAME,
};

let gateway: Program;
let runtime: Program;
let withToken: Program;
before(async () => {
  [gateway, withToken] = await Promise.all([
    startGatewayHere({ env: everywhere }),
    startGatewayHere({ env: { SVC_API_TOKEN: TOKEN, SVC_API_HOST: "127.0.0.1" } }),
  ]);
  const [, port] = /^ {2}runtime API +http:\/\/0\.0\.0\.0:(\d+)\//m.exec(gateway.output()) ?? assert.fail();
  runtime = { ...gateway, url: `http://127.0.0.1:${port}`, api: `http://127.0.0.1:${port}/api/v1` };
});
after(() => Promise.all([gateway.stop(), withToken.stop()]));

/** The status of one request. Its Host is the listener's own address unless it is among the headers. */
async function status(
  program: Program,
  line: string,
  headers: readonly string[],
  body = "",
): Promise<number> {
  const [method = "", path = ""] = line.split(" ");
  const own = headers.some((header) => /^host:/i.test(header)) ? [] : [`Host: ${new URL(program.url).host}`];
  const [answer] = await exchange(
    program,
    request(method, path, [...own, ...headers, "Connection: close"], body),
  );
  return answer?.status ?? assert.fail("no answer");
}

const manifest = JSON.stringify({
  manifest_version: "1.0",
  graph_id: "foreign",
  entrypoints: ["r"],
  nodes: [{ node_id: "r", agent_type: "router" }],
});
const form = ["Content-Type: multipart/form-data; boundary=x"];
const upload =
  '--x\r\nContent-Disposition: form-data; name="bundle"; filename="b.zip"\r\n\r\nPK\r\n--x--\r\n';

/** How a browser marks what a page of another site sends. */
const foreign: readonly (readonly [string, readonly string[]])[] = [
  ["a foreign Origin", ["Origin: https://evil.example"]],
  ["Origin null", ["Origin: null"]],
  ["a neighbour's Origin", ["Origin: http://127.0.0.1:1"]],
  ["Sec-Fetch-Site alone", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"]],
  ["a form that is sent", ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]],
];

for (const [kind, program] of [
  ["runtime API", () => runtime],
  ["gateway", () => gateway],
  ["gateway with a token that the page knows", () => withToken],
] as const) {
  describe(`the ${kind}`, () => {
    const known = () => (program() === withToken ? [`Authorization: Bearer ${TOKEN}`] : []);

    for (const [how, headers] of foreign) {
      test(`takes no change of a page of another site: ${how}`, async () => {
        const all = [...headers, ...known()];
        for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
          const typed = [...all, `Content-Type: ${type}`];
          assert.equal(await status(program(), "POST /api/v1/jobs", typed, manifest), 403, type);
        }
        assert.equal(await status(program(), "POST /api/v1/bundles", [...all, ...form], upload), 403);
        assert.equal(await status(program(), "POST /api/v1/system/gc", all), 403);
        assert.equal(await status(program(), "DELETE /api/v1/bundles/x", [...all, "If-Match: *"]), 403);
      });
    }

    test("is not read by a page of another site, its event streams neither; a link leads to it", async () => {
      const cross = ["Sec-Fetch-Site: cross-site", ...known()];
      const reads = [
        "GET /api/v1/jobs",
        "GET /api/v1/jobs/x/events/stream",
        "GET /api/v1/runs/x/events/stream",
      ];
      for (const line of reads) {
        assert.equal(await status(program(), line, [...cross, "Sec-Fetch-Mode: no-cors"]), 403, line);
        const origin = ["Origin: https://evil.example", "Sec-Fetch-Mode: cors", "Accept: text/event-stream"];
        assert.equal(await status(program(), line, [...cross, ...origin]), 403, line);
      }
      assert.equal(await status(program(), "GET /api/v1/jobs", [...cross, "Sec-Fetch-Mode: navigate"]), 200);
    });
  });
}

describe("without a token, on every bind", () => {
  for (const [kind, program] of [
    ["runtime API", () => runtime],
    ["gateway", () => gateway],
  ] as const) {
    test(`the ${kind} is known by its addresses and by SVC_ALLOWED_HOSTS, and not by a rebound name`, async () => {
      const { host } = new URL(program().url);
      for (const name of [host, "localhost", NAME, `${NAME}:8443`]) {
        assert.equal(await status(program(), "GET /api/v1/jobs", [`Host: ${name}`]), 200, name);
      }
      for (const name of ["rebound.example", `x.${NAME}`, "192.0.2.7", "127.0.0.1.nip.io"]) {
        assert.equal(await status(program(), "GET /api/v1/jobs", [`Host: ${name}`]), 403, name);
        assert.equal(await status(program(), "GET /api/v1/metrics", [`Host: ${name}`]), 403, name);
        const rebound = [`Host: ${name}`, `Origin: http://${name}`];
        assert.equal(await status(program(), "POST /api/v1/jobs", rebound, manifest), 403, name);
      }
    });
  }
});

test("two Host headers are no request, whatever they say", async () => {
  for (const program of [runtime, gateway, withToken]) {
    const { host } = new URL(program.url);
    for (const second of [host, "evil.example"]) {
      const hosts = [`Host: ${host}`, `Host: ${second}`];
      assert.equal(await status(program, "GET /api/v1/health", hosts), 400);
      assert.equal(await status(program, "GET /api/v1/nothing", hosts), 400);
    }
  }
});

test("a page opens by its address and by a link from another site", async () => {
  for (const site of ["none", "cross-site", "same-origin"]) {
    const headers = [`Sec-Fetch-Site: ${site}`, "Sec-Fetch-Mode: navigate", "Accept: text/html"];
    assert.equal(await status(gateway, "GET /docs", headers), 200, site);
  }
});
