// The registry with real checks of real servers. What it is told, the engine would tell it.

import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import {
  closedPort,
  registryOf,
  serve,
  serveHttp,
  serviceJob,
  specOf,
  workerOf,
} from "../../test/support/services.ts";
import { until } from "../../test/support/until.ts";
import { systemClock } from "../app/clock.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import type { ServiceChange } from "../engine/service-port.ts";
import { ServiceInstance } from "./instance.ts";
import { placeOf, ServiceIndex } from "./service-index.ts";
import { Services } from "./services.ts";

function startRegistry(clock: Clock = systemClock) {
  const changes: string[] = [];
  const reasons: string[] = [];
  const registry = registryOf("here", {
    clock,
    report: (_jobId: string, { type, name, reason }: ServiceChange) => {
      changes.push(`${name} ${type}`);
      reasons.push(reason);
    },
  });
  const all = {
    name: null,
    tags: [] as readonly string[],
    status: null,
    runId: null,
    limit: 100_000,
    after: null,
  } as const;
  return {
    registry,
    changes,
    reasons,
    list: (filter = {}) => registry.list({ ...all, ...filter }),
    names: (filter = {}) => registry.list({ ...all, ...filter }).map(({ name }) => name),
    passing: (name: string, tags: readonly string[] = []) => {
      const found = registry.find({ name, tags, leftOut: [], fromElsewhere: false });
      return found.kind === "passing" ? found.service : null;
    },
    [Symbol.dispose]: () => registry.stop(),
  };
}

/** Made often; and whatever the machine does, an answer that comes is in time. */
const quick = (type: string, more: JsonObject = {}) => ({
  type,
  interval_ms: 100,
  timeout_ms: 60_000,
  ...more,
});

test("a service is passing only once it has been reached, and critical when it is not any more", async () => {
  using started = startRegistry();
  const { registry, passing, changes } = started;
  let isWell = false;
  await using server = await serveHttp((_request, response) => {
    response.writeHead(isWell ? 200 : 503).end();
  });
  registry.jobOpened(serviceJob("job", [{ name: "web", port: server.port, checks: [quick("http")] }]));
  assert.equal(
    registry.find({ name: "web", tags: [], leftOut: [], fromElsewhere: false }).kind,
    "not_passing",
  );
  await until("the service is told as critical", () => changes.includes("web service_critical"));
  isWell = true;
  await until("the service passes", () => passing("web"));
  isWell = false;
  await until("it does not any more", () => passing("web") === null);
  assert.deepEqual(changes, ["web service_critical", "web service_passing", "web service_critical"]);
  const [view] = started.list();
  assert.equal(view?.checks[0]?.output, "HTTP 503, expected 200 to 299");
});

test("failures_before_critical is counted in a row, and one check of several is enough to fail", async () => {
  using started = startRegistry();
  const { registry, passing, changes } = started;
  const answers: number[] = [];
  await using server = await serveHttp((_request, response) => {
    response.writeHead(answers.shift() ?? 200).end();
  });
  const flaky = quick("http", { failures_before_critical: 3 });
  registry.jobOpened(serviceJob("job", [{ name: "web", port: server.port, checks: [flaky, quick("tcp")] }]));
  await until("the service passes", () => passing("web"));
  answers.push(500, 500, 200, 500, 500);
  await until("all were asked for", () => answers.length === 0);
  assert.ok(passing("web"));
  answers.push(500, 500, 500);
  await until("it is critical", () => changes.includes("web service_critical"));
  // It may be well again by now.
  assert.match(started.reasons[changes.indexOf("web service_critical")] ?? "", /^http: HTTP 500/);
});

test("services of an agent live as long as its command, and those of a job as long as it", async () => {
  using started = startRegistry();
  const { registry, names } = started;
  const job = serviceJob("job", [{ name: "whole" }], [{ name: "part" }]);
  registry.jobOpened(job);
  assert.deepEqual(names(), ["whole"]);
  registry.agentStarted("job", workerOf(job));
  assert.deepEqual(names(), ["part", "whole"]);
  const [first] = started.list({ name: "part" });
  registry.agentEnded("job", workerOf(job));
  assert.deepEqual(names(), ["whole"]);
  registry.agentStarted("job", workerOf(job));
  const [second] = started.list({ name: "part" });
  assert.equal(first?.serviceId, second?.serviceId);
  registry.jobClosed("job");
  assert.deepEqual(names(), []);
  registry.agentStarted("job", workerOf(job));
  assert.deepEqual(names(), []);
});

