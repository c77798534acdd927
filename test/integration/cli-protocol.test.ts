// Operators' commands over the port of the runtime protocol: that they do, print and report what they do at the gateway.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { start, startHere } from "../support/command-line.ts";
import { createJob, happens, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { grpcAddress } from "../support/grpc.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { hasOpenssl, makeAuthority } from "../support/node-certificates.ts";
import { returnPostgres, takePostgres } from "../support/postgres.ts";
import type { Program } from "../support/program.ts";

const TOKEN = "token-of-this-test";

let url: string;
let program: Program;
let address: string;
before(async () => {
  url = await takePostgres();
  program = await startGatewayHere({
    env: {
      SVC_DATABASE_URL: url,
      SVC_NODE_NAME: "here",
      SVC_EXECUTOR_POOL_CAPACITIES: "default=3,gpu=1",
    },
  });
  address = grpcAddress(program.output());
});
after(async () => {
  await program.stop();
  await returnPostgres(url);
});

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  startHere(args, program.home, env).ended;
const overProtocol = (...args: string[]) => run([...args, "--address", address]);
const atGateway = (...args: string[]) => run([...args, "--url", program.api]);

async function record(...args: string[]): Promise<JsonObject> {
  const { code, out, err } = await overProtocol(...args, "--json");
  assert.equal(code, 0, err);
  return JSON.parse(out);
}

/** Without what changes from one moment to the next. */
const settled = (text: string) =>
  text
    .replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"a time"')
    .replace(/"used": \{[^}]*\}/g, '"used": {}')
    .replace(/"output": "[^"]*"/g, '"output": ""');

describe("commands of operators", () => {
  test("print the same over the runtime protocol as at the gateway", async () => {
    const offering = {
      ...executor("web", ["sleep", "600"], { lifecycle: "long_lived" }),
      services: [{ name: "index", port: Number(new URL(program.url).port), tags: ["x"] }],
    };
    const jobId = await createJob(program, graph("offering", [offering], [], { type: "service" }));
    const runId = await startRun(program, jobId);
    await happens(program, runId, "service_passing");
    for (const words of [
      ["node", "list"],
      ["node", "status", "here"],
      ["node", "reconcile", "here"],
      ["resource"],
      ["services"],
      ["services", "index", "--tag", "x", "--run", runId, "--check"],
    ]) {
      const [here, there] = [await overProtocol(...words, "--json"), await atGateway(...words, "--json")];
      assert.equal(here.code, 0, here.err);
      assert.deepEqual(JSON.parse(settled(here.out)), JSON.parse(settled(there.out)), words.join(" "));
    }
  });

  test("change limits, and take single ones back", async () => {
    assert.deepEqual((await record("resource", "set", "--cpu", "50%", "--gpus", "none")).limits, {
      cpu_percent: 50,
      gpu_indices: [],
    });
    assert.deepEqual((await record("resource", "set", "--gpus", "all")).limits, { cpu_percent: 50 });
    assert.deepEqual((await record("resource", "set", "--only")).limits, {});
  });

  test("take a node out of work, and back", async () => {
    assert.equal((await record("node", "drain", "here", "--deadline", "600")).state, "draining");
    assert.equal((await record("node", "undrain", "here")).state, "ready");
    const kept = await record("node", "maintenance", "here", "on", "--reason", "a new disk");
    assert.deepEqual([kept.state, kept.reason], ["maintenance", "a new disk"]);
    assert.equal((await record("node", "maintenance", "here", "off")).state, "ready");
  });

  test("say what is refused as they do at the gateway", async () => {
    const wrong = ["node", "maintenance", "here", "on", "--reason", "x".repeat(5_000)];
    const [here, there] = [await overProtocol(...wrong), await atGateway(...wrong)];
    assert.ok(there.err.includes("(HTTP 422)"), there.err);
    assert.deepEqual([here.code, here.err], [there.code, there.err.replace(" (HTTP 422)", "")]);
    const unknown = await overProtocol("node", "status", "nobody");
    assert.match(unknown.err, /nobody.*\n`troupe node list` lists the nodes/);
    assert.equal(unknown.code, 1);
  });

  test("say what is wrong with an address", async () => {
    for (const [args, says] of [
      [
        ["--address", "127.0.0.1:1"],
        /No Troupe runtime protocol answers at http:\/\/127\.0\.0\.1:1\.\n.*--address/,
      ],
      [["--address", program.url.slice("http://".length)], /is that its SVC_GRPC_PORT\?.*--address/],
      [["--address", "nowhere.invalid:1"], /https:\/\/nowhere\.invalid:1/],
      [["--address", address, "--url", program.api], /--address and --url name one server/],
      [["--address", "http://node.example.org:1"], /without TLS only this machine/],
      [["--address", "a b"], /is not an address/],
      [["--token", TOKEN], /go with --address/],
      [["--address", address, "--client-cert", "/nowhere.pem"], /\/nowhere\.pem cannot be read/],
    ] as const) {
      const { code, err } = await run(["node", "list", ...args]);
      assert.notEqual(code, 0);
      assert.match(err, says);
      assert.ok(err.split("\n").length <= 5, err);
    }
  });
});

test("the token is that of --token, or SVC_API_TOKEN, and a wrong one is told apart from none", async () => {
  await using asking = await startGatewayHere({ env: { SVC_API_TOKEN: TOKEN } });
  const list = ["node", "list", "--address", grpcAddress(asking.output())];
  const none = await run(list);
  assert.match(none.err, /Set SVC_API_TOKEN to the token that the runtime protocol was started with/);
  const wrong = await run([...list, "--token", "another-token-of-16"]);
  assert.match(wrong.err, /--token, is set here, but the runtime protocol has another/);
  assert.deepEqual([none.code, wrong.code], [1, 1]);
  for (const [args, env] of [
    [["--token", TOKEN], {}],
    [[], { SVC_API_TOKEN: TOKEN }],
  ] as const)
    assert.equal((await run([...list, ...args], env)).code, 0);
});

test("a port that asks for certificates is called with --client-cert", {
  skip: hasOpenssl() ? false : "there is no openssl",
}, async () => {
  using authority = makeAuthority();
  const server = authority.files("DNS:localhost");
  const client = authority.files("DNS:client");
  const env = { SVC_TLS_CERT: server.cert, SVC_TLS_KEY: server.key, SVC_TLS_CLIENT_CA: server.ca };
  await using secured = await startGatewayHere({ env });
  const { port } = new URL(`https://${grpcAddress(secured.output())}`);
  const both = join(secured.home, "client.pem");
  writeFileSync(both, readFileSync(client.cert, "utf8") + readFileSync(client.key, "utf8"));
  const args = ["node", "list", "--address", `https://localhost:${port}`];
  const trusting = { NODE_EXTRA_CA_CERTS: server.ca };
  const shown = await start([...args, "--client-cert", both], secured.home, trusting).ended;
  assert.equal(shown.code, 0, shown.err);
  const refused = await start(args, secured.home, trusting).ended;
  assert.equal(refused.code, 1);
  const plain = await run(["node", "list", "--address", `localhost:${port}`]);
  assert.match(plain.err, /has it TLS \(https:/);
});
