// A node's lease at exact moments: a clock that the test moves, and a database that answers when the test lets it. The
// random moments are the simulation's (test/simulation/cluster.ts).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machineResources } from "../../test/support/machine.ts";
import type { DrainOrder } from "../engine/drain.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import { Membership, NodeRemoved } from "./membership.ts";
import type { NodeLoad, NodeOrder, NodeRecord, NodeRecords, Outage, Renewal, Replaceable } from "./nodes.ts";

const LEASE_MS = 15_000;
const NODE = { nodeId: "n1", name: "one", version: "1", labels: {}, pools: {}, totals: {} };

const settle = () => new Promise((resolve) => setImmediate(resolve));

class Harness {
  nowMs = 1_000_000;
  /** What was done, in order. */
  readonly done: string[] = [];
  readonly log: string[] = [];
  /** Renewals that were sent, to be answered. */
  readonly renewals: PromiseWithResolvers<Renewal | null>[] = [];
  /** What registering meets next; a row refuses it. */
  readonly registering: (Error | NodeRecord | "removed")[] = [];
  readonly registered: { readonly owner: string; readonly replaced: Replaceable }[] = [];
  /** What the end of a lease meets; null: nothing. */
  leaving: Error | null = null;
  ended = Promise.resolve();
  readonly loads: NodeLoad[] = [];
  /** What is asked of the node when it registers. */
  outage: Outage | null = null;
  takeOver = async () => 0;
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];
  #ids = 0;
  readonly membership: Membership;
  readonly work = {
    begin: (owner: string) => void this.done.push(`begin ${owner}`),
    takeOver: () => {
      this.done.push("look");
      return this.takeOver();
    },
    giveUp: (reason: string) => void this.done.push(`give up: ${reason.split(",")[0]}`),
    ended: () => this.ended,
    mayRunUntil: (steadyMs: number) => void this.done.push(`until ${steadyMs - 1_000_000}`),
    drain: ({ deadlineMs, servicesLast, reason }: DrainOrder) =>
      void this.done.push(
        `drain until ${deadlineMs - 1_000_000}${servicesLast ? ", services last" : ""}: ${reason}`,
      ),
    undrain: () => void this.done.push("undrain"),
    jobsLeft: () => ({ services: 2, moved: 7 }),
  };

  constructor() {
    const after = (delayMs: number, run: () => void) => {
      const timer = { atMs: this.nowMs + delayMs, run };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((one) => one !== timer);
      };
    };
    const records: NodeRecords = {
      register: async ({ owner }, _leaseMs, replaced) => {
        this.registered.push({ owner, replaced });
        const met = this.registering.shift();
        if (met instanceof Error) throw met;
        if (met === "removed") return { removed: true };
        return met === undefined ? { outage: this.outage, hasOthers: false } : { taken: met };
      },
      renew: (_node, _leaseMs, load) => {
        this.loads.push(load);
        const renewal = Promise.withResolvers<Renewal | null>();
        this.renewals.push(renewal);
        return renewal.promise;
      },
      leave: async ({ owner }) => {
        if (this.leaving !== null) throw this.leaving;
        this.done.push(`left as ${owner}`);
      },
      present: async () => [],
      living: async () => new Set(),
      order: async (_nodeId, { kind }) => {
        this.done.push(kind satisfies NodeOrder["kind"]);
        return null;
      },
    };
    const say = (_fields: unknown, message: string) => void this.log.push(message);
    this.membership = new Membership({
      node: NODE,
      records,
      leaseMs: LEASE_MS,
      load: () => ({
        resources: machineResources(),
        reserved: {},
        jobsOwned: 0,
        tasksRunning: 0,
        connectedTo: [],
      }),
      newId: () => String(++this.#ids),
      onOthers: () => void this.done.push("others"),
      onEnd: (why) => void this.done.push(`end: ${why}`),
      clock: {
        nowMs: () => this.nowMs,
        steadyMs: () => this.nowMs,
        after,
        soon: (run) => void after(0, run),
      },
      log: { warn: say, error: say },
    });
  }

  /** A node that has just got its first lease. */
  static async joined(): Promise<Harness> {
    const h = new Harness();
    await h.membership.join(h.work, null, []);
    return h;
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    for (;;) {
      await settle();
      const next = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
    }
    this.nowMs = untilMs;
  }

  get timers(): number {
    return this.#timers.length;
  }

  get gaveUp(): boolean {
    return this.done.some((what) => what.startsWith("give up"));
  }
}

const noAnswer = () => new JournalUnavailable("The database does not answer.", "unknown");

