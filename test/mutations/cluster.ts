// Faults of nodes that share a database: of leases, of taking over and of giving up.

import type { Mutation } from "./mutation.ts";

const givingUp = ["src/engine/giving-up.test.ts"];

const engine: readonly Mutation[] = [
  {
    fault: "a command that a lost job has let go of runs on",
    file: "src/engine/commit-barrier.ts",
    search: "for (const ref of job.draft.effects.stops) runner.stop(ref);",
    replacement: "",
    tests: ["src/engine/job.test.ts"],
  },
  {
    fault: "what a batch under way lets go of runs on when jobs are given up",
    file: "src/engine/commit-barrier.ts",
    search: "for (const { effects } of batch.parts) this.#act(effects, true);",
    replacement: "",
    tests: givingUp,
  },
  {
    fault: "what a commit caused is done after its jobs were given up",
    file: "src/engine/commit-barrier.ts",
    search: "const value = await attempt();\n        if (givenUp !== this.#givenUp) return await never();",
    replacement: "const value = await attempt();",
    tests: givingUp,
  },
  {
    fault: "a batch that was given up is sent again",
    file: "src/engine/commit-barrier.ts",
    search: "|| givenUp !== this.#givenUp) return await never();",
    replacement: ") return await never();",
    tests: givingUp,
  },
  {
    fault: "what is stopped waits for a commit to write its last output",
    file: "src/engine/commit-barrier.ts",
    search: "    pending.take();\n    const batch",
    replacement: "    const batch",
    tests: givingUp,
  },
  {
    fault: "a job is held that was read before all jobs were given up",
    file: "src/engine/engine.ts",
    search: "this.#worksAs(owner) && this.#stopReason === null;",
    replacement: "this.#stopReason === null;",
    tests: givingUp,
  },
  {
    fault: "a stopped engine takes over further jobs",
    file: "src/engine/engine.ts",
    search: "this.#worksAs(owner) && this.#stopReason === null;",
    replacement: "this.#worksAs(owner);",
    tests: givingUp,
  },
  {
    fault: "jobs are claimed by who cannot go on with them",
    file: "src/engine/recovery.ts",
    search: "while (canGoOn()) {",
    replacement: "for (;;) {",
    tests: givingUp,
  },
  {
    fault: "a job that was given up counts as over",
    file: "src/engine/engine.ts",
    search: "if (this.#absence !== null) throw new EngineUnavailable(this.#absence);",
    replacement: "",
    tests: givingUp,
  },
];

const membership = ["src/cluster/membership.test.ts"];
const nodes = ["test/simulation/nodes.test.ts"];

const leases: readonly Mutation[] = (
  [
    [
      "a lease counts from when its answer came",
      "this.#hold(owner, sentMs);\n    // An answer",
      "this.#hold(owner, clock.steadyMs());\n    // An answer",
      membership,
    ],
    [
      "an answer that comes too late prolongs a lease",
      "    // An answer that came too late (M1).\n    this.check();\n",
      "",
      membership,
    ],
    [
      "a renewal that was sent before the lease was lost brings it back",
      "if (this.#state !== before) return;",
      "",
      membership,
    ],
    [
      "a node works on though the database says that its lease is over",
      "if (renewal === null) {",
      "if (renewal === null && leaseMs < 0) {",
      membership,
    ],
    [
      "a node works on when its lease is over",
      "steadyMs() >= untilMs",
      "steadyMs() >= untilMs + 1e12",
      membership,
    ],
    ["commands run beyond the lease", "(leaseMs * 14) / 15", "(leaseMs * 16) / 15", nodes],
    ["a node registers again while its commands still run", "await work.ended();", "", nodes],
    [
      "a node registers again under the same name",
      "const owner = this.#newOwner();",
      "const { owner } = this;",
      nodes,
    ],
    [
      "a registration whose answer was lost keeps its own node out",
      "[this.#owner, owner]",
      "[this.#owner]",
      membership,
    ],
    [
      "work is taken over once only",
      'if (this.#state.kind !== "member") return;\n    this.#cancelLook =',
      'if (this.#state.kind === "member") return;\n    this.#cancelLook =',
      nodes,
    ],
    ["two looks for work run at once", " || this.#looking !== null) return;", ") return;", membership],
    ["a node leaves while it looks for work", "await this.#looking;\n    if (state", "if (state", membership],
  ] as const
).map(([fault, search, replacement, tests]) => ({
  fault,
  file: "src/cluster/membership.ts",
  search,
  replacement,
  tests,
}));

