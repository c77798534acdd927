// The rows of nodes, and who may take over whose jobs.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { sql } from "kysely";
import pg from "pg";
import { changes, next } from "../../../test/support/journal-records.ts";
import { machineResources } from "../../../test/support/machine.ts";
import { inPostgres, returnPostgres, takePostgres } from "../../../test/support/postgres.ts";
import type { NodeWrites } from "../../cluster/node-writes.ts";
import { type NodeEntry, type NodePosition, nodeOf } from "../../cluster/nodes.ts";
import { NOW } from "../sql/database-clock.ts";
import { nodeWrites } from "../sql/node-writes.ts";
import { configOf } from "./connection.ts";
import { openPostgres, type PostgresDatabase } from "./database.ts";
import { expectedNodes } from "./expected-nodes.ts";
import { PostgresJournal } from "./journal.ts";
import { READS } from "./journal-statements.ts";
import { AWAY_MS_MAX, forgetNodes, nodeReads, PostgresNodes } from "./nodes.ts";

const LIMIT_MS = 10_000;
const LEASE_MS = 60_000;
const load = {
  reserved: { default: { in_use: 2, queued: 5, active: 1 } },
  resources: machineResources(),
  jobsOwned: 3,
  tasksRunning: 1,
  connectedTo: [],
  servicesOwned: 2,
  jobsMoved: 5,
};
const working = { outage: null, hasOthers: false };
const amongOthers = { ...working, hasOthers: true };

function entry(owner: string, more: Partial<NodeEntry> = {}): NodeEntry {
  const nodeId = nodeOf(owner)!;
  const said = { labels: { zone: "a" }, pools: { default: 4 }, totals: { cpus: 2 } };
  return { nodeId, owner, name: nodeId, address: `${nodeId}:1`, version: "1.0.0", ...said, ...more };
}

interface Under {
  readonly url: string;
  readonly database: PostgresDatabase;
  readonly journal: PostgresJournal;
  readonly nodes: PostgresNodes;
  /** Ends an owner's lease so many milliseconds ago. */
  over(owner: string, agoMs?: number): Promise<void>;
  submit(jobId: string, owner: string, recoveryPolicy: string): Promise<void>;
}

function onPostgres(sentence: string, body: (under: Under) => Promise<void>): void {
  test(sentence, async () => {
    const url = await takePostgres();
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    const nodes = new PostgresNodes(database, LIMIT_MS, () => null);
    try {
      await body({
        url,
        database,
        journal,
        nodes,
        over: (owner, agoMs = 0) =>
          inPostgres(
            url,
            `UPDATE nodes SET lease_until = ${NOW} - ${agoMs}
              WHERE owner = '${owner}'`,
          ),
        async submit(jobId, owner, recoveryPolicy) {
          const { insert } = changes({ jobId });
          await journal.commit([
            changes({ jobId, owner, insert: { ...insert!, runId: `run_${jobId}`, recoveryPolicy } }),
          ]);
        },
      });
    } finally {
      await nodes.close();
      await journal.close();
      await database.close();
      await returnPostgres(url);
    }
  });
}

onPostgres("a node is as it has said, and is living until its lease is over", async ({ nodes, over }) => {
  assert.deepEqual(await nodes.register(entry("a/1"), LEASE_MS, []), working);
  assert.deepEqual(await nodes.register(entry("b/1", { address: null }), LEASE_MS, []), amongOthers);
  assert.deepEqual(await nodes.renew(entry("a/1"), LEASE_MS, load), amongOthers);
  const [a, b] = await nodes.present();
  const { startedAtMs, heartbeatAtMs, leaseUntilMs, leaseLeftMs, ...said } = a!;
  const { connectedTo: _, ...renewed } = load;
  assert.deepEqual(said, {
    ...entry("a/1"),
    ...renewed,
    status: "ready",
    connectedNodes: [],
    drainUntilMs: null,
    maintenanceReason: null,
  });
  assert.ok(leaseUntilMs >= startedAtMs + LEASE_MS && heartbeatAtMs >= startedAtMs);
  assert.ok(leaseLeftMs > 0 && leaseLeftMs <= leaseUntilMs - heartbeatAtMs);
  assert.deepEqual([b?.nodeId, b?.address, b?.jobsOwned], ["b", null, 0]);
  assert.deepEqual(await nodes.living(), new Set(["a/1", "b/1"]));
  await over("b/1");
  assert.deepEqual(await nodes.living(), new Set(["a/1"]));
  assert.deepEqual(
    (await nodes.present()).map(({ status }) => status),
    ["ready", "lost"],
  );
});

