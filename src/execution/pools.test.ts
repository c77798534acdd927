// The pools against a simple model: a list of leases and a list of waiting requests.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { PoolSlots } from "./pools.ts";

function counter(): () => string {
  let last = 0;
  return () => String(++last);
}

function granted(slots: PoolSlots): string[] {
  const keys: string[] = [];
  slots.onGranted = (key) => keys.push(key);
  return keys;
}

describe("pool slots", () => {
  it("grants at once what is free, and queues the rest in order", () => {
    const slots = new PoolSlots({ default: 2 }, counter(), () => 0);
    const keys = granted(slots);
    assert.deepEqual(slots.request("a", "default", 2), {
      kind: "granted",
      lease: { leaseId: "lease_1", pool: "default", slots: 2 },
    });
    assert.deepEqual(slots.request("b", "default", 1), { kind: "queued" });
    assert.deepEqual(slots.request("c", "default", 1), { kind: "queued" });
    assert.deepEqual(slots.snapshot(), {
      default: { capacity: 2, available: 0, in_use: 2, queued: 2, active: 1 },
    });
    slots.release("a");
    assert.deepEqual(keys, ["b", "c"]);
  });

  it("does not let small requests overtake a large one that waits", () => {
    const slots = new PoolSlots({ default: 4 }, counter(), () => 0);
    const keys = granted(slots);
    slots.request("small-1", "default", 1);
    slots.request("large", "default", 4);
    assert.equal(slots.request("small-2", "default", 1).kind, "queued");
    assert.deepEqual(keys, []);
    slots.release("small-1");
    assert.deepEqual(keys, ["large"]);
    slots.release("large");
    assert.deepEqual(keys, ["large", "small-2"]);
  });

  it("serves those behind a waiting request that is taken back", () => {
    const slots = new PoolSlots({ default: 2 }, counter(), () => 0);
    const keys = granted(slots);
    slots.request("a", "default", 1);
    slots.request("large", "default", 2);
    slots.request("b", "default", 1);
    slots.release("large");
    assert.deepEqual(keys, ["b"]);
  });

  it("refuses what needs a label that the node lacks", () => {
    const slots = new PoolSlots({ default: 1 }, counter(), () => 0, { zone: "a", disk: "ssd" });
    const ask = (labels: Record<string, string>) =>
      slots.request("a", "default", 1, "local", { nodeLabels: labels, demand: null });
    const refused = (text: string) => ({
      kind: "unsatisfiable",
      reason: `It needs a node with ${text}, and this one has the labels zone=a, disk=ssd.`,
    });
    assert.deepEqual(ask({ zone: "b", disk: "ssd" }), refused("the labels zone=b, disk=ssd"));
    assert.deepEqual(ask({ toString: "x" }), refused("the label toString=x"));
    assert.equal(ask({ disk: "ssd" }).kind, "granted");
  });

  it("keeps pools apart", () => {
    const slots = new PoolSlots({ default: 1, io: 1 }, counter(), () => 0);
    slots.request("a", "default", 1);
    slots.request("b", "default", 1);
    assert.equal(slots.request("c", "io", 1).kind, "granted");
  });

  it("names the pools when a request can never be granted", () => {
    const slots = new PoolSlots({ default: 4, io: 1 }, counter(), () => 0);
    assert.deepEqual(slots.request("a", "gpu", 1), {
      kind: "unsatisfiable",
      reason: 'There is no pool "gpu"; there is default (4 slots), io (1 slot).',
    });
    assert.deepEqual(slots.request("a", "io", 2), {
      kind: "unsatisfiable",
      reason: '2 slots of pool "io" can never be had; there is default (4 slots), io (1 slot).',
    });
    assert.equal(slots.request("a", "io", 0).kind, "unsatisfiable");
    assert.equal(slots.request("a", "io", 0.5).kind, "unsatisfiable");
    assert.equal(slots.request("a", "toString", 1).kind, "unsatisfiable");
    assert.equal(slots.snapshot().io?.queued, 0);
  });

  it("answers a repeated request with what the key already has", () => {
    const slots = new PoolSlots({ default: 1 }, counter(), () => 0);
    const first = slots.request("a", "default", 1);
    assert.deepEqual(slots.request("a", "default", 1), first);
    slots.request("b", "default", 1);
    assert.deepEqual(slots.request("b", "default", 1), { kind: "queued" });
    assert.equal(slots.snapshot().default?.queued, 1);
  });

  it("survives a queue of 50,000 whose every grant releases and asks again from within", () => {
    const slots = new PoolSlots({ default: 1 }, counter(), () => 0);
    let grants = 0;
    slots.onGranted = (key) => {
      grants++;
      slots.release(key);
      if (grants <= 10) slots.request(`again-${grants}`, "default", 1);
    };
    slots.request("first", "default", 1);
    for (let i = 0; i < 50_000; i++) slots.request(`k${i}`, "default", 1);
    slots.release("first");
    assert.equal(grants, 50_010);
    assert.deepEqual(slots.snapshot().default, {
      capacity: 1,
      available: 1,
      in_use: 0,
      queued: 0,
      active: 0,
    });
  });

  it("keeps the order of those who wait when thousands before and between them are taken back", () => {
    const slots = new PoolSlots({ default: 1 }, counter(), () => 0);
    const keys = granted(slots);
    slots.request("holder", "default", 1);
    for (let i = 0; i < 5_000; i++) slots.request(`k${i}`, "default", 1);
    for (let i = 0; i < 5_000; i++) if (i % 1_000 !== 7) slots.release(`k${i}`);
    assert.equal(slots.snapshot().default?.queued, 5);
    for (const key of ["holder", "k7", "k1007", "k2007", "k3007"]) slots.release(key);
    assert.deepEqual(keys, ["k7", "k1007", "k2007", "k3007", "k4007"]);
  });

  it("serves the queue again after onGranted threw", () => {
    const slots = new PoolSlots({ default: 1 }, counter(), () => 0);
    slots.request("a", "default", 1);
    slots.request("b", "default", 1);
    slots.request("c", "default", 1);
    slots.onGranted = () => {
      throw new Error("refused");
    };
    assert.throws(() => slots.release("a"), /refused/);
    const keys = granted(slots);
    slots.release("b");
    assert.deepEqual(keys, ["c"]);
  });

  it("refuses a capacity that is no whole number", () => {
    assert.throws(() => new PoolSlots({ default: 1.5 }, counter(), () => 0), /pool "default"/);
    assert.throws(() => new PoolSlots({ default: -1 }, counter(), () => 0), /pool "default"/);
  });

  it("agrees with the model: capacity, order, and nothing leaks", () => {
    const operation = fc.record({
      key: fc.nat(12),
      slots: fc.integer({ min: 1, max: 5 }),
      ask: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(operation, { maxLength: 80 }),
        (capacity, operations) => {
          const real = new PoolSlots({ default: capacity }, counter(), () => 0);
          const keys = granted(real);
          let held: { key: string; slots: number }[] = [];
          let waiting: { key: string; slots: number }[] = [];
          const expected: string[] = [];
          const used = () => held.reduce((sum, entry) => sum + entry.slots, 0);
          for (const { key: number, slots, ask } of operations) {
            const key = `k${number}`;
            if (ask) {
              const known = [...held, ...waiting].some((entry) => entry.key === key);
              const grant = real.request(key, "default", slots);
              if (known) continue;
              if (slots > capacity) assert.equal(grant.kind, "unsatisfiable");
              else if (waiting.length === 0 && used() + slots <= capacity) {
                assert.equal(grant.kind, "granted");
                held.push({ key, slots });
              } else {
                assert.equal(grant.kind, "queued");
                waiting.push({ key, slots });
              }
            } else {
              real.release(key);
              held = held.filter((entry) => entry.key !== key);
              waiting = waiting.filter((entry) => entry.key !== key);
              while (waiting[0] !== undefined && used() + waiting[0].slots <= capacity) {
                expected.push(waiting[0].key);
                held.push(waiting[0]);
                waiting = waiting.slice(1);
              }
            }
            const { available, in_use, queued, active } = real.snapshot().default!;
            assert.ok(available >= 0);
            assert.deepEqual([in_use, queued, active], [used(), waiting.length, held.length]);
          }
          assert.deepEqual(keys, expected);
        },
      ),
    );
  });
});
