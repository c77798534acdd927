// Slots together with resources of the machine: who is granted what when both are short.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { machine } from "../../test/support/machine.ts";
import type { Grant } from "../engine/ports.ts";
import { type Amounts, type Demand, portClaim } from "../engine/resources.ts";
import type { Lease } from "../engine/task-port.ts";
import { FREE_PORTS_MAX, FreePorts } from "./free-ports.ts";
import { PoolSlots } from "./pools.ts";
import { OVERTAKEN_MAX } from "./resource-lines.ts";

const nothing: Amounts = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };
const asking = (demand: Partial<Demand>) => ({ nodeLabels: {}, demand: { ...nothing, ...demand } });
const cores = (count: number) => asking({ cpuMillis: count * 1_000 });
const gpu = (index: number) => ({ index, name: "L4", memoryBytes: 1 });
const none = { cpuCores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0, claims: [] };
const ports = (...claimed: readonly number[]) =>
  asking({ named: { claims: claimed.map(portClaim), freePorts: 0 } });
const freePorts = (count: number) => asking({ named: { claims: [], freePorts: count } });

/** A machine with 4 cores, 1,000 bytes of memory and the GPUs 0 and 5. */
const MACHINE = machine({ cpuCores: 4, memoryBytes: 1_000, gpus: [gpu(0), gpu(5)] });

function setUp(
  pools: Readonly<Record<string, number>> = { default: 100 },
  listening: readonly number[] = [],
) {
  let leases = 0;
  const free = new FreePorts(0, (port) => !listening.includes(port));
  const names = { ports: free, hasDevice: (path: string) => path === "/dev/one" };
  const slots = new PoolSlots(
    pools,
    () => String(++leases),
    () => 0,
    {},
    MACHINE,
    names,
  );
  const granted = new Map<string, Lease>();
  const order: string[] = [];
  const note = (key: string, lease: Lease) => {
    granted.set(key, lease);
    order.push(key);
  };
  slots.onGranted = note;
  const ask = (key: string, needs = asking({}), pool = "default", count = 1): Grant => {
    const { named, ...amounts } = needs.demand;
    const hasNone = named === undefined && Object.values(amounts).every((amount) => amount === 0);
    const grant = slots.request(key, pool, count, "here", hasNone ? undefined : needs);
    if (grant.kind === "granted") note(key, grant.lease);
    return grant;
  };
  /** What was granted since it was asked last. */
  const news = () => order.splice(0).join(" ");
  return { slots, ask, granted, news };
}

