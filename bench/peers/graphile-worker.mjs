// graphile-worker: each step adds the next in the database. The last of a fan is the one that counts down to zero.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const ADD_ALL = `WITH started AS (INSERT INTO fan_left VALUES ($1, $2))
  SELECT graphile_worker.add_jobs(array(
    SELECT json_populate_record(NULL::graphile_worker.job_spec,
      json_build_object('identifier', 'work', 'payload', json_build_object('id', $1::text)))
    FROM generate_series(1, $2::int)))`;
const COUNT_DOWN = "UPDATE fan_left SET n = n - 1 WHERE id = $1 RETURNING n";

export async function start() {
  const url = process.env.PEERS_POSTGRES ?? "postgres://postgres@127.0.0.1:5497/graphile";
  const pgPool = new pg.Pool({ connectionString: url, max: 40 });
  // Without handlers of its own the library warns.
  pgPool.on("error", () => {});
  pgPool.on("connect", (client) => client.on("error", () => {}));
  const utils = await makeWorkerUtils({ pgPool });
  await utils.migrate();
  await pgPool.query("CREATE TABLE IF NOT EXISTS fan_left (id text PRIMARY KEY, n int NOT NULL)");
  const waiting = new Map();
  const prefix = Date.now().toString(36);
  let count = 0;

  const taskList = {
    pair: async ({ id, step }, { addJob }) => {
      if (step === 1) await addJob("pair", { id, step: 2 });
    },
    spread: async ({ id, width }, { withPgClient }) => {
      await withPgClient((client) => client.query(ADD_ALL, [id, width]));
    },
    work: async ({ id }, { withPgClient, addJob }) => {
      const { rows } = await withPgClient((client) => client.query(COUNT_DOWN, [id]));
      if (rows[0].n === 0) await addJob("join", { id });
    },
    join: async () => {},
  };
  const logger = new Logger(() => () => {});
  const runner = await run({
    pgPool,
    concurrency: 32,
    noHandleSignals: true,
    pollInterval: 1_000,
    logger,
    taskList,
  });
  runner.events.on("job:success", ({ job: { task_identifier: name, payload } }) => {
    if (name !== "join" && !(name === "pair" && payload.step === 2)) return;
    waiting.get(payload.id)?.();
    waiting.delete(payload.id);
  });

  const go = (name, data) =>
    new Promise((resolve, reject) => {
      const id = `${prefix}_${count++}`;
      waiting.set(id, resolve);
      utils.addJob(name, { ...data, id }).catch(reject);
    });
  return {
    pair: () => go("pair", { step: 1 }),
    fan: (width) => go("spread", { width }),
    stop: async () => {
      await runner.stop();
      await utils.release();
      await pgPool.end();
    },
  };
}