describe("a lease", () => {
  test("tells of other nodes with each renewal", async () => {
    const h = await Harness.joined();
    for (const [index, hasOthers] of [false, true, true].entries()) {
      await h.advance(3_000);
      h.renewals[index]!.resolve({ outage: null, hasOthers });
      await h.advance(0);
      assert.equal(h.done.filter((what) => what === "others").length, index);
    }
  });

  test("counts from before its renewal was sent, however late the answer comes (M1)", async () => {
    const h = await Harness.joined();
    assert.deepEqual(h.done, ["until 14000"]);
    await h.advance(3_000);
    await h.advance(6_000);
    h.renewals[0]!.resolve({ outage: null, hasOthers: false });
    await h.advance(0);
    assert.equal(h.done.at(-1), "until 17000");
    await h.advance(3_999);
    assert.equal(h.gaveUp, false);
    await h.advance(1);
    assert.equal(h.gaveUp, true);
  });

  test("that was not renewed in time is given up, and a renewal that was is nothing any more (M2)", async () => {
    const h = await Harness.joined();
    await h.advance(9_999);
    assert.equal(h.gaveUp, false);
    await h.advance(1);
    assert.equal(h.done[1], "give up: The lease of this node was not renewed in time");
    h.renewals[0]!.resolve({ outage: null, hasOthers: false });
    await h.advance(0);
    assert.deepEqual(h.done.slice(2), ["until 24000", "begin n1/2"]);
    assert.match(h.log[0]!, /it stops working, ends its commands, and gives its jobs up/);
  });

  test("is given up when an answer comes before the timers of a program that was stopped", async () => {
    const h = await Harness.joined();
    await h.advance(3_000);
    h.nowMs += 60_000;
    h.renewals[0]!.resolve({ outage: null, hasOthers: false });
    await settle();
    assert.equal(h.gaveUp, true);
  });

  test("is given up at once when who ends its commands says that it is over", async () => {
    const h = await Harness.joined();
    h.membership.check();
    assert.equal(h.gaveUp, false);
    h.nowMs += 14_000;
    h.membership.check();
    assert.equal(h.gaveUp, true);
    h.membership.check();
    assert.equal(h.done.filter((what) => what.startsWith("give up")).length, 1);
  });

  test("is given up at once when the database says that it is over", async () => {
    const h = await Harness.joined();
    await h.advance(3_000);
    h.renewals[0]!.resolve(null);
    await h.advance(0);
    assert.match(h.done[1]!, /give up: The database says/);
  });

  test("is asked for again soon when the database does not answer, which is said once", async () => {
    const h = await Harness.joined();
    await h.advance(3_000);
    for (const sent of [1, 2, 3]) {
      assert.equal(h.renewals.length, sent);
      h.renewals[sent - 1]!.reject(noAnswer());
      await h.advance(1_000);
    }
    assert.deepEqual(h.log, ["the lease of this node cannot be renewed"]);
    h.renewals[3]!.resolve({ outage: null, hasOthers: false });
    await h.advance(0);
    assert.equal(h.done.at(-1), "until 20000");
  });
});

describe("a node that has lost its lease", () => {
  const lost = async () => {
    const h = await Harness.joined();
    await h.membership.start();
    return h;
  };

  test("registers again under a new owner once nothing runs any more, and looks for work (M3)", async () => {
    const h = await lost();
    const { promise, resolve } = Promise.withResolvers<void>();
    h.ended = promise;
    await h.advance(20_000);
    assert.equal(h.registered.length, 1);
    h.done.length = 0;
    resolve();
    await h.advance(0);
    assert.deepEqual(h.registered[1], { owner: "n1/2", replaced: ["n1/1", "n1/2"] });
    assert.equal(h.membership.owner, "n1/2");
    assert.deepEqual(h.done, ["until 34000", "begin n1/2", "look"]);
  });

  test("keeps its last name until it has a new lease, and tries until it has", async () => {
    const h = await lost();
    h.registering.push(noAnswer(), { ...NODE, owner: "n1/x", address: "b:1" } as NodeRecord, noAnswer());
    await h.advance(10_000);
    await h.advance(2_000);
    assert.equal(h.membership.owner, "n1/1");
    await h.advance(1_000);
    assert.equal(h.membership.owner, "n1/2");
    assert.equal(h.registered.length, 5);
    assert.ok(h.log.some((message) => /Node n1 runs already, as one at b:1 \(n1\/x\)/.test(message)));
  });
});