test("a service without a port and without checks is passing while it lives", async () => {
  using started = startRegistry();
  started.registry.jobOpened(serviceJob("job", [{ name: "idea" }]));
  assert.ok(started.passing("idea"));
  await until("it is told", () => started.changes.length > 0);
  assert.deepEqual(started.changes, ["idea service_passing"]);
});

test("an answer that comes after the end of what was asked for counts for nothing", async () => {
  using started = startRegistry();
  const { registry, changes } = started;
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<ServerResponse>();
  await using server = await serveHttp((_request, response) => onAsked(response));
  const job = serviceJob("job", [], [{ name: "web", port: server.port, checks: [quick("http")] }]);
  registry.jobOpened(job);
  registry.agentStarted("job", workerOf(job));
  const response = await asked;
  registry.agentEnded("job", workerOf(job));
  await once(response, "close");
  assert.deepEqual([started.names(), changes], [[], []]);
});

test("200 services that are checked ten times a second have 32 connections at a time, and each gets its turn", async () => {
  using started = startRegistry();
  const { registry } = started;
  const waiting: ServerResponse[] = [];
  const counts = new Map<string, number>();
  const underWay = new Map<string, number>();
  let atOnceMax = 0;
  let overlaps = 0;
  let isHeld = true;
  await using server = await serveHttp((request, response) => {
    const url = request.url ?? "";
    counts.set(url, (counts.get(url) ?? 0) + 1);
    underWay.set(url, (underWay.get(url) ?? 0) + 1);
    if (underWay.get(url)! > 1) overlaps++;
    const atOnce = [...underWay.values()].reduce((sum, n) => sum + n, 0);
    atOnceMax = Math.max(atOnceMax, atOnce);
    response.once("close", () => underWay.set(url, underWay.get(url)! - 1));
    if (isHeld) waiting.push(response);
    else response.end();
  });
  const services = (from: number) =>
    Array.from({ length: 20 }, (_, i) => ({
      name: `s${from + i}`,
      port: server.port,
      checks: [quick("http", { path: `/${from + i}` })],
    }));
  for (let n = 0; n < 200; n += 20) registry.jobOpened(serviceJob(`job${n}`, services(n)));
  await until("as many as may be are under way", () => waiting.length === 32);
  // The server has held all of them, so that a 33rd would have come by now if it could.
  assert.equal(atOnceMax, 32);
  isHeld = false;
  for (const response of waiting) response.end();
  await until("each was checked three times", () =>
    counts.size === 200 && [...counts.values()].every((n) => n >= 3) ? true : null,
  );
  assert.equal(started.list({ status: "passing" }).length, 200);
  assert.deepEqual([atOnceMax, overlaps], [32, 0]);
});

test("after a stop no check is made, and none is under way", async () => {
  const clock = countingClock();
  using started = startRegistry(clock);
  let requests = 0;
  await using server = await serveHttp((_request, response) => {
    requests++;
    response.end();
  });
  // Half of them would come again after an hour.
  const checks = Array.from({ length: 16 }, (_, i) => quick("http", i < 8 ? {} : { interval_ms: 3_600_000 }));
  started.registry.jobOpened(serviceJob("job", [{ name: "web", port: server.port, checks }]));
  await until("some checks were made", () => requests > 20);
  started.registry.stop();
  await until("no timer waits", () => clock.waiting() === 0);
  started.registry.jobOpened(serviceJob("late", [{ name: "idea" }]));
  assert.deepEqual(started.names(), []);
});

/** The real clock; it knows how many calls are to come. */
function countingClock() {
  let waiting = 0;
  return {
    ...systemClock,
    after(delayMs: number, run: () => void) {
      waiting++;
      let isOver = false;
      const over = () => {
        if (!isOver) waiting--;
        isOver = true;
      };
      const cancel = systemClock.after(delayMs, () => {
        over();
        run();
      });
      return () => {
        over();
        cancel();
      };
    },
    waiting: () => waiting,
  };
}