onPostgres(
  "a node's connections are the living nodes at their addresses, until its next renewal",
  async ({ nodes, over }) => {
    for (const owner of ["a/1", "c/1", "b/1", "d/1"]) await nodes.register(entry(owner), LEASE_MS, []);
    await over("d/1");
    const connectedNodes = async () => (await nodes.present())[0]?.connectedNodes;
    const renew = (connectedTo: readonly string[]) =>
      nodes.renew(entry("a/1"), LEASE_MS, { ...load, connectedTo });
    await renew(["c:1", "d:1", "a:1", "nobody:1", "b:1"]);
    assert.deepEqual(await connectedNodes(), ["b", "c"]);
    await renew(["c:1"]);
    assert.deepEqual(await connectedNodes(), ["c"]);
    await nodes.register(entry("a/2"), LEASE_MS, "any");
    assert.deepEqual(await connectedNodes(), []);
  },
);

onPostgres(
  "nodes are read by name, a page at a time, and one by its id",
  async ({ database, nodes, over }) => {
    const reads = nodeReads(database);
    const named = { "n1/1": "b", "n2/1": "a", "n3/1": "b", "n4/1": "c" };
    for (const [owner, name] of Object.entries(named))
      await nodes.register(entry(owner, { name }), LEASE_MS, []);
    await over("n1/1");
    await nodes.leave(entry("n4/1"));
    const ids = (rows: readonly { readonly nodeId: string }[]) => rows.map(({ nodeId }) => nodeId);
    const first = await reads.page(2, null);
    assert.deepEqual(ids(first), ["n2", "n1"]);
    assert.deepEqual(ids(await reads.page(2, first[1]!)), ["n3", "n4"]);
    assert.deepEqual(ids(await reads.page(2, { name: "c", nodeId: "n4" })), []);
    const found = await reads.find("n2");
    // It is shorter by then.
    assert.deepEqual({ ...found, leaseLeftMs: 0 }, { ...first[0], leaseLeftMs: 0 });
    assert.equal((await reads.find("n1"))?.status, "lost");
    assert.equal((await reads.find("n4"))?.status, "left");
    assert.equal(await reads.find("n5"), null);
    assert.deepEqual(ids(await reads.livingFirst(3)), ["n2", "n3", "n1"]);
  },
);

onPostgres("a lease is renewed by its owner only, and only while it is valid", async ({ nodes, over }) => {
  await nodes.register(entry("a/1"), LEASE_MS, []);
  assert.equal(await nodes.renew(entry("a/2"), LEASE_MS, load), null);
  assert.equal(await nodes.renew(entry("b/1"), LEASE_MS, load), null);
  await over("a/1");
  assert.equal(await nodes.renew(entry("a/1"), LEASE_MS, load), null);
  assert.deepEqual(await nodes.living(), new Set());
});

onPostgres(
  "a valid lease is replaced if the caller asks for it, and else returned",
  async ({ nodes, over }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    const refused = await nodes.register(entry("a/2"), LEASE_MS, ["a/0"]);
    assert.equal("taken" in refused && refused.taken.owner, "a/1");
    assert.deepEqual(await nodes.living(), new Set(["a/1"]));
    assert.deepEqual(await nodes.register(entry("a/2"), LEASE_MS, ["a/0", "a/1"]), working);
    assert.deepEqual(await nodes.living(), new Set(["a/2"]));
    assert.deepEqual(await nodes.register(entry("a/3"), LEASE_MS, "any"), working);
    await over("a/3");
    assert.deepEqual(await nodes.register(entry("a/4"), LEASE_MS, []), working);
  },
);

