// Faults of the engine and of its recovery.

import type { Mutation } from "./mutation.ts";

export const engineMutations: readonly Mutation[] = [
  {
    fault: "events are published although the job was lost to another owner",
    file: "src/engine/commit-barrier.ts",
    search: "if (lost.has(jobId)) continue;",
    replacement: "",
    tests: ["src/engine/job.test.ts"],
  },
];
