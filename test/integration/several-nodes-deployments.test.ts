// Deployments over three real programs on one PostgreSQL: their instances on all nodes, clients that call throughout by any
// of them, a bad version, and a node that is killed in the middle of a rollout.

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
import { call } from "../support/gateway-api.ts";
import { sized } from "../support/long.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

const names = ["a", "b", "c"] as const;
const QUICK = { max_parallel: 3, min_healthy_seconds: 0, drain_seconds: 2 };
const COUNT = sized(3, 20);

let nodes: Nodes<"a" | "b" | "c">;
before(async () => {
  nodes = await Nodes.start(names, {
    filesAreShared: true,
    env: () => ({ SVC_EXECUTOR_MAX_CONCURRENCY: String(2 * COUNT) }),
  });
  // With its first heartbeat a node tells what its machine has.
  await until("all nodes tell of their machines", async () => {
    const { nodes: told } = await call(nodes.of("a"), "GET", "/resource");
    return (told as readonly JsonObject[]).filter(({ totals }) => totals !== null).length === names.length;
  });
});
after(() => nodes[Symbol.asyncDispose]());

const placementOf = (body: JsonObject) => body.placement as Readonly<Record<string, number>>;

/** @param on these nodes */
function assertSpread(body: JsonObject, on: readonly string[]): void {
  const placement = placementOf(body);
  const counts = on.map((name) => placement[name] ?? 0);
  assert.ok(
    counts.every((count) => count >= Math.floor(COUNT / on.length) - 1 && count > 0),
    JSON.stringify(placement),
  );
}

test("instances are on all nodes, are replaced while clients call any of them, and no call fails", {
  timeout: 400_000,
}, async () => {
  const a = nodes.of("a");
  const source = { bundle_id: await serverBundle(a, "many", "one") };
  const id = await deploy(a, { name: "many", source, count: COUNT, strategy: QUICK });
  assertSpread(await deploymentIs(nodes.of("b"), id, "succeeded", 1), names);
  const callers = names.map((name) => new Callers(nodes.of(name), "many", 2));
  await update(nodes.of("c"), id, { source: { bundle_id: await serverBundle(a, "many", "two") } });
  const body = await deploymentIs(a, id, "succeeded", 2);
  assertSpread(body, names);
  assert.equal(body.healthy, COUNT);
  for (const one of callers) await until("the new version is called", () => one.seen.has("two"));
  for (const one of callers) await one.stop();
  await update(a, id, { count: 0 });
  await deploymentIs(a, id, "succeeded", 2);
});

test("a bad version stops at its canary and goes back by itself, and nobody has met it", {
  timeout: 400_000,
}, async () => {
  const b = nodes.of("b");
  const source = { bundle_id: await serverBundle(b, "few", "good") };
  const id = await deploy(b, { name: "few", source, count: 3, strategy: { ...QUICK, kind: "canary" } });
  await deploymentIs(b, id, "succeeded", 1);
  const callers = names.map((name) => new Callers(nodes.of(name), "few", 1));
  await update(b, id, { source: { bundle_id: await serverBundle(b, "few", "bad", true) } });
  const body = await deploymentIs(nodes.of("c"), id, "rolled_back", 1);
  for (const one of callers) await one.stop();
  for (const { seen } of callers) assert.deepEqual([...seen.keys()], ["good"]);
  assert.equal(body.healthy, 3);
  await update(b, id, { count: 0 });
});

test("a rollout goes on when a node is killed in its middle, whichever it is", {
  timeout: 600_000,
}, async () => {
  for (const killed of sized<readonly ("a" | "b" | "c")[]>(["a"], names)) {
    const others = names.filter((name) => name !== killed);
    const other = nodes.of(others[0]!);
    const name = `killed-${killed}`;
    const source = { bundle_id: await serverBundle(other, name, "one") };
    const id = await deploy(other, { name, source, count: COUNT, strategy: { ...QUICK, max_parallel: 1 } });
    await deploymentIs(other, id, "succeeded", 1);
    await update(other, id, { source: { bundle_id: await serverBundle(other, name, "two") } });
    await until("an instance of the new version serves", async () => {
      const { instances } = await deploymentOf(other, id);
      return (instances as readonly JsonObject[]).some(
        ({ version, phase }) => version === 2 && phase === "serving",
      );
    });
    await nodes.of(killed).kill();
    const body = await deploymentIs(other, id, "succeeded", 2);
    assert.equal(body.healthy, COUNT);
    assertSpread(body, others);
    const callers = new Callers(other, name, 1);
    await until("it is called", () => callers.seen.has("two"));
    await callers.stop();
    await update(other, id, { count: 0 });
    await nodes.start(killed);
  }
});
