// Faults of the store: what is not on disk when it should be, and what is not read back.

import type { Mutation } from "./mutation.ts";

export const storeMutations: readonly Mutation[] = [
  {
    fault: "a changed row is recovered as if it were what was stored",
    file: "src/store/sqlite/row-checksum.ts",
    search: "row[column] === null ||",
    replacement: "row[column] !== undefined ||",
    tests: ["src/store/sqlite/journal.test.ts"],
  },
  {
    fault: "a changed row of an ended job is not looked for",
    file: "src/store/sqlite/quick-check.ts",
    search: "if (!isWhole(row, checksums)) yield",
    replacement: "if (row === null) yield",
    tests: ["test/integration/damaged-store.test.ts"],
  },
  {
    fault: "damage that the check after an unclean end finds is not acted on",
    file: "src/app/app.ts",
    search: "database.setDamaged(damage);",
    replacement: "",
    tests: ["test/integration/damaged-store.test.ts"],
  },
  {
    fault: "commits are not synced",
    file: "src/store/sqlite/database.ts",
    search: "PRAGMA synchronous = FULL;",
    replacement: "PRAGMA synchronous = OFF;",
    tests: ["src/store/sqlite/database.test.ts"],
  },
  {
    fault: "a blob is not synced",
    file: "src/store/blobs.ts",
    search: "await file.sync();",
    replacement: "",
    tests: ["src/store/blobs.test.ts"],
  },
  {
    fault: "a blob's folder is not synced",
    file: "src/store/blobs.ts",
    search: "await syncFolder(folder);",
    replacement: "",
    tests: ["src/store/blobs.test.ts"],
  },
  {
    fault: "the folder in which a blob's new folder lies is not synced",
    file: "src/store/blobs.ts",
    search: "if (made !== undefined) await syncFolder(this.#root);",
    replacement: "",
    tests: ["src/store/blobs.test.ts"],
  },
  {
    fault: "a start goes on without a word though acknowledged commits are missing",
    file: "src/store/sqlite/database.ts",
    search: "if (missing !== null && !acceptDataLoss)",
    replacement: "if (missing !== null && acceptDataLoss)",
    tests: ["src/store/sqlite/commit-counter.test.ts"],
  },
  {
    fault: "the count of commits is ahead of the database after a commit that failed",
    file: "src/store/sqlite/commit-counter.ts",
    search: "this.#isRaised = false;\n    const total",
    replacement: "const total",
    tests: ["src/store/sqlite/commit-counter.test.ts"],
  },
  {
    fault: "an error of one row counts as one that may pass, so that its batch is tried again for ever",
    file: "src/store/sqlite/errors.ts",
    search: 'return PASSING.has(code & 0xff) ? "passing" : "row";',
    replacement: 'return "passing";',
    tests: ["src/store/sqlite/errors.test.ts", "src/store/sqlite/journal.test.ts"],
  },
  {
    fault: "a damaged file is written on",
    file: "src/store/sqlite/errors.ts",
    search: 'if (DAMAGE.has(code & 0xff) || DAMAGE_EXTENDED.has(code)) return "file";',
    replacement: "",
    tests: ["src/store/sqlite/errors.test.ts"],
  },
  {
    fault: "a commit whose answer was lost counts as another owner's when it is sent again",
    file: "src/store/sqlite/journal.ts",
    search: "row.revision === revision + 1",
    replacement: "row.revision === revision + 2",
    tests: ["src/store/sqlite/journal.test.ts"],
  },
  {
    fault: "the files of a prepared folder are not synced",
    file: "src/lib/files.ts",
    search: "await file.sync();",
    replacement: "",
    tests: ["src/lib/sync-tree.test.ts"],
  },
  {
    fault: "an item of a batch that fails takes the others with it, or leaves a part of itself",
    file: "src/store/sql/gateway.ts",
    search: "apart: (work) => atSavepoint(db, work)",
    replacement: "apart: (work) => work()",
    tests: ["src/store/sql/definitions.test.ts"],
  },
];