test("the newest passing one is resolved, by name and all tags, on its node", async () => {
  using started = startRegistry();
  const { registry, passing } = started;
  await using server = await serve(createTcpServer());
  const dead = await closedPort();
  const web = (port: number, tags: readonly string[]) => [
    { name: "web", port, tags: [...tags], checks: [quick("tcp")] },
  ];
  registry.jobOpened(serviceJob("first", web(server.port, ["a"])));
  registry.jobOpened(serviceJob("second", web(server.port, ["a", "b"])));
  registry.jobOpened(serviceJob("third", web(dead, ["a", "c"])));
  await until("two of them pass", () => started.list({ status: "passing" }).length === 2);
  await until("the third does not", () => started.changes.includes("web service_critical"));
  const services = new Services({
    own: registry,
    nodeName: "here",
    nodeId: "node_here",
    outOfService: async () => new Set(),
    clock: systemClock,
  });
  const resolve = (name: string, tags: readonly string[] = [], node: string | null = null) =>
    services.resolve({ name, tags, node });
  assert.equal(passing("web")?.jobId, "second");
  assert.equal(passing("web", ["a", "b"])?.jobId, "second");
  const onNode = await resolve("web", ["a"], "here");
  assert.equal(onNode.kind === "resolved" && onNode.service.jobId, "second");
  registry.jobClosed("second");
  assert.equal(passing("web")?.jobId, "first");
  assert.deepEqual(await resolve("nothing"), {
    kind: "unknown",
    reason: 'There is no service "nothing". Start a job that offers it.',
  });
  assert.equal((await resolve("web", ["b"])).kind, "unknown");
  assert.equal((await resolve("web", [], "elsewhere")).kind, "unknown");
  const notPassing = await resolve("web", ["c"]);
  assert.ok(notPassing.kind === "not_passing");
  assert.match(notPassing.reason, /^No service "web" with the tags c is passing: tcp: /);
  const required = [
    { name: "web", tags: [], node: null },
    { name: "db", tags: ["x"], node: null },
  ];
  assert.deepEqual(await services.unmet(required), [
    { service: "db", reason: 'There is no service "db" with the tags x. Start a job that offers it.' },
  ]);
});

test("a list has filters by name, tag, status and run", async () => {
  using started = startRegistry();
  const { registry, names } = started;
  registry.jobOpened(serviceJob("one", [{ name: "b", tags: ["x"] }, { name: "a" }]));
  registry.jobOpened(serviceJob("two", [{ name: "c", tags: ["x"], port: await closedPort() }]));
  assert.deepEqual(names(), ["a", "b", "c"]);
  assert.deepEqual(names({ tags: ["x"] }), ["b", "c"]);
  assert.deepEqual(names({ tags: ["x", "y"] }), []);
  assert.deepEqual(names({ status: "critical" }), ["c"]);
  assert.deepEqual(names({ runId: "run-of-one" }), ["a", "b"]);
  assert.deepEqual(names({ name: "b" }), ["b"]);
});