describe("a node", () => {
  test("is refused while another program renews the lease of its id", async () => {
    const h = new Harness();
    const other = { ...NODE, address: null, owner: "n1/x" } as NodeRecord;
    h.registering.push(other, other);
    const refused = assert.rejects(h.membership.join(h.work, null, []), {
      name: "NodeTaken",
      message: /remove node\.json from this home/,
    });
    await h.advance(LEASE_MS + 1_000);
    await refused;
    assert.equal(h.timers, 0);
  });

  test("waits for the end of a lease that a program had which is gone", async () => {
    const h = new Harness();
    h.registering.push({ ...NODE, address: null, owner: "n1/x" } as NodeRecord);
    const joined = h.membership.join(h.work, null, []);
    await h.advance(LEASE_MS);
    assert.equal(h.registered.length, 1);
    await h.advance(1_000);
    await joined;
    assert.deepEqual(h.done, [`until ${16_000 + 14_000}`]);
  });

  test("looks for work each second, once at a time, also after one that failed (M4)", async () => {
    const h = await Harness.joined();
    const looks = () => h.done.filter((what) => what === "look").length;
    h.takeOver = async () => {
      throw noAnswer();
    };
    await h.membership.start();
    assert.equal(looks(), 1);
    const { promise, resolve } = Promise.withResolvers<number>();
    h.takeOver = () => promise;
    await h.advance(1_000);
    assert.equal(looks(), 2);
    // Its lease is lost and had again meanwhile.
    await h.advance(12_000);
    assert.ok(h.done.includes("begin n1/2"));
    assert.equal(looks(), 2);
    resolve(3);
    await h.advance(1_000);
    assert.equal(looks(), 3);
    assert.ok(h.log.includes("open jobs that no living node had were taken over"));
  });

  test("looks for work when another lease is over, and a second later again", async () => {
    const h = await Harness.joined();
    const looks = () => h.done.filter((what) => what === "look").length;
    await h.membership.start();
    await h.advance(500);
    h.membership.lookNow();
    await settle();
    assert.equal(looks(), 2);
    await h.advance(999);
    assert.equal(looks(), 2);
    await h.advance(1);
    assert.equal(looks(), 3);
  });

  test("leaves when the look that is under way has ended", async () => {
    const h = await Harness.joined();
    const look = Promise.withResolvers<number>();
    h.takeOver = () => look.promise;
    void h.membership.start();
    const left = h.membership.leave(true);
    await settle();
    assert.ok(!h.done.some((what) => what.startsWith("left")));
    look.resolve(0);
    await left;
    assert.equal(h.done.at(-1), "left as n1/1");
    assert.equal(h.timers, 0);
  });

  test("ends its lease when it leaves, and does nothing any more", async () => {
    const h = await Harness.joined();
    await h.membership.start();
    await h.membership.leave(true);
    assert.equal(h.done.at(-1), "left as n1/1");
    assert.equal(h.timers, 0);
  });

  test("lets its lease end by itself when something of it may still run", async () => {
    const h = await Harness.joined();
    await h.membership.start();
    await h.membership.leave(false);
    assert.deepEqual(h.done, ["until 14000", "look"]);
    assert.equal(h.timers, 0);
  });
});

/** A node whose renewal is refused, and that is then refused a lease. */
async function refused(met: Error | "removed", leaving: Error | null = null): Promise<Harness> {
  const h = await Harness.joined();
  await h.advance(3_000);
  h.done.length = 0;
  h.registering.push(met);
  h.leaving = leaving;
  h.renewals[0]!.resolve(null);
  await h.advance(0);
  return h;
}

describe("a node that is removed", () => {
  test("is not let in when it starts", async () => {
    const h = new Harness();
    h.registering.push("removed");
    await assert.rejects(h.membership.join(h.work, null, []), NodeRemoved);
    assert.equal(h.timers, 0);
  });

  test("ends its commands and its program when its renewal is refused, and then its lease", async () => {
    const h = await Harness.joined();
    await h.membership.start();
    await h.advance(3_000);
    h.done.length = 0;
    const commands = Promise.withResolvers<void>();
    h.ended = commands.promise;
    h.registering.push("removed");
    h.renewals[0]!.resolve(null);
    await h.advance(0);
    assert.deepEqual(h.done, ["give up: The database says that the lease of this node is over"]);
    commands.resolve();
    await h.advance(0);
    assert.deepEqual(h.done.slice(1), ["left as n1/1", "end: This node was removed from the cluster."]);
    assert.equal(h.timers, 0);
  });

  test("ends its program also when the database does not answer", async () => {
    const h = await refused("removed", noAnswer());
    assert.deepEqual(h.done.slice(1), ["end: This node was removed from the cluster."]);
    assert.equal(h.timers, 0);
  });
});

test("a node whose key is not that of the cluster any more ends its program, and says why", async () => {
  const h = await refused(new Error("The key was replaced."));
  assert.deepEqual(h.done.slice(1), ["left as n1/1", "end: The key was replaced."]);
  assert.equal(h.timers, 0);
});