describe("resources of the machine", () => {
  it("are granted at once while they are free, waited for otherwise, and free again with the slots", () => {
    const { slots, ask, news } = setUp();
    assert.equal(ask("a", cores(3)).kind, "granted");
    assert.deepEqual(ask("b", cores(2)), { kind: "queued", hint: "It waits for 2 cores of the machine." });
    assert.equal(ask("c", asking({ memoryBytes: 1_000 })).kind, "granted", "nobody has memory");
    assert.equal(ask("plain").kind, "granted");
    assert.deepEqual(slots.reserved, { ...none, cpuCores: 3, memoryBytes: 1_000 });
    news();
    slots.release("a");
    assert.equal(news(), "b");
    for (const key of ["b", "c", "plain", "a"]) slots.release(key);
    assert.deepEqual(slots.reserved, none);
    assert.equal(slots.snapshot().default?.available, 100);
  });

  it("are refused when the machine has less in all", () => {
    const { ask } = setUp();
    assert.deepEqual(ask("a", asking({ cpuMillis: 4_001, memoryBytes: 1, gpus: 3 })), {
      kind: "unsatisfiable",
      reason: "It needs 4.001 cores and 3 GPUs, and this machine has 4 cores and 2 GPUs.",
    });
    assert.equal(ask("a", cores(4)).kind, "granted");
  });

  it("are GPUs of one command each, of which those that the limits leave out are not granted", () => {
    const { slots, ask, granted, news } = setUp();
    ask("a", asking({ gpus: 1 }));
    ask("b", asking({ gpus: 1 }));
    assert.deepEqual([granted.get("a")?.gpus, granted.get("b")?.gpus], [[0], [5]]);
    assert.equal(ask("c", asking({ gpus: 1 })).kind, "queued");
    slots.limitTo({ ...MACHINE, gpus: [gpu(5)] });
    news();
    slots.release("a");
    assert.equal(news(), "", "GPU 0 is free, and not allowed");
    slots.release("b");
    assert.deepEqual(granted.get("c")?.gpus, [5]);
    assert.equal(slots.reserved.gpus, 1);
  });

  it("are waited for while the limits allow less, and granted when they allow more again", () => {
    const { slots, ask, news } = setUp();
    ask("runs", cores(3));
    slots.limitTo({ ...MACHINE, cpuCores: 1 });
    assert.deepEqual(ask("a", cores(2)), {
      kind: "queued",
      hint: "It waits until the limits allow 2 cores on this machine (GET /resource).",
    });
    assert.equal(ask("b", cores(1)).kind, "queued", "what runs has more than is allowed");
    news();
    slots.release("runs");
    assert.equal(news(), "b");
    slots.limitTo(MACHINE);
    assert.equal(news(), "a");
  });

  it("keep nobody from slots who asks for none", () => {
    const { ask } = setUp({ default: 2 });
    ask("a", cores(4));
    ask("b", cores(1));
    assert.equal(ask("plain").kind, "granted");
  });

  it("are not taken by who waits for slots, and slots not by who waits for resources", () => {
    const { slots, ask, news } = setUp({ full: 1, free: 2 });
    ask("held", asking({}), "full");
    assert.deepEqual(ask("waits", cores(4), "full"), { kind: "queued" });
    assert.equal(ask("runs", cores(4), "free").kind, "granted");
    ask("large", cores(2), "free", 2);
    assert.equal(ask("plain", asking({}), "free").kind, "granted");
    assert.deepEqual(slots.snapshot().free?.available, 0);
    news();
    slots.release("held");
    assert.equal(news(), "", "the cores are another's");
    slots.release("runs");
    assert.equal(news(), "waits", "the oldest that has both");
  });

  it("block a pool for the oldest that has them and waits for slots alone", () => {
    const { slots, ask, news } = setUp({ default: 2 });
    ask("a");
    ask("b");
    ask("large", cores(1), "default", 2);
    assert.equal(ask("small").kind, "queued");
    news();
    slots.release("a");
    assert.equal(news(), "");
    assert.deepEqual(slots.spare("default"), { capacity: 2, free: -2 });
    slots.release("b");
    assert.equal(news(), "large");
    slots.release("large");
    assert.equal(news(), "small");
  });

  it("go on to those behind when a request is taken back", () => {
    const { slots, ask, news } = setUp({ default: 2 });
    ask("a");
    ask("large", cores(1), "default", 2);
    ask("small");
    news();
    slots.release("large");
    assert.equal(news(), "small");
    assert.deepEqual(slots.spareResources().amounts.cpuMillis, 4_000);
  });

  it("are granted to a large request after small ones have overtaken it a bounded number of times", () => {
    const { slots, ask, news } = setUp();
    ask("runs", cores(1));
    ask("large", cores(4));
    const grants = Array.from({ length: 100 }, (_, n) => ask(`s${n}`, cores(0.01)).kind);
    assert.deepEqual(
      [grants.indexOf("queued"), grants.lastIndexOf("granted")],
      [OVERTAKEN_MAX, OVERTAKEN_MAX - 1],
    );
    assert.deepEqual(ask("s", cores(0.01)), {
      kind: "queued",
      hint: "It waits until others are granted resources of the machine that come before it.",
    });
    news();
    for (let n = 0; n < OVERTAKEN_MAX; n++) slots.release(`s${n}`);
    assert.equal(news(), "");
    slots.release("runs");
    assert.equal(news(), "large");
  });

  it("may be overtaken as often by each that waits in one line", () => {
    const { slots, ask, news } = setUp();
    ask("runs", cores(2));
    for (const key of ["large-1", "large-2"]) ask(key, cores(3));
    for (let n = 0; n < OVERTAKEN_MAX; n++) ask(`s${n}`, cores(0.01));
    news();
    slots.release("runs");
    assert.equal(news(), "large-1");
    assert.equal(ask("s", cores(0.01)).kind, "granted");
  });

  it("are not set aside for one that lacks something else", () => {
    const { ask } = setUp();
    ask("runs", asking({ gpus: 2 }));
    ask("large", asking({ gpus: 2, cpuMillis: 1_000 }));
    for (let n = 0; n < 2 * OVERTAKEN_MAX; n++) ask(`s${n}`, cores(0.01));
    assert.equal(ask("other", cores(3.5)).kind, "granted");
  });

  it("that are set aside leave the rest to others", () => {
    const { ask } = setUp();
    ask("runs", cores(1));
    ask("large", asking({ cpuMillis: 4_000, memoryBytes: 600 }));
    for (let n = 0; n < OVERTAKEN_MAX; n++) ask(`s${n}`, cores(0.01));
    assert.equal(ask("rest", asking({ memoryBytes: 400 })).kind, "granted");
    assert.equal(ask("more", asking({ memoryBytes: 1 })).kind, "queued");
  });

  it("are ports of one command each, which others wait for by number", () => {
    const { slots, ask, news } = setUp();
    assert.equal(ask("a", ports(8080, 8081)).kind, "granted");
    assert.deepEqual(ask("b", ports(8081, 9000)), {
      kind: "queued",
      hint: "It waits for port 8081 of the machine.",
    });
    assert.equal(ask("c", ports(9000)).kind, "granted", "who waits holds nothing");
    assert.deepEqual(
      slots.reserved.claims?.map(({ name }) => name),
      ["8080", "8081", "9000"],
    );
    news();
    slots.release("a");
    assert.equal(news(), "", "9000 is another's");
    slots.release("c");
    assert.equal(news(), "b");
    slots.release("b");
    assert.deepEqual(slots.reserved, none);
  });

  it("are devices of one command each, and refused where there is none", () => {
    const { slots, ask, news } = setUp();
    const device = (name: string) =>
      asking({ named: { claims: [{ kind: "device", name, isShared: false }], freePorts: 0 } });
    assert.deepEqual(ask("none", device("/dev/other")), {
      kind: "unsatisfiable",
      reason: "It needs device /dev/other, and this machine has none there.",
    });
    assert.equal(ask("a", device("/dev/one")).kind, "granted");
    assert.deepEqual(ask("b", device("/dev/one")), {
      kind: "queued",
      hint: "It waits for device /dev/one of the machine.",
    });
    news();
    slots.release("a");
    assert.equal(news(), "b");
  });

  it("are ports that no command has and nobody listens at, when any will do", () => {
    const { slots, ask, granted } = setUp(undefined, [20_001]);
    ask("fixed", ports(20_002));
    ask("a", freePorts(2));
    assert.deepEqual(granted.get("a")?.ports, [20_000, 20_003]);
    slots.release("a");
    ask("b", freePorts(1));
    assert.deepEqual(granted.get("b")?.ports, [20_004], "one that was given back is not given at once");
    ask("most", freePorts(FREE_PORTS_MAX - 2));
    assert.deepEqual(ask("c", freePorts(1)), {
      kind: "queued",
      hint: "It waits for free ports of the machine.",
    });
    slots.release("fixed");
    assert.deepEqual(granted.get("c")?.ports, [20_002]);
  });

  it("that are had by name are set aside, and nothing else, for who was overtaken too often", () => {
    const { slots, ask, news } = setUp();
    ask("holder", ports(1));
    ask("a", ports(2));
    ask("both", asking({ cpuMillis: 4_000, named: { claims: [portClaim(1), portClaim(2)], freePorts: 0 } }));
    for (let n = 0; n < OVERTAKEN_MAX; n++) {
      ask(`next${n}`, ports(2));
      slots.release(n === 0 ? "a" : `next${n - 1}`);
    }
    assert.equal(ask("late", ports(2)).kind, "queued");
    assert.equal(ask("other", cores(4)).kind, "granted", "the holder may run for days");
    news();
    slots.release(`next${OVERTAKEN_MAX - 1}`);
    assert.equal(news(), "", "port 2 is kept for the one that waits for both");
    slots.release("holder");
    slots.release("other");
    assert.equal(news(), "both");
  });

  it("that are shared are had by many, or by one alone, and who wants them alone is not starved", () => {
    const { slots, ask, news } = setUp();
    const shared = asking({ named: { claims: [{ ...portClaim(1), isShared: true }], freePorts: 0 } });
    ask("r0", shared);
    assert.equal(ask("r1", shared).kind, "granted");
    assert.equal(ask("alone", ports(1)).kind, "queued");
    for (let n = 2; n < 2 + OVERTAKEN_MAX; n++) assert.equal(ask(`r${n}`, shared).kind, "granted");
    assert.equal(ask("late", shared).kind, "queued");
    news();
    for (let n = 0; n < 2 + OVERTAKEN_MAX; n++) slots.release(`r${n}`);
    assert.equal(news(), "alone");
    slots.release("alone");
    assert.equal(news(), "late");
    slots.release("late");
    assert.deepEqual(slots.reserved, none);
  });

  it("never exceed what there is, are all given back, and nobody waits for ever, whatever happens in whatever order", () => {
    const demandOf = fc.record({
      cpuMillis: fc.constantFrom(0, 0, 500, 1_000, 4_000),
      memoryBytes: fc.constantFrom(0, 0, 300, 1_000),
      gpus: fc.constantFrom(0, 0, 1, 2),
      named: fc.record({
        claims: fc.uniqueArray(
          fc.record({
            kind: fc.constant("port" as const),
            name: fc.constantFrom("1", "2"),
            isShared: fc.boolean(),
          }),
          { selector: ({ name }) => name },
        ),
        freePorts: fc.constantFrom(0, 1),
      }),
    });
    const step = fc.oneof(
      fc.record({
        kind: fc.constant("ask" as const),
        demand: demandOf,
        pool: fc.constantFrom("default", "io"),
        count: fc.integer({ min: 1, max: 2 }),
      }),
      fc.record({ kind: fc.constant("release" as const), which: fc.nat(50) }),
      fc.record({ kind: fc.constant("limit" as const), cpuCores: fc.constantFrom(1, 4) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { slots, ask, granted } = setUp({ default: 3, io: 2 });
        const open: string[] = [];
        const demands = new Map<string, Partial<Demand>>();
        const check = () => {
          const { cpuCores, memoryBytes, gpus } = slots.reserved;
          assert.ok(cpuCores <= 4 && memoryBytes <= 1_000 && gpus <= 2);
          const taken = open.flatMap((key) => granted.get(key)?.gpus ?? []);
          assert.equal(new Set(taken).size, taken.length);
          const claims = open
            .filter((key) => granted.has(key))
            .flatMap((key) => demands.get(key)?.named?.claims ?? []);
          for (const { name, isShared } of claims)
            assert.ok(isShared || claims.filter((one) => one.name === name).length === 1);
          for (const { available } of Object.values(slots.snapshot())) assert.ok(available >= 0);
        };
        const release = (key: string) => {
          open.splice(open.indexOf(key), 1);
          granted.delete(key);
          slots.release(key);
          check();
        };
        for (const [n, one] of steps.entries()) {
          if (one.kind === "limit") slots.limitTo({ ...MACHINE, cpuCores: one.cpuCores });
          else if (one.kind === "release") {
            const key = open[one.which % Math.max(1, open.length)];
            if (key !== undefined) release(key);
          } else {
            open.push(`k${n}`);
            demands.set(`k${n}`, one.demand);
            ask(`k${n}`, asking(one.demand), one.pool, one.count);
          }
          check();
        }
        slots.limitTo(MACHINE);
        while (open.length > 0) {
          const running = open.find((key) => granted.has(key));
          assert.ok(running !== undefined, `${open.join()} wait, and nothing runs`);
          release(running);
        }
        assert.deepEqual(slots.reserved, none);
        assert.deepEqual(
          Object.values(slots.snapshot()).map(({ available, queued, active }) => [available, queued, active]),
          [
            [3, 0, 0],
            [2, 0, 0],
          ],
        );
      }),
    );
  });
});
