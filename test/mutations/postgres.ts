// Faults of the store on PostgreSQL.

import type { Mutation } from "./mutation.ts";

export const postgresMutations: readonly Mutation[] = [
  {
    fault: "a part of an old epoch is written to PostgreSQL",
    file: "src/store/postgres/journal-statements.ts",
    search: "AND jobs.epoch = given.epoch",
    replacement: "",
    tests: ["src/store/sql/journal.test.ts"],
  },
  {
    fault: "a commit to PostgreSQL whose answer was lost counts as not written",
    file: "src/store/postgres/journal.ts",
    search: "isCommitting = true;",
    replacement: "",
    tests: ["src/store/postgres/database.test.ts"],
  },
  {
    fault: "a part that is sent to PostgreSQL again counts as lost",
    file: "src/store/postgres/journal.ts",
    search: "row.revision !== revision + 1",
    replacement: "row.revision !== revision",
    tests: ["src/store/sql/journal.test.ts"],
  },
  {
    fault: "two programs on PostgreSQL write on what both have read",
    file: "src/store/postgres/database.ts",
    search: "await db.executeQuery(LOCK_RECORDS);",
    replacement: "",
    tests: ["src/store/postgres/database.test.ts"],
  },
  {
    fault: "two programs migrate a PostgreSQL database at once",
    file: "src/store/postgres/migrate.ts",
    search: 'await client.query("SELECT pg_advisory_xact_lock($1, $2)", [LOCKS, MIGRATION_LOCK]);',
    replacement: "",
    tests: ["src/store/postgres/database.test.ts"],
  },
  {
    fault: "a program too old for its PostgreSQL database uses it",
    file: "src/store/postgres/migrate.ts",
    search: 'if (oldest > (steps.at(-1) ?? ""))',
    replacement: "if (false)",
    tests: ["src/store/postgres/database.test.ts"],
  },
  {
    fault: "runs do not follow their jobs on PostgreSQL",
    file: "src/store/postgres/journal.ts",
    search: "if (changed.length > 0)",
    replacement: "if (changed.length < 0)",
    tests: ["src/store/sql/runs.test.ts"],
  },
  {
    fault: "two programs use one PostgreSQL database",
    file: "src/store/postgres/open.ts",
    search: "await use.begin();",
    replacement: "",
    tests: ["src/store/postgres/open.test.ts"],
  },
  {
    fault: "a program writes to a PostgreSQL database that another one has taken",
    file: "src/store/postgres/journal.ts",
    search: "await this.#guard.mayWrite();",
    replacement: "",
    tests: ["src/store/postgres/open.test.ts"],
  },
  {
    fault: "a home of a SQLite database is used with PostgreSQL",
    file: "src/store/postgres/open.ts",
    search: "checkNoOther(home);",
    replacement: "",
    tests: ["src/store/postgres/open.test.ts"],
  },
  {
    fault: "a connection to PostgreSQL that is lost while it is used ends the program",
    file: "src/store/postgres/database.ts",
    search: 'pool.on("connect", (client) => client.on("error", () => {}));',
    replacement: "",
    tests: ["test/integration/postgres.test.ts"],
  },
  {
    fault: "a program with another secret key than the others uses the PostgreSQL database",
    file: "src/store/postgres/cluster.ts",
    search: "if (ids.includes(known)) return;",
    replacement: "if (ids.length > 0) return;",
    tests: ["src/store/postgres/open.test.ts"],
  },
];