onPostgres("a node that leaves is not living, and says why", async ({ nodes, database }) => {
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await nodes.leave(entry("a/0"));
  assert.deepEqual(await nodes.living(), new Set(["a/1"]));
  await nodes.leave(entry("a/1"));
  assert.deepEqual(await nodes.living(), new Set());
  assert.deepEqual(await nodes.present(), []);
  assert.equal((await nodeReads(database).find("a"))?.status, "left");
});

onPostgres(
  "a node that is away for 30 days is forgotten, unless it has open jobs or is in maintenance",
  async (under) => {
    const { nodes, database, over, submit } = under;
    for (const owner of ["living/1", "lost/1", "left/1", "new/1", "busy/2", "kept/1"])
      await nodes.register(entry(owner), LEASE_MS, []);
    await submit("open", "busy/1", "cluster_recover");
    await submit("others", "lost0/1", "cluster_recover");
    await nodes.order("kept", { kind: "begin_maintenance", reason: null });
    await nodes.leave(entry("left/1"));
    await over("new/1", AWAY_MS_MAX - LEASE_MS);
    for (const owner of ["lost/1", "left/1", "busy/2", "kept/1"]) await over(owner, AWAY_MS_MAX);
    await forgetNodes(database);
    const known = (await nodeReads(database).page(100, null)).map(({ nodeId }) => nodeId);
    assert.deepEqual(known, ["busy", "kept", "living", "new"]);
  },
);

onPostgres(
  "a call settles when the server does not answer, and the next one has a connection",
  async (under) => {
    const silent = createServer((socket) => void socket.resume());
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { port: number };
    const nodes = new PostgresNodes(
      { config: configOf(`postgres://x@127.0.0.1:${port}/x`), server: "silent" },
      50,
      () => null,
    );
    await assert.rejects(nodes.living(), { name: "JournalUnavailable", outcome: "unknown" });
    await assert.rejects(nodes.living(), { name: "JournalUnavailable" });
    await new Promise((resolve) => silent.close(resolve));
    await nodes.close();
    await under.nodes.register(entry("a/1"), LEASE_MS, []);
    await inPostgres(
      under.url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%nodes%' AND pid <> pg_backend_pid()",
    );
    await under.nodes.living().catch(() => {});
    assert.deepEqual(await under.nodes.living(), new Set(["a/1"]));
  },
);

onPostgres(
  "a connection that the server has ended is not used again",
  async ({ database: { config, server } }) => {
    const ended = Object.assign(new Error("terminating connection"), { code: "57P01" });
    let made = 0;
    class Ending extends pg.Client {
      // What comes when the server ends it is told before its end.
      override query = (++made === 1 ? () => Promise.reject(ended) : super.query) as pg.Client["query"];
    }
    const nodes = new PostgresNodes({ config: { ...config, Client: Ending }, server }, LIMIT_MS, () => null);
    try {
      await assert.rejects(nodes.living(), { name: "JournalUnavailable" });
      assert.deepEqual(await nodes.living(), new Set());
    } finally {
      await nodes.close();
    }
  },
);

onPostgres(
  "a statement that the server refuses is unavailable, and costs no connection",
  async ({ url, database, nodes }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    const connections = async () =>
      (
        await database.read<{ pid: number }>(
          "SELECT pid FROM pg_stat_activity WHERE query LIKE '%nodes%' AND pid <> pg_backend_pid() ORDER BY pid",
          [],
        )
      ).map(({ pid }) => pid);
    const before = await connections();
    assert.equal(before.length, 1);
    await inPostgres(url, "ALTER TABLE nodes RENAME COLUMN jobs_moved TO jobs_gone");
    await assert.rejects(nodes.renew(entry("a/1"), LEASE_MS, load), {
      name: "JournalUnavailable",
      message: /refuses a statement.*jobs_moved/,
      outcome: "not_written",
    });
    await inPostgres(url, "ALTER TABLE nodes RENAME COLUMN jobs_gone TO jobs_moved");
    assert.deepEqual(await nodes.renew(entry("a/1"), LEASE_MS, load), working);
    assert.deepEqual(await connections(), before);
  },
);

