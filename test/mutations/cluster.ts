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
    search: "if (!this.#worksAs(owner)) break;",
    replacement: "",
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

export const clusterMutations: readonly Mutation[] = [...engine];
