// Faults of the store: what is not on disk when it should be, and what is not read back.

import type { Mutation } from "./mutation.ts";

export const storeMutations: readonly Mutation[] = [
  {
    fault: "a commit whose answer was lost counts as another owner's when it is sent again",
    file: "src/store/sqlite/journal.ts",
    search: "row.revision === revision + 1",
    replacement: "row.revision === revision + 2",
    tests: ["src/store/sqlite/journal.test.ts"],
  },
  {
    fault: "the files of a prepared folder are not synced",
    file: "src/sync-tree.ts",
    search: "await file.sync();",
    replacement: "",
    tests: ["src/sync-tree.test.ts"],
  },
];
