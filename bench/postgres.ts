// This program on PostgreSQL with its default durability; server, program and load share the machine. One node first,
// then two, one of which is killed.

import { rm } from "node:fs/promises";
import pg from "pg";
import { returnPostgres, takePostgres } from "../test/support/postgres.ts";
import { type Program, startProgram, temporaryHome } from "../test/support/program.ts";
import { until } from "../test/support/until.ts";
import { submit, submitAndWait } from "./client.ts";
import { loadTable, submitMany } from "./load.ts";
import { pair } from "./manifests.ts";

/** Until a node has done what there is to do after a start. */
const SETTLED_MS = 20_000;
const IDLE_MS = 40_000;
const SYNCED_JOBS = 5_000;
const STREAMED_EVENTS = 300;
const LOST_JOBS = 10_000;
const LEASE_SECONDS = 15;

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const shownMs = (value: number) => `${value.toFixed(1)} ms`;

/** @returns the figures; each name is a row */
export async function measurePostgres(): Promise<Map<string, string>> {
  const url = await takePostgres();
  const database = new pg.Client({ connectionString: url });
  await database.connect();
  // The server of the tests writes without syncing; here it is as it is made.
  await database.query("ALTER SYSTEM SET fsync = on");
  await database.query("SELECT pg_reload_conf()");
  const homes = [await temporaryHome(), await temporaryHome()];
  const start = (home: string): Promise<Program> =>
    startProgram({
      home,
      env: {
        SVC_LOG_LEVEL: "warn",
        SVC_DATABASE_URL: url,
        SVC_SECRET_KEY: "00".repeat(32),
        SVC_NODE_LEASE_SECONDS: String(LEASE_SECONDS),
      },
    });
  const first = await start(homes[0]!);
  const idle = await measureIdle(database);
  const figures = await loadTable(first.api, {
    only: ["pair", "throughput", "fan", "batch", "list"],
    jobs: 5_000,
  });
  await measureSyncs(first, database, figures);
  figures.set("transactions of an idle node", idle);
  const second = await start(homes[1]!);
  await measureStream(first, second, figures);
  await measureFailover(first, second, database, figures);
  await second.stop();
  await database.end();
  await returnPostgres(url);
  await Promise.all(homes.map((home) => rm(home, { recursive: true, force: true })));
  return figures;
}

async function counted(database: pg.Client, text: string): Promise<number> {
  // Statistics are a snapshot for each transaction, and come a while after what they count.
  await database.query("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()");
  const { rows } = await database.query<{ count: string }>(text);
  return Number(rows[0]?.count);
}

const SYNCS = `SELECT sum(fsyncs)::bigint AS count FROM pg_stat_io WHERE object = 'wal'`;
const STATEMENTS = `SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = current_database()`;

async function measureSyncs(
  program: Program,
  database: pg.Client,
  figures: Map<string, string>,
): Promise<void> {
  const before = await counted(database, SYNCS);
  await submitMany(program.api, JSON.stringify(pair), SYNCED_JOBS);
  const syncs = (await counted(database, SYNCS)) - before;
  figures.set("syncs of the log per job, 32 submitters", (syncs / SYNCED_JOBS).toFixed(3));
}

async function measureIdle(database: pg.Client): Promise<string> {
  // The server's own transactions are not the node's.
  await database.query("ALTER SYSTEM SET autovacuum = off");
  await database.query("SELECT pg_reload_conf()");
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  const before = await counted(database, STATEMENTS);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const transactions = (await counted(database, STATEMENTS)) - before;
  await database.query("ALTER SYSTEM RESET autovacuum");
  await database.query("SELECT pg_reload_conf()");
  return `${(transactions / (IDLE_MS / 1_000)).toFixed(1)}/s`;
}

const ticking = {
  ...pair,
  graph_id: "ticking",
  nodes: [
    {
      node_id: "in",
      agent_type: "executor",
      config: {
        command: `i=0; while [ $i -lt ${STREAMED_EVENTS} ]; do i=$((i+1)); date +%s%3N; sleep 0.02; done`,
      },
    },
  ],
  edges: [],
  entrypoints: ["in"],
};

/** When each line of the command came, by the id of its event. */
async function arrivals({ api }: Program, jobId: string): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`${api}/jobs/${jobId}/events/stream`);
  const atMs = new Map<string, number>();
  let rest = "";
  let eventId = "";
  for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
    const nowMs = performance.now();
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) eventId = line;
      else if (line.includes('"type":"log"')) atMs.set(eventId, nowMs);
    }
  }
  return atMs;
}

/** How much later a reader on the other node has an event than one on the job's own node, which has it behind its commit. */
async function measureStream(first: Program, second: Program, figures: Map<string, string>): Promise<void> {
  const jobId = await submit(first.api, JSON.stringify(ticking));
  const [own, other] = await Promise.all([arrivals(first, jobId), arrivals(second, jobId)]);
  const later = Array.from(own, ([eventId, atMs]) => other.get(eventId)! - atMs);
  figures.set(
    "an event on a stream of another node, behind the same on its own node's, p50",
    shownMs(median(later)),
  );
}

const blocked = {
  ...pair,
  graph_id: "blocked",
  nodes: [{ node_id: "in", agent_type: "executor", config: { command: ["sleep", "100000"] } }],
  edges: [],
  entrypoints: ["in"],
  policies: { recovery_mode: "cluster_recover" },
};

/** From the kill of a node to the last of its jobs on the other one, with its recovery in its history. */
async function measureFailover(
  lost: Program,
  heir: Program,
  database: pg.Client,
  figures: Map<string, string>,
): Promise<void> {
  await submitMany(lost.api, JSON.stringify(blocked), LOST_JOBS);
  const { rows } = await database.query<{ owner: string; seq: string }>(
    "SELECT owner, max(event_seq) AS seq FROM jobs WHERE terminal = 0 GROUP BY owner",
  );
  const [{ owner, seq } = { owner: "", seq: "0" }] = rows;
  const killedAt = performance.now();
  await lost.kill();
  // Counting them all the time would take half a core from those who take them over.
  const isLeft = "SELECT EXISTS (SELECT FROM jobs WHERE terminal = 0 AND owner = $1) AS left";
  const there = `SELECT count(*) FROM jobs WHERE terminal = 0 AND owner <> $1 AND event_seq >= $2`;
  const isOver = `SELECT lease_until <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS over FROM nodes WHERE owner = $1`;
  let overAt = Number.NaN;
  await until("all jobs run again", async () => {
    if (Number.isNaN(overAt) && (await database.query(isOver, [owner])).rows[0]?.over === true)
      overAt = performance.now();
    if ((await database.query(isLeft, [owner])).rows[0]?.left === true) return null;
    const found = await database.query<{ count: string }>(there, [owner, seq]);
    return Number(found.rows[0]?.count) >= LOST_JOBS || null;
  });
  const doneAt = performance.now();
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  figures.set(
    `${LOST_JOBS.toLocaleString("en")} jobs of a killed node run again, after the kill`,
    seconds(doneAt - killedAt),
  );
  figures.set("— after the end of its lease", seconds(doneAt - overAt));
  // The other one still answers.
  await submitAndWait(heir.api, JSON.stringify(pair));
}