const claimed: readonly Mutation[] = [
  {
    fault: "a job that was claimed and could not be read at once is nobody's",
    file: "src/engine/engine.ts",
    search: "claimed: this.#claimed,",
    replacement: "claimed: [],",
    tests: nodes,
  },
];

const rows = ["src/store/postgres/nodes.test.ts"];

const postgres: readonly Mutation[] = (
  [
    [
      "jobs of living nodes are taken over",
      "src/store/postgres/journal-statements.ts",
      "nodes.owner = owners.owner THEN nodes.lease_until",
      "nodes.owner = owners.owner THEN 0",
      rows,
    ],
    [
      "jobs of a node that has started again are taken over while others may run its attempts",
      "src/store/postgres/journal-statements.ts",
      "THEN nodes.former_until",
      "THEN 0",
      rows,
    ],
    [
      "the end of a lease that was replaced is not known",
      "src/store/postgres/nodes.ts",
      "greatest(nodes.former_until, nodes.lease_until)",
      "nodes.former_until",
      rows,
    ],
    [
      "a job is taken from the node that is to carry it on",
      "src/store/postgres/journal-statements.ts",
      "nodes.lease_until + ${GRACE_MS} END AS awaited_until",
      "nodes.lease_until END AS awaited_until",
      rows,
    ],
    [
      "the first node that looks takes all that another one has lost",
      "src/store/postgres/journal-statements.ts",
      "const SHARING_MS = 1_500;",
      "const SHARING_MS = 0;",
      rows,
    ],
    [
      "what falls to a node that does not take it waits for it",
      "src/store/postgres/journal-statements.ts",
      "const SHARING_MS = 1_500;",
      "const SHARING_MS = 1e9;",
      rows,
    ],
    [
      "busy nodes take over as much as idle ones",
      "src/store/postgres/journal-statements.ts",
      "greatest(1, slots - used)",
      "greatest(1, 0)",
      rows,
    ],
    [
      "jobs fall to nodes that take nothing on",
      "src/store/postgres/journal-statements.ts",
      " AND maintenance = 0 AND drain_until IS NULL\n",
      "\n",
      rows,
    ],
    [
      "a job that is taken over keeps its epoch",
      "src/store/postgres/journal-statements.ts",
      "epoch = epoch + 1 FROM taken",
      "epoch = epoch FROM taken",
      rows,
    ],
    [
      "two nodes take the same job over",
      "src/store/postgres/journal-statements.ts",
      'free("$2", "FOR UPDATE SKIP LOCKED")',
      'free("$2", "")',
      rows,
    ],
    [
      "a program that the schema admits no longer gets a lease",
      "src/store/postgres/nodes.ts",
      "AND NOT EXISTS (SELECT FROM schema_admits WHERE oldest > $13)",
      "AND $13 <> ''",
      rows,
    ],
    [
      "what older nodes use is removed while they work",
      "src/store/postgres/migrate.ts",
      "if (admits.oldest > before.oldest) await",
      "if (false) await",
      ["test/integration/adjacent-versions.test.ts"],
    ],
    [
      "a lease that is over is renewed",
      "src/store/postgres/nodes.ts",
      "AND owner = $2 AND lease_until > ${NOW} AND removed_at",
      "AND owner = $2 AND removed_at",
      rows,
    ],
    [
      "a lease is renewed by a former owner",
      "src/store/postgres/nodes.ts",
      "AND owner = $2 AND lease_until",
      "AND $2 <> '' AND lease_until",
      rows,
    ],
    [
      "a valid lease of another program is replaced",
      "src/store/postgres/nodes.ts",
      "WHERE (nodes.lease_until <= ${NOW} OR nodes.owner",
      "WHERE (TRUE OR nodes.owner",
      rows,
    ],
    [
      "a refused statement of a lease costs its connection",
      "src/store/postgres/nodes.ts",
      'if (client === null || scopeOf(error) === "passing") this.#drop(connecting);',
      "this.#drop(connecting);",
      rows,
    ],
    [
      "a connection that the server has ended is used again",
      "src/store/postgres/nodes.ts",
      'client === null || scopeOf(error) === "passing"',
      "client === null",
      rows,
    ],
    [
      "a renewal that the database refuses is not made again",
      "src/store/postgres/nodes.ts",
      "throw unavailable(error, this.#server, true);",
      "throw error;",
      rows,
    ],
    [
      "a text that PostgreSQL cannot hold is an error of the node's rows",
      "src/store/postgres/nodes.ts",
      "values: values.map(storable)",
      "values: [...values]",
      rows,
    ],
    [
      "a node that has left is read each second for ever",
      "src/store/postgres/nodes.ts",
      "WHERE nodes.status <> 'left' ORDER",
      "ORDER",
      rows,
    ],
    [
      "a node whose lease is just over is forgotten",
      "src/store/postgres/nodes.ts",
      "${NOW} - ${AWAY_MS_MAX} AND",
      "${NOW} AND",
      rows,
    ],
    [
      "a node is forgotten that is to be in maintenance when it comes back",
      "src/store/postgres/nodes.ts",
      " AND maintenance = 0 AND removed_at",
      " AND removed_at",
      rows,
    ],
    [
      "a node is forgotten that has open jobs",
      "src/store/postgres/nodes.ts",
      "jobs.owner > node_id || '/' AND",
      "FALSE AND",
      rows,
    ],
    [
      "a node is kept for the open jobs of another one",
      "src/store/postgres/nodes.ts",
      "jobs.owner < node_id || '0'",
      "jobs.owner < node_id || '~'",
      rows,
    ],
    [
      "jobs of a claim whose answer was lost are nobody's",
      "src/store/postgres/journal.ts",
      "this.#unsure = { owner, jobIds: rows.map((row) => row.job_id) };",
      "",
      ["src/store/postgres/database.test.ts"],
    ],
  ] as const
).map(([fault, file, search, replacement, tests]) => ({ fault, file, search, replacement, tests }));

