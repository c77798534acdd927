// Programs that share one PostgreSQL, each with its own home, engine and launcher, in the process of the test. Which of them
// are alive is for the test to say.

import type { Ownership } from "../../src/operations/ownership.ts";
import { Takeover } from "../../src/operations/takeover.ts";
import { openPostgres } from "../../src/store/postgres/database.ts";
import { PostgresJournal } from "../../src/store/postgres/journal.ts";
import { sqlWorkOwners } from "../../src/store/sql/work-owners.ts";
import { coreOf, newHome } from "./core.ts";
import { returnPostgres, takePostgres } from "./postgres.ts";

export type SharedProgram = Awaited<ReturnType<typeof openProgram>>;

/** Two of them, both alive. */
export async function startPrograms() {
  const url = await takePostgres();
  const living = new Set(["a/1", "b/1"]);
  const a = await openProgram(url, "a", living);
  const b = await openProgram(url, "b", living);
  return {
    a,
    b,
    living,
    async [Symbol.asyncDispose]() {
      await a[Symbol.asyncDispose]();
      await b[Symbol.asyncDispose]();
      await returnPostgres(url);
    },
  };
}

async function openProgram(url: string, node: string, living: ReadonlySet<string>) {
  const database = await openPostgres(url);
  const journal = new PostgresJournal(database);
  const name = { owner: `${node}/1` };
  const ownership: Ownership = { owner: () => name.owner, living: async () => new Set(living) };
  const close = async () => {
    await journal.close();
    await database.close();
  };
  const { owner } = name;
  const core = await coreOf({ home: await newHome(), database, journal, owner, ownership, node, close });
  const takeover = new Takeover({
    ownership,
    records: sqlWorkOwners(database),
    closed: () => core.engine.closed,
    settle: async () => {
      await core.launcher.recover();
      await core.blueprints.recover();
    },
    clock: core.clock,
    log: { warn: () => {}, error: () => {} },
  });
  return { ...core, name, takeover };
}
