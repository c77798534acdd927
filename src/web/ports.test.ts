// Which ports are on offer, with real sockets; who gets one is the store's business (port-records.test.ts).

import assert from "node:assert/strict";
import type { Server } from "node:net";
import { test } from "node:test";
import { closed, freePorts, listenAt } from "../../test/support/ports.ts";
import { systemClock } from "../app/clock.ts";
import { WebUiPorts, type WebUiPortsParts } from "./ports.ts";
import type { PortRecords } from "./records.ts";

/** What the store would say. */
function recordsOf(
  inUse: Iterable<number>,
  freed: Iterable<number> = [],
  elsewhere: Iterable<number> = [],
): PortRecords {
  return {
    portsInUse: async () => new Set(inUse),
    portsInUseAnywhere: async () => new Set([...inUse, ...elsewhere]),
    portsFreedSince: async () => new Set(freed),
    portsOfEnded: async () => [],
    portsOf: async () => new Map(),
  };
}

function portsOf(start: number, end: number, given: Partial<WebUiPortsParts> = {}): WebUiPorts {
  const records = recordsOf([]);
  return new WebUiPorts({
    records,
    start,
    end,
    mode: "probe",
    host: "127.0.0.1",
    clock: systemClock,
    ...given,
  });
}

/** Servers on `count` ports in a row that are this test's own. */
async function listenInRow(
  count: number,
): Promise<{ readonly start: number; readonly servers: readonly Server[] }> {
  const start = await freePorts(count);
  const servers: Server[] = [];
  while (servers.length < count) servers.push(await listenAt(start + servers.length));
  return { start, servers };
}

test("in mode probe, ports on which another program listens are skipped, and come back when it has gone", async () => {
  const { start, servers } = await listenInRow(5);
  await closed(servers[1]!);
  await closed(servers[3]!);
  const ports = portsOf(start, start + 4);
  assert.deepEqual(await ports.candidates(), [start + 1, start + 3]);
  await Promise.all([0, 2, 4].map((i) => closed(servers[i]!)));
  assert.deepEqual(await ports.candidates(), [start, start + 1, start + 2, start + 3, start + 4]);
});

test("mode prepublished does not probe: every port that no open run has is on offer", async () => {
  const { start, servers } = await listenInRow(3);
  const ports = portsOf(start, start + 2, { mode: "prepublished", records: recordsOf([start + 1]) });
  assert.deepEqual(await ports.candidates(), [start, start + 2]);
  await Promise.all(servers.map(closed));
});

test("ports that runs on other nodes have are on offer behind those that no run has", async () => {
  const start = await freePorts(4);
  for (const mode of ["probe", "prepublished"] as const) {
    const records = recordsOf([start + 3], [], [start, start + 2]);
    const ports = portsOf(start, start + 3, { mode, records });
    assert.deepEqual(await ports.candidates(), [start + 1, start, start + 2]);
  }
});

test("concurrent probes do not take each other for other programs", async () => {
  const { start, servers } = await listenInRow(20);
  await Promise.all(servers.map(closed));
  const ports = portsOf(start, start + 19);
  const all = Array.from({ length: 20 }, (_, i) => start + i);
  const offers = await Promise.all(Array.from({ length: 50 }, () => ports.candidates()));
  for (const offer of offers) assert.deepEqual(offer, all);
});

test("a port whose run has just ended is on offer although its dashboard still listens, behind all others", async () => {
  const { start, servers } = await listenInRow(3);
  await closed(servers[2]!);
  const freed = portsOf(start, start + 2, { records: recordsOf([], [start]) });
  assert.deepEqual(await freed.candidates(), [start + 2, start]);
  const inUse = portsOf(start, start + 2, { records: recordsOf([start + 2]) });
  assert.deepEqual(await inUse.candidates(), []);
  await Promise.all([0, 1].map((i) => closed(servers[i]!)));
});

test("a port is held when something listens on it though its run has ended, and no open run has it", async () => {
  const { start, servers } = await listenInRow(3);
  await closed(servers[2]!);
  const ended = [start, start + 1, start + 2].map((port) => ({ port, runId: `run_${port}` }));
  const asked: number[] = [];
  const portsOfEnded = async (beforeMs: number) => {
    asked.push(beforeMs);
    return ended;
  };
  const clock = { ...systemClock, nowMs: () => 60_000 };
  const given = { clock, records: { ...recordsOf([start]), portsOfEnded } };
  assert.deepEqual(await portsOf(start, start + 2, given).held(), [ended[1]]);
  // A dashboard may take a while to end behind its run.
  assert.deepEqual(asked, [50_000]);
  assert.deepEqual(await portsOf(start, start + 2, { ...given, mode: "prepublished" }).held(), []);
  await Promise.all([0, 1].map((i) => closed(servers[i]!)));
});

test("no more than 256 of a large range are on offer", async () => {
  const offer = await portsOf(40_000, 60_000).candidates();
  assert.equal(offer.length, 256);
});

test("an address that does not answer in time delays no caller", async () => {
  const late: (() => void)[] = [];
  const clock = {
    ...systemClock,
    after: (_ms: number, run: () => void) => {
      late.push(run);
      queueMicrotask(run);
      return () => {};
    },
  };
  assert.deepEqual(await portsOf(40_000, 40_002, { clock }).candidates(), [40_000, 40_001, 40_002]);
  assert.equal(late.length, 1);
});

test("the refusal names the range, what may use the ports, and what to do", () => {
  const probing = portsOf(61_000, 61_049).refusal();
  assert.equal(probing.code, "no_free_port");
  assert.match(
    probing.message,
    /^All 50 ports for dashboards are in use by open runs or by other programs \(61000 to 61049\)\./,
  );
  assert.match(probing.message, /SVC_BLUEPRINT_WEB_UI_PORT_END/);
  const single = portsOf(61_000, 61_000, { mode: "prepublished" }).refusal();
  assert.match(single.message, /^The only port for dashboards, 61000, is in use by open runs \(/);
});
