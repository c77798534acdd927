// The network of a sandbox from the inside: what its policy allows is reached through the proxy, all else is refused with what
// to add, and the run's history has both.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { commandOf, executorConfig, failedWith, RunnerFixture } from "../../../test/support/execution.ts";
import { noSandboxes, sandboxed } from "../../../test/support/sandboxes.ts";
import type { JsonObject } from "../../engine/json.ts";

const server = createServer((request, response) => response.end(`hello ${request.url}`));
let allowed: string;
let port: number;

before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
  allowed = `127.0.0.1:${port}`;
});
after(() => server.close());

describe("a sandbox with a network", { skip: noSandboxes }, () => {
  let fixture: RunnerFixture;
  before(() => {
    fixture = new RunnerFixture();
  });
  after(() => fixture[Symbol.asyncDispose]());

  /** The loopback of these tests stands for another machine: clients ask the proxy for what the policy lists of it. */
  const run = (command: readonly string[], network: JsonObject, agentId: string, environment = {}) =>
    fixture.run({
      agentId,
      config: executorConfig({
        command,
        ...sandboxed({ network }),
        environment,
      }),
    });

  test("reaches what its policy allows with ordinary clients, and its history has the bytes", async () => {
    const script = `
import os, urllib.request
print(urllib.request.urlopen("http://${allowed}/python").read().decode())
try: os.waitpid(-1, 0)
except ChildProcessError: print("no child but its own")`;
    const outcome = await run(["python3", "-S", "-c", script], { allow: [allowed] }, "py");
    assert.equal(
      commandOf(outcome).stdout + commandOf(outcome).stderr,
      "hello /python\nno child but its own\n",
    );
    const fetching = `fetch("http://${allowed}/node").then((r) => r.text()).then(console.log)`;
    const fetched = await run(["{node}", "-e", fetching], { allow: [allowed], check: true }, "node");
    assert.equal(commandOf(fetched).stdout, "hello /node\n", JSON.stringify(fetched));
    const [connection] = fixture.listener.payloads("sandbox_connection") as JsonObject[];
    const { host, port: at, address, sent_bytes: sent, received_bytes: received } = connection ?? {};
    assert.deepEqual([host, at, address], ["127.0.0.1", port, "127.0.0.1"]);
    assert.ok(Number(sent) > 0 && Number(received) > 0);
  });

  test("is refused all else, and told what to add", async () => {
    const script = `
import urllib.request, urllib.error
try: urllib.request.urlopen("http://127.0.0.1:${port}/x")
except urllib.error.HTTPError as e: print(e.code, e.read().decode())`;
    const outcome = await run(["python3", "-S", "-c", script], { allow: ["example.com:443"] }, "refused", {
      no_proxy: "",
    });
    assert.match(commandOf(outcome).stdout, /^403 .*127\.0\.0\.1/);
    const [denied] = fixture.listener.payloads("sandbox_network_denied") as JsonObject[];
    assert.deepEqual([denied?.host, denied?.port, denied?.add], ["127.0.0.1", port, allowed]);
  });

  test("has a relay that gets nothing of the worker's variables, and outlives SIGTERM to the group", async () => {
    const script = `
trap '' TERM; kill -TERM 0
for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in /sandbox/node\\ */relay.mjs*) tr '\\0' '\\n' <$p/environ; echo relay;; esac; done
curl -sS http://${allowed}/curl`;
    const outcome = await run(["sh", "-c", script], { allow: [allowed] }, "relay", { NODE_OPTIONS: "--bad" });
    assert.equal(commandOf(outcome).stdout, "relay\nhello /curl", JSON.stringify(outcome));
  });

  test("is not started when a host that is to be checked cannot be reached", async () => {
    const network = { allow: [allowed, "127.0.0.1:1"], check: true };
    const outcome = await run(["echo", "started"], network, "checked");
    const message = failedWith(outcome, "sandbox.network_unreachable");
    assert.match(message, /^The sandbox has no network: 127\.0\.0\.1:1 cannot be reached: (?!127)/);
    const own = await run(["sh", "-c", "exit 125"], { allow: [allowed] }, "own");
    failedWith(own, "executor.exit_nonzero");
  });

  test("is not made for what only looks like an address", async () => {
    const outcome = await run(["true"], { allow: ["[::::]:443"] }, "wrong");
    assert.ok(
      outcome.kind === "failed" && outcome.code === "sandbox.policy_invalid",
      JSON.stringify(outcome),
    );
    assert.match(outcome.message, /"\[::::\]:443" in network\.allow is no host/);
  });

  test("without hosts has nothing that leads to the proxy", async () => {
    const outcome = await run(
      ["sh", "-c", '[ -e /sandbox/network ] || echo none; echo "$HTTP_PROXY"'],
      {},
      "none",
    );
    assert.match(commandOf(outcome).stdout, /^none\n\n$/);
  });
});