test("the changes of a service in its run's history are limited", async () => {
  const hand = handClock();
  using started = startRegistry(hand.clock);
  const { registry, changes, reasons } = started;
  let answers = 0;
  await using server = await serveHttp((_request, response) => {
    response.writeHead(answers++ % 2 === 0 ? 200 : 500).end();
  });
  registry.jobOpened(serviceJob("job", [{ name: "web", port: server.port, checks: [quick("http")] }]));
  while (answers < 1_010) {
    const before = answers;
    hand.fire();
    while (answers === before || hand.waiting() !== 1) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(changes.length, 1_000);
  assert.match(reasons.at(-1) ?? "", /further changes are not recorded/);
});

/** Timers that wait until the test fires them; timeouts of checks never come. */
function handClock() {
  let waiting: { readonly run: () => void }[] = [];
  const clock: Clock = {
    nowMs: () => 0,
    steadyMs: () => 0,
    soon: (run) => systemClock.soon(run),
    after(delayMs, run) {
      if (delayMs >= 1_000) return () => {};
      const timer = { run };
      waiting.push(timer);
      return () => {
        waiting = waiting.filter((one) => one !== timer);
      };
    },
  };
  return {
    clock,
    waiting: () => waiting.length,
    fire: () => {
      for (const { run } of waiting.splice(0)) run();
    },
  };
}

test("beyond 10,000 services the next one is critical, and its history has the reason", async () => {
  using started = startRegistry();
  const { registry } = started;
  const many = Array.from({ length: 32 }, (_, i) => ({ name: `s${i}` }));
  for (let n = 0; n < 313; n++) registry.jobOpened(serviceJob(`job${n}`, many));
  assert.equal(started.list().length, 10_000);
  await until("all is told", () => started.changes.length === 313 * 32);
  assert.equal(started.changes.filter((change) => change.endsWith("critical")).length, 16);
  assert.match(started.reasons.find((reason) => reason !== "it has no checks") ?? "", /10000 services/);
  registry.jobClosed("job0");
  registry.jobOpened(serviceJob("last", [{ name: "s" }]));
  assert.ok(started.passing("s"));
});

test("pages of the index are those of a sorted list, whatever came and went", () => {
  const name = fc.constantFrom("a", "b", "c");
  const id = fc.integer({ min: 0, max: 8 }).map((n) => `svc_${n}`);
  const step = fc.record({ name, id, remove: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), fc.integer({ min: 1, max: 4 }), (steps, limit) => {
      const index = new ServiceIndex();
      const model = new Map<string, ServiceInstance>();
      for (const { name: given, id: serviceId, remove } of steps) {
        const key = `${given} ${serviceId}`;
        const known = model.get(key);
        if (known !== undefined) index.remove(known);
        model.delete(key);
        if (remove) continue;
        const instance = instanceOf(given, serviceId);
        model.set(key, instance);
        index.add(instance);
      }
      const expected = [...model].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, instance]) => instance);
      const walked: ServiceInstance[] = [];
      for (;;) {
        const last = walked.at(-1);
        const page = index.page(limit, last === undefined ? null : placeOf(last), () => true);
        if (page.length === 0) break;
        walked.push(...page);
      }
      assert.deepEqual(walked.map(keyOf), expected.map(keyOf));
      assert.equal(index.size, expected.length);
      assert.deepEqual(
        index.named("b").map(keyOf),
        expected.filter(({ spec }) => spec.name === "b").map(keyOf),
      );
    }),
  );
});

const keyOf = ({ spec, serviceId }: ServiceInstance) => `${spec.name} ${serviceId}`;

function instanceOf(name: string, serviceId: string): ServiceInstance {
  const spec = { ...specOf({}), name };
  return new ServiceInstance({
    serviceId,
    spec,
    job: serviceJob("job", []),
    agentId: null,
    registeredAtMs: 0,
    order: 1,
  });
}

test("who asks for checks gets their new results, and does not wait for one that takes long", async () => {
  using started = startRegistry();
  const { registry } = started;
  let isWell = true;
  let hangs = false;
  await using server = await serveHttp((_request, response) => {
    if (!hangs) response.writeHead(isWell ? 200 : 503).end();
  });
  const seldom = { type: "http", interval_ms: 3_600_000, timeout_ms: 60_000 };
  registry.jobOpened(
    serviceJob("job", [{ name: "web", port: server.port, checks: [seldom] }, { name: "idea" }]),
  );
  await until("the service passes", () => started.passing("web"));
  isWell = false;
  const all = { name: null, tags: [], status: null, runId: null, limit: 10, after: null };
  const checked = await registry.check(all);
  assert.deepEqual(
    checked.map(({ name, status }) => `${name} ${status}`),
    ["idea passing", "web critical"],
  );
  assert.deepEqual(await registry.check({ ...all, status: "passing" }), started.list({ name: "idea" }));
  hangs = true;
  const [late] = await registry.check({ ...all, name: "web" });
  assert.equal(late?.status, "critical");
  // The answer to another caller ends with the service.
  const asked = registry.check({ ...all, name: "web" });
  registry.jobClosed("job");
  assert.deepEqual(await asked, []);
});