describe("a node that is drained", () => {
  const asked: Outage = {
    kind: "draining",
    requestedAtMs: 1,
    leftMs: 30_000,
    servicesLast: true,
    isLast: false,
  };

  const drained = async () => {
    const h = await Harness.joined();
    await h.membership.start();
    await h.advance(3_000);
    h.done.length = 0;
    h.renewals[0]!.resolve({ outage: asked, hasOthers: false });
    await h.advance(0);
    return h;
  };

  test("hears of it with its renewal, once, and tells each second how far it is (M5)", async () => {
    const h = await drained();
    assert.deepEqual(h.done, [
      "until 17000",
      "drain until 33000, services last: Node one is being drained and takes no new jobs: ask another node, or wait until it works again.",
    ]);
    assert.equal(h.membership.outage, "draining");
    await h.advance(1_000);
    assert.equal(h.renewals.length, 2);
    h.renewals[1]!.resolve({ outage: { ...asked, leftMs: 29_000 }, hasOthers: false });
    await h.advance(999);
    assert.equal(h.done.filter((what) => what.startsWith("drain")).length, 1);
    assert.deepEqual([h.loads[1]?.servicesOwned, h.loads[1]?.jobsMoved], [2, 7]);
  });

  test("takes nothing over until it is to work again (M4)", async () => {
    const h = await drained();
    await h.advance(999);
    assert.ok(!h.done.includes("look"));
    await h.advance(1);
    h.renewals[1]!.resolve({ outage: null, hasOthers: false });
    await h.advance(1_000);
    assert.ok(h.done.includes("undrain") && h.done.includes("look"));
    assert.equal(h.membership.outage, null);
  });

  test("asks again a second later when the database does not answer", async () => {
    const h = await drained();
    await h.advance(1_000);
    h.renewals[1]!.reject(noAnswer());
    await h.advance(999);
    assert.equal(h.renewals.length, 2);
    await h.advance(1);
    assert.equal(h.renewals.length, 3);
  });

  test("has a new deadline when it is asked again, and is in maintenance when that begins", async () => {
    const h = await drained();
    await h.advance(1_000);
    h.renewals[1]!.resolve({
      outage: { ...asked, requestedAtMs: 2, leftMs: 5_000, servicesLast: false },
      hasOthers: false,
    });
    await h.advance(0);
    assert.match(h.done.at(-1)!, /^drain until 9000: /);
    await h.advance(1_000);
    h.renewals[2]!.resolve({ outage: { ...asked, requestedAtMs: 2, kind: "maintenance" }, hasOthers: false });
    await h.advance(0);
    assert.match(h.done.at(-1)!, /is in maintenance and takes no new jobs/);
  });

  test("works on under its next owner as it was asked to, and not as it was before", async () => {
    const h = await drained();
    h.outage = asked;
    await h.advance(20_000);
    assert.ok(h.done.includes("begin n1/2"));
    assert.ok(!h.done.includes("look"));
    assert.equal(h.done.filter((what) => what.startsWith("drain")).length, 1);
    assert.equal(h.membership.outage, "draining");
  });

  test("takes nothing on when it begins in maintenance", async () => {
    const h = new Harness();
    h.outage = { ...asked, kind: "maintenance", leftMs: -5 };
    await h.membership.join(h.work, null, []);
    await h.membership.start();
    assert.match(h.done[1]!, /^drain until -5, services last: Node one is in maintenance/);
    assert.ok(!h.done.includes("look"));
  });

  const END = "end: This node leaves the cluster, as it was asked to.";

  test("ends its program once it is told that nothing is left", async () => {
    const h = await drained();
    assert.ok(!h.done.includes(END));
    await h.advance(1_000);
    h.renewals[1]!.resolve({ outage: { ...asked, isLast: true }, hasOthers: false });
    await h.advance(0);
    assert.equal(h.done.at(-1), END);
  });

  test("follows at once what it was asked through itself, also while a renewal is under way", async () => {
    const h = await Harness.joined();
    await h.advance(3_000);
    const ordered = h.membership.order({ kind: "undrain" });
    await settle();
    assert.equal(h.renewals.length, 1);
    h.renewals[0]!.resolve({ outage: null, hasOthers: false });
    await settle();
    assert.equal(h.renewals.length, 2);
    h.renewals[1]!.resolve({ outage: asked, hasOthers: false });
    await ordered;
    assert.equal(h.membership.outage, "draining");
    await h.advance(1_000);
    assert.equal(h.renewals.length, 3, "one renewal at a time");
  });
});