onPostgres("a text that PostgreSQL cannot hold is stored without what it cannot hold", async ({ nodes }) => {
  await nodes.register(entry("a/1", { name: "a\0" }), LEASE_MS, []);
  const row = await nodes.order("a", { kind: "begin_maintenance", reason: "disk\0" });
  assert.deepEqual([row?.name, row?.maintenanceReason], ["a\ufffd", "disk\ufffd"]);
});

onPostgres(
  "jobs of a living owner are nobody else's to take over",
  async ({ nodes, journal, submit, over }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    await submit("j-1", "a/1", "cluster_recover");
    assert.deepEqual(await journal.claim("b/1", 10), []);
    await over("a/1");
    assert.deepEqual(await journal.claim("b/1", 10), ["j-1"]);
    assert.equal((await journal.load("j-1"))?.epoch, 2);
  },
);

onPostgres(
  "jobs that their own node is to carry on wait for it a minute, others go on elsewhere at once",
  async ({ nodes, journal, submit, over }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    for (const mode of ["local_restart", "cluster_recover", "manual_recover"])
      await submit(mode, "a/1", mode);
    await over("a/1", 59_000);
    assert.deepEqual(await journal.claim("b/1", 10), ["cluster_recover", "manual_recover"]);
    await over("a/1", 60_000);
    assert.deepEqual(await journal.claim("c/1", 1), ["cluster_recover"], "b is not living");
    assert.deepEqual(await journal.claim("b/1", 10), ["cluster_recover", "local_restart"]);
  },
);

onPostgres("a node that has started again takes its own jobs", async ({ nodes, journal, submit }) => {
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await submit("j-1", "a/1", "local_restart");
  await nodes.register(entry("a/2"), LEASE_MS, "any");
  assert.deepEqual(await journal.claim("b/1", 10), [], "they are that node's own");
  assert.deepEqual(await journal.claim("a/2", 10), ["j-1"]);
});

onPostgres(
  "of a node that has started again, others take nothing before the lease is over that it has replaced",
  async ({ url, nodes, journal, submit }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    await submit("j-1", "a/1", "cluster_recover");
    await submit("j-2", "a/1", "cluster_recover");
    await nodes.register(entry("a/2"), LEASE_MS, "any");
    await nodes.register(entry("a/2"), LEASE_MS, "any");
    assert.deepEqual(await journal.claim("b/1", 10), []);
    assert.deepEqual(await journal.claim("a/2", 1), ["j-1"], "the node itself waits for its attempts");
    // As if the time of the first lease had passed.
    await inPostgres(url, `UPDATE nodes SET former_until = former_until - ${LEASE_MS}`);
    assert.deepEqual(await journal.claim("b/1", 10), ["j-2"], "the node's present lease is another owner's");
    await nodes.register(entry("a/3"), LEASE_MS, "any");
    assert.deepEqual(await journal.claim("b/1", 10), [], "the next lease is waited for too");
  },
);

onPostgres("of a node that has left and started again, others take everything at once", async (under) => {
  const { nodes, journal, submit } = under;
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await submit("j-1", "a/1", "cluster_recover");
  await nodes.leave(entry("a/1"));
  await nodes.register(entry("a/2"), LEASE_MS, []);
  assert.deepEqual(await journal.claim("b/1", 10), ["j-1"]);
});

