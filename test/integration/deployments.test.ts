// Deployments of real servers: clients that call throughout, bad versions, kills.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  Callers,
  deploy,
  deploymentIs,
  deploymentOf,
  serverBundle,
  update,
} from "../support/deployed-servers.ts";
import { startGateway } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "32" };
const COUNT = sized(8, 20);
const QUICK = { max_parallel: 4, min_healthy_seconds: 0, drain_seconds: 1 };

let program: Program;
before(async () => {
  program = await startGatewayHere({ env });
});
after(() => program.stop());

test("all instances are replaced while clients call, and no call fails", { timeout: 180_000 }, async () => {
  const source = { bundle_id: await serverBundle(program, "many", "one") };
  const id = await deploy(program, { name: "many", source, count: COUNT, strategy: QUICK });
  await deploymentIs(program, id, "succeeded", 1);
  const callers = new Callers(program, "many", 4);
  await update(program, id, { source: { bundle_id: await serverBundle(program, "many", "two") } });
  const { healthy, placement } = await deploymentIs(program, id, "succeeded", 2);
  assert.equal(healthy, COUNT);
  const before = callers.seen.get("two") ?? 0;
  await until("the new version is called", () => (callers.seen.get("two") ?? 0) > before);
  await callers.stop();
  assert.ok((callers.seen.get("one") ?? 0) > 0 && (callers.seen.get("two") ?? 0) > 0);
  const onNodes = Object.values(placement as JsonObject).reduce((sum: number, n) => sum + Number(n), 0);
  assert.ok(onNodes >= COUNT, `${onNodes} instances have a place`);
});

test("a bad version stops at its canary, goes back by itself, and nobody has met it", {
  timeout: 180_000,
}, async () => {
  const source = { bundle_id: await serverBundle(program, "few", "good") };
  const strategy = { ...QUICK, kind: "canary" };
  const id = await deploy(program, { name: "few", source, count: 3, strategy });
  await deploymentIs(program, id, "succeeded", 1);
  const callers = new Callers(program, "few", 2);
  await update(program, id, { source: { bundle_id: await serverBundle(program, "few", "bad", true) } });
  const body = await deploymentIs(program, id, "rolled_back", 1);
  await callers.stop();
  assert.deepEqual([...callers.seen.keys()], ["good"]);
  const { version, reason } = body.last_failure as JsonObject;
  assert.equal(version, 2);
  assert.match(String(reason), /3 instances of version 2 failed in a row/);
  assert.equal(body.healthy, 3);
});

test("a rollout goes on after a kill -9 in its middle", { timeout: 180_000 }, async (t) => {
  const options = { home: await temporaryHome(), env };
  let killed = await startGateway(options);
  t.after(() => killed.kill());
  const source = { bundle_id: await serverBundle(killed, "some", "one") };
  const id = await deploy(killed, {
    name: "some",
    source,
    count: 4,
    strategy: { ...QUICK, max_parallel: 1 },
  });
  await deploymentIs(killed, id, "succeeded", 1);
  await update(killed, id, { source: { bundle_id: await serverBundle(killed, "some", "two") } });
  await until("an instance of the new version serves", async () => {
    const { instances } = await deploymentOf(killed, id);
    return (instances as readonly JsonObject[]).some(
      ({ version, phase }) => version === 2 && phase === "serving",
    );
  });
  await killed.kill();
  killed = await startGateway(options);
  const body = await deploymentIs(killed, id, "succeeded", 2);
  assert.equal(body.healthy, 4);
  const callers = new Callers(killed, "some", 1);
  await until("it is called", () => (callers.seen.get("two") ?? 0) > 0);
  await callers.stop();
  assert.deepEqual([...callers.seen.keys()], ["two"]);
});