const others: readonly Mutation[] = [
  {
    fault: "a node leaves while others may still run its attempts",
    file: "src/cluster/membership.ts",
    search: " || !isClear) return;",
    replacement: ") return;",
    tests: ["src/cluster/membership.test.ts"],
  },
  {
    fault: "a node that was alone never reads of others",
    file: "src/cluster/node-watch.ts",
    search: "if (this.#isIdle && !this.#isStopped) void this.#look();",
    replacement: "",
    tests: ["src/cluster/node-watch.test.ts"],
  },
  {
    fault: "the end of a lease is seen with the next reading only",
    file: "src/cluster/node-watch.ts",
    search: "Math.min(this.#parts.everyMs, ...ends)",
    replacement: "this.#parts.everyMs",
    tests: ["src/cluster/node-watch.test.ts"],
  },
  {
    fault: "what an owner had whose lease is over waits for the next look",
    file: "src/cluster/membership.ts",
    search: "    this.#cancelLook();\n    void this.#look();",
    replacement: "    this.#cancelLook();",
    tests: ["src/cluster/membership.test.ts"],
  },
  {
    fault: "a lost node's attempts are waited for",
    file: "src/cluster/node-watch.ts",
    search: "if (over.length > 0) onOver(over);",
    replacement: "",
    tests: ["src/cluster/node-watch.test.ts"],
  },
  {
    fault: "a copy of a home takes the lease of its original",
    file: "src/store/node-identity.ts",
    search: "known.place === place",
    replacement: "true",
    tests: ["src/store/node-identity.test.ts"],
  },
];

const guarded = ["src/execution/process/lease-guard.test.ts"];

const guard: readonly Mutation[] = [
  {
    fault: "a process table that cannot be read is taken for an empty one",
    file: "src/execution/process/lease-guard.ts",
    search: "if (left?.length === 0) return;",
    replacement: "if (left === undefined || left.length === 0) return;",
    tests: guarded,
  },
  {
    fault: "processes that cannot be read for want of open files count as gone",
    file: "src/execution/process/process-table.ts",
    search: "if (NO_ROOM.has((error as NodeJS.ErrnoException).code)) throw error;",
    replacement: "",
    tests: ["src/execution/process/process-trees.test.ts"],
  },
  {
    fault: "an attempt begins behind the lease",
    file: "src/execution/task-runner.ts",
    search: 'if (this.#options.clock.steadyMs() >= this.#mayRunUntilMs) control.end("stopped");',
    replacement: "",
    tests: guarded,
  },
];