onPostgres(
  "a job that was handed over is anybody's at once, also while its node lives, and whatever its mode is",
  async ({ nodes, journal, submit }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    await submit("j-1", "a/1", "local_restart");
    await submit("j-2", "a/1", "local_restart");
    const last = next(1, { jobId: "j-1", owner: "a/1", isHandedOver: true });
    assert.deepEqual(await journal.commit([last]), { lost: [], unwritable: [] });
    assert.deepEqual(await journal.claim("b/1", 10), ["j-1"]);
  },
);

const drain = { kind: "drain", withinMs: 30_000, servicesLast: false } as const;

/** What is asked of the node, as it learns of it. */
async function outageOf(nodes: PostgresNodes, owner: string) {
  return (await nodes.renew(entry(owner), LEASE_MS, load))?.outage;
}

onPostgres(
  "a node that is drained hears of it, and is drained until somebody ends that",
  async ({ nodes }) => {
    await nodes.register(entry("a/1"), LEASE_MS, []);
    assert.equal(await nodes.order("nobody", drain), null);
    const row = await nodes.order("a", drain);
    assert.equal(row?.status, "draining");
    const { leftMs, requestedAtMs, ...outage } = (await outageOf(nodes, "a/1"))!;
    assert.deepEqual(outage, { kind: "draining", servicesLast: false, isLast: false });
    assert.ok(leftMs > 0 && leftMs <= 30_000);
    assert.equal(row?.drainUntilMs, requestedAtMs + 30_000);
    assert.deepEqual(await nodes.living(), new Set(["a/1"]), "it is alive");
    const later = await nodes.order("a", { ...drain, withinMs: 60_000, servicesLast: true });
    assert.ok(later!.drainUntilMs! >= requestedAtMs + 60_000);
    assert.equal((await outageOf(nodes, "a/1"))?.servicesLast, true);
    assert.equal((await nodes.order("a", { kind: "undrain" }))?.status, "ready");
    assert.equal(await outageOf(nodes, "a/1"), null);
  },
);

onPostgres(
  "a drain goes on under the same program's next lease, and ends with the program",
  async (under) => {
    const { nodes } = under;
    await nodes.register(entry("a/1"), LEASE_MS, []);
    await nodes.order("a", drain);
    await under.over("a/1");
    const again = await nodes.register(entry("a/2"), LEASE_MS, ["a/1", "a/2"]);
    assert.equal("outage" in again && again.outage?.kind, "draining");
    assert.deepEqual(await nodes.register(entry("a/3"), LEASE_MS, "any"), working);
    await nodes.order("a", drain);
    await under.over("a/3");
    assert.deepEqual(await nodes.register(entry("a/4"), LEASE_MS, []), working);
  },
);

/** In a transaction of its own. */
function change<Result>(
  { transaction }: PostgresDatabase,
  make: (writes: NodeWrites) => Promise<Result>,
): Promise<Result> {
  return transaction((db) => make(nodeWrites(db)));
}

onPostgres("a node that is to end hears of it once, and another program of it does not", async (under) => {
  const { nodes, database, over } = under;
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await nodes.order("a", drain);
  await change(database, (writes) => writes.end("a"));
  assert.equal((await outageOf(nodes, "a/1"))?.isLast, true);
  const again = await nodes.register(entry("a/2"), LEASE_MS, ["a/1"]);
  assert.equal("outage" in again && again.outage?.isLast, true);
  assert.deepEqual(await nodes.register(entry("a/3"), LEASE_MS, "any"), working);
  await nodes.order("a", drain);
  assert.equal((await outageOf(nodes, "a/3"))?.isLast, false);
  await change(database, (writes) => writes.end("a"));
  await nodes.order("a", { kind: "undrain" });
  await nodes.order("a", drain);
  assert.equal((await outageOf(nodes, "a/3"))?.isLast, false, "it was taken back");
  await over("a/3");
  await change(database, (writes) => writes.end("a"));
  assert.deepEqual(await nodes.present(), [], "a lost one has left");
});

onPostgres("a node that was removed gets no lease, and its jobs wait for it no longer", async (under) => {
  const { nodes, journal, database, submit, over } = under;
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await submit("j-1", "a/1", "local_restart");
  await change(database, (writes) => writes.remove("a"));
  assert.equal(await nodes.renew(entry("a/1"), LEASE_MS, load), null);
  assert.deepEqual(await nodes.register(entry("a/2"), LEASE_MS, ["a/1"]), { removed: true });
  assert.deepEqual(await nodes.register(entry("a/2"), LEASE_MS, "any"), { removed: true });
  assert.deepEqual(await journal.claim("b/1", 10), [], "its commands may run until its lease is over");
  await over("a/1");
  assert.deepEqual(await journal.claim("b/1", 10), ["j-1"]);
  await over("a/1", AWAY_MS_MAX + 1);
  await forgetNodes(database);
  assert.equal((await nodeReads(database).find("a"))?.status, "left", "it is known when it comes back");
});

onPostgres("a node of a name that no other has is expected, with one token at a time", async (under) => {
  const { nodes, database } = under;
  const expected = expectedNodes(database);
  const expect = (nodeId: string) =>
    change(database, (writes) => writes.expect(nodeId, { name: "x", labels: {}, verifier: "00" }, 60_000));
  const isNamed = () => change(database, (writes) => writes.isNamed("x"));
  const [before] = await database.read<{ now: number }>(`SELECT ${NOW} AS now`, []);
  assert.ok((await expect("node_1")) >= before!.now + 60_000);
  await expected.use("node_1", "00", "joiner");
  await Promise.all([expect("node_2"), expect("node_3")]);
  const found = await Promise.all(["node_1", "node_2", "node_3"].map((nodeId) => expected.find(nodeId)));
  assert.deepEqual([found[0], found.filter((node) => node !== null).length], [null, 1]);
  const nodeId = found[1] === null ? "node_3" : "node_2";
  assert.ok(await expected.use(nodeId, "00", "another joiner"), "its token was not used");

  assert.equal(await isNamed(), false);
  await nodes.register(entry("node_1/1", { name: "x" }), LEASE_MS, []);
  await nodes.leave(entry("node_1/1"));
  assert.equal(await isNamed(), true, "it may come again");
  await change(database, (writes) => writes.remove("node_1"));
  assert.equal(await isNamed(), false);
  await expect("node_4");
  assert.deepEqual(await nodes.register(entry("node_1/2", { name: "x" }), LEASE_MS, "any"), {
    removed: true,
  });
});

onPostgres("a name is that of nodes which have not left, if there is one", async ({ nodes, database }) => {
  await nodes.register(entry("y/1"), LEASE_MS, []);
  const page = async (limit: number, after: NodePosition | null = null) =>
    (await nodeReads(database).page(limit, after, "x")).map(({ nodeId }) => nodeId);
  const named = () => page(10);
  const here = (owner: string) => nodes.register(entry(owner, { name: "x" }), LEASE_MS, []);
  const leave = (owner: string) => nodes.leave(entry(owner));
  const remove = (nodeId: string) => change(database, (writes) => writes.remove(nodeId));
  for (const owner of ["a/1", "b/1", "c/1", "d/1"]) await here(owner);
  assert.deepEqual(await named(), ["a", "b", "c", "d"]);
  assert.deepEqual([await page(2), await page(1, { name: "x", nodeId: "b" })], [["a", "b"], ["c"]]);
  await leave("a/1");
  await remove("b");
  assert.deepEqual(await named(), ["c", "d"]);
  for (const owner of ["c/1", "d/1"]) await leave(owner);
  assert.deepEqual(await named(), ["a", "c", "d"]);
  for (const nodeId of ["c", "d", "a"]) await remove(nodeId);
  await database.transaction((db) =>
    sql`UPDATE nodes SET removed_at = removed_at + 1000 WHERE node_id = 'c'`.execute(db),
  );
  assert.deepEqual(await named(), ["c"]);
});