/** Attempts that run on other nodes. */
const placed: readonly Mutation[] = (
  [
    [
      "an owner takes attempts that it cannot reach for ended too early",
      "peers.ts",
      "nowMs - session.answeredMs >= 2 * leaseMs",
      "nowMs - session.answeredMs >= leaseMs / 2",
      "cluster-tasks",
    ],
    [
      "a host ends attempts whose owner is silent too late",
      "task-lease.ts",
      "const STOP_BEFORE_MS = 3_000;",
      "const STOP_BEFORE_MS = -60_000;",
      "host",
    ],
    [
      "attempts of an owner whose lease ends soon run for a whole one",
      "host.ts",
      'Math.min(numberIn(validMs, "validMs"), leaseMs)',
      "leaseMs",
      "host",
    ],
    [
      "an owner lets attempts run longer than its own lease",
      "peers.ts",
      "return Math.min(leaseMs, ownLeaseLeftMs());",
      "return leaseMs;",
      "peers",
    ],
    [
      "a grant for a request that was taken back counts for the next one",
      "peers.ts",
      "return waiting.get(key) === number && waiting.delete(key);",
      "return waiting.delete(key);",
      "cluster-tasks",
    ],
    [
      "an attempt starts with slots of a session that is lost",
      "peers.ts",
      "session === undefined || !session.granted.delete(key)",
      "session === undefined",
      "cluster-tasks",
    ],
    ["a node without a lease runs attempts of others", "host.ts", "ownLeaseLeftMs() <= 0", "false", "host"],
    [
      "an owner is told that attempts have ended which still end",
      "host.ts",
      "if (this.#isEnding(nodeOf(hello.owner)))",
      'if (hello.owner === "")',
      "host",
    ],
    [
      "an owner that waits is answered behind the lease of its host",
      "host.ts",
      "for (const { connection } of this.#greetings.splice(0)) connection.close();",
      "",
      "host",
    ],
    [
      "the end of an attempt is lost with the connection that it was sent over",
      "host.ts",
      "session.keys.size === 0 && session.link.waiting === 0",
      "session.keys.size === 0",
      "host",
    ],
    [
      "attempts that nobody has seen end count as ended when the lease is lost",
      "peers.ts",
      "this.#stopped(false);",
      "",
      "peers",
    ],
    [
      "an attempt is read on only when its owner has confirmed everything",
      "host.ts",
      "if (session.link.waiting >= UNCONFIRMED_MAX) return;",
      "if (session.link.waiting > 0) return;",
      "host",
    ],
    [
      "an attempt of another node's job waits for this node's engine",
      "runner.ts",
      "return this.#listenerOf(ref).backpressure(ref);",
      "return this.#engine().backpressure(ref);",
      "runner",
    ],
    [
      "an owner confirms reports for which its engine has no room",
      "peers.ts",
      "while (!session.isFull) {",
      "for (;;) {",
      "peers",
    ],
    [
      "an owner goes on without a report that could not be handled",
      "peers.ts",
      "if (error instanceof WrongFrame) {",
      "if (error instanceof Error) {",
      "peers",
    ],
    [
      "a host goes on without a message that could not be handled",
      "host.ts",
      "if (error instanceof WrongFrame) {",
      "if (error instanceof Error) {",
      "host",
    ],
    [
      "a lease of no length begins",
      "messages.ts",
      'if (typeof value === "number" && Number.isFinite(value)) return value;',
      "return value as number;",
      "host",
    ],
    [
      "a request of a lost node waits for ever",
      "slots.ts",
      "if (request?.nodeId === nodeId) this.#again(request);",
      "",
      "slots",
    ],
    [
      "more is taken to a node than it has free",
      "slots.ts",
      "      free = this.#freeAt(nodeId, pool);",
      "",
      "slots",
    ],
    [
      "of nodes that are equal the same one is always chosen",
      "slots.ts",
      "turns.get(nodeId) ?? turns.size",
      "0",
      "slots",
    ],
    [
      "an end confirms messages that it has not received",
      "link.ts",
      "if (seq !== this.#received + 1) {",
      "if (seq < 0) {",
      "link",
    ],
  ] as const
).map(([fault, file, search, replacement, test]) => ({
  fault,
  file: `src/cluster/tasks/${file}`,
  search,
  replacement,
  tests: [`src/cluster/tasks/${test}.test.ts`],
}));

export const clusterMutations: readonly Mutation[] = [
  ...placed,
  ...engine,
  ...leases,
  ...claimed,
  ...postgres,
  ...others,
  ...guard,
];