onPostgres("jobs of a lost owner whose node is drained wait for it no longer", async (under) => {
  const { nodes, journal, submit } = under;
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await submit("j-1", "a/1", "local_restart");
  await under.over("a/1");
  await nodes.register(entry("a/2"), LEASE_MS, ["a/1", "a/2"]);
  assert.deepEqual(await journal.claim("b/1", 10), []);
  await nodes.order("a", drain);
  assert.deepEqual(await journal.claim("b/1", 10), ["j-1"]);
});

onPostgres("maintenance is drained to begin with, and goes on in the next program", async (under) => {
  const { nodes } = under;
  await nodes.register(entry("a/1"), LEASE_MS, []);
  const row = await nodes.order("a", { kind: "begin_maintenance", reason: "new disk" });
  assert.deepEqual([row?.status, row?.maintenanceReason], ["maintenance", "new disk"]);
  const asked = await outageOf(nodes, "a/1");
  assert.ok(asked!.leftMs > 290_000);
  assert.equal((await nodes.order("a", { kind: "undrain" }))?.status, "maintenance");
  const named = await nodes.order("a", { kind: "begin_maintenance", reason: null });
  assert.equal(named?.drainUntilMs, row?.drainUntilMs, "asked again it has its deadline");
  await nodes.leave(entry("a/1"));
  assert.deepEqual(await nodes.present(), []);
  const again = await nodes.register(entry("a/2"), LEASE_MS, "any");
  assert.deepEqual("outage" in again && again.outage?.kind, "maintenance");
  assert.equal((await nodes.present())[0]?.status, "maintenance");
  assert.equal((await nodes.order("a", { kind: "end_maintenance" }))?.status, "ready");
  assert.equal(await outageOf(nodes, "a/2"), null);
});

onPostgres(
  "a node with a key that was replaced while it was away gets no lease",
  async ({ database, url }) => {
    let keyId = "old";
    const nodes = new PostgresNodes(database, LIMIT_MS, () => keyId);
    await inPostgres(url, "INSERT INTO cluster (id, sealing_key_id, node_secret) VALUES (1, 'new', '')");
    const register = () => nodes.register(entry("a/1"), LEASE_MS, "any");
    await assert.rejects(register(), { name: "StoreUnusable", message: /another secret key/ });
    assert.deepEqual(await nodes.present(), []);
    keyId = "new";
    assert.deepEqual(await register(), working);
    await nodes.close();
  },
);

onPostgres("a program that the schema admits no longer gets no lease", async ({ url, nodes, over }) => {
  await nodes.register(entry("a/1"), LEASE_MS, []);
  await inPostgres(url, "UPDATE schema_admits SET oldest = '9001-later.sql', version = '7.1.0'");
  try {
    assert.deepEqual(await nodes.renew(entry("a/1"), LEASE_MS, load), working);
    await over("a/1");
    await assert.rejects(nodes.register(entry("a/2"), LEASE_MS, ["a/1"]), {
      name: "StoreUnusable",
      message: /is for Troupe 7\.1\.0 and newer/,
    });
  } finally {
    await inPostgres(url, "UPDATE schema_admits SET oldest = '', version = '0.1.0'");
  }
});

onPostgres("nodes that take over at once never take the same job", async ({ database, journal, submit }) => {
  const jobIds = Array.from({ length: 40 }, (_, i) => `j-${String(i).padStart(2, "0")}`);
  for (const jobId of jobIds) await submit(jobId, `dead-${jobId}/1`, "cluster_recover");
  const nodes = new PostgresNodes(database, LIMIT_MS, () => null);
  const claimants = ["a/1", "b/1", "c/1"];
  const journals = claimants.map(() => new PostgresJournal(database));
  for (const owner of claimants) await nodes.register(entry(owner), LEASE_MS, []);
  const taken: string[] = [];
  for (let before = -1; before < taken.length; ) {
    before = taken.length;
    const claims = await Promise.all(journals.map((one, i) => one.claim(claimants[i]!, 5)));
    taken.push(...claims.flat());
  }
  assert.deepEqual(taken.toSorted(), jobIds);
  for (const jobId of jobIds) assert.equal((await journal.load(jobId))?.epoch, 2);
  await Promise.all([...journals, nodes].map((one) => one.close()));
});

/** A journal for which the database's clock stands at what is set with `moveTo`. */
async function withStillClock(
  url: string,
  use: (journal: PostgresJournal, moveTo: (timeMs: number) => Promise<void>) => Promise<void>,
): Promise<void> {
  const moveTo = (timeMs: number) =>
    inPostgres(
      url,
      `CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql
        AS 'SELECT to_timestamp(${timeMs} / 1000.0)'`,
    );
  await moveTo(0);
  const own = new URL(url);
  own.searchParams.set("options", "-c search_path=public,pg_catalog");
  const database = await openPostgres(own.href);
  const journal = new PostgresJournal(database);
  try {
    await use(journal, moveTo);
  } finally {
    await journal.close();
    await database.close();
    await inPostgres(url, "DROP FUNCTION public.clock_timestamp()");
  }
}

onPostgres(
  "what a node has lost falls to the others by their free slots, and later to anybody",
  async (under) => {
    const { url, nodes, submit, over } = under;
    const jobIds = Array.from({ length: 300 }, (_, i) => `j-${i}`);
    await nodes.register(entry("dead/1"), LEASE_MS, []);
    for (const jobId of jobIds) await submit(jobId, "dead/1", "cluster_recover");
    await nodes.register(entry("busy/1", { pools: { default: 8, gpu: 1 } }), LEASE_MS, []);
    await nodes.register(entry("idle/1", { pools: { default: 4 } }), LEASE_MS, []);
    await nodes.register(entry("drained/1", { pools: { default: 100 } }), LEASE_MS, []);
    await nodes.order("drained", { kind: "drain", withinMs: 1_000, servicesLast: false });
    const reserved = {
      default: { in_use: 7, queued: 9, active: 7 },
      gpu: { in_use: 0, queued: 0, active: 0 },
    };
    await nodes.renew(entry("busy/1"), LEASE_MS, { ...load, reserved });
    await over("dead/1");
    const endMs = (await nodes.present()).find(({ nodeId }) => nodeId === "dead")!.leaseUntilMs;
    await withStillClock(url, async (journal, moveTo) => {
      await moveTo(endMs - 1);
      assert.deepEqual(await journal.claim("busy/1", 300), []);
      await moveTo(endMs);
      const busy = await journal.claim("busy/1", 300);
      assert.ok(busy.length > 80 && busy.length < 120, `${busy.length} of 300 for 2 of 6 free slots`);
      const idle = await journal.claim("idle/1", 100);
      await moveTo(endMs + 1_499);
      assert.deepEqual(await journal.claim("busy/1", 300), []);
      await moveTo(endMs + 1_500);
      const later = await journal.claim("busy/1", 300);
      assert.deepEqual([...busy, ...idle, ...later].toSorted(), jobIds.toSorted());
    });
  },
);

onPostgres("looking for jobs to take over reads no more than an index entry per owner", async (under) => {
  const { database, submit } = under;
  for (let i = 0; i < 50; i++) await submit(`j-${i}`, "a/1", "cluster_recover");
  await under.nodes.register(entry("a/1"), LEASE_MS, []);
  await inPostgres(under.url, "ANALYZE jobs");
  const read = async (text: string) => {
    const explained = text.replaceAll("$1", "'b/1'");
    const rows = await database.read<{ "QUERY PLAN": string }>(
      `EXPLAIN (ANALYZE, COSTS OFF) ${explained}`,
      [],
    );
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  };
  const plan = await read(READS.claimable);
  assert.match(plan, /jobs_owner/);
  const ofJobs = plan.split("\n").filter((line) => /on jobs/.test(line));
  for (const line of ofJobs) assert.match(line, /Index.*jobs_owner|never executed/);
});
