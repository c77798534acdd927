// Faults of comparing a node with its jobs.

import type { Mutation } from "./mutation.ts";

const faults: readonly (readonly [
  fault: string,
  file: string,
  search: string,
  replacement: string,
  test: string,
])[] = [
  [
    "what one look has found is a difference",
    "src/cluster/reconcile.ts",
    "found.filter((one) => before.has(keyOf(one)))",
    "found",
    "src/cluster/reconcile.test.ts",
  ],
  [
    "an attempt is stopped although its job has come back",
    "src/cluster/reconcile.ts",
    "if (!isExpected(ref)) runner.stop(ref);",
    "runner.stop(ref);",
    "src/cluster/reconcile.test.ts",
  ],
  [
    "a node that has given its jobs up is compared with none",
    "src/cluster/reconcile.ts",
    "if (reason !== null) throw new EngineUnavailable(reason);",
    "",
    "src/cluster/reconcile.test.ts",
  ],
  [
    "attempts that run for other nodes count as left",
    "src/cluster/reconcile.ts",
    "foreign().some((other) => slotsKey(other.ref) === slotsKey(ref))",
    "false",
    "src/cluster/reconcile.test.ts",
  ],
  [
    "most folders of a home are removed because of a wrong database",
    "src/cluster/reconcile.ts",
    "return !isSuspicious && !(",
    "return !(",
    "src/cluster/reconcile.test.ts",
  ],
  [
    "differences are fixed without being asked",
    "src/cluster/reconcile.ts",
    "const isFixed = fix && ",
    "const isFixed = ",
    "test/integration/reconcile.test.ts",
  ],
  [
    "the folder of an attempt that runs is a leftover",
    "src/execution/leftovers.ts",
    "if (!this.#parts.isInUse(attempt) && (",
    "if ((",
    "src/execution/leftovers.test.ts",
  ],
  [
    "a folder that is kept for the next command is a leftover",
    "src/execution/task-runner.ts",
    " || this.#commands.keeps(dirname(dirname(path)))",
    "",
    "src/execution/leftovers.test.ts",
  ],
  [
    "a run's folder that is made before its row is a leftover",
    "src/execution/leftovers.ts",
    "nowMs - RUN_AGE_MS",
    "nowMs",
    "src/execution/leftovers.test.ts",
  ],
  [
    "each run's folder is looked up by itself",
    "src/execution/leftovers.ts",
    "RUNS_PER_LOOK = 500",
    "RUNS_PER_LOOK = 1",
    "src/execution/leftovers.test.ts",
  ],
  [
    "any number of requests wait for a comparison",
    "src/cluster/reconcile.ts",
    "ASKED_MAX = 8",
    "ASKED_MAX = 800",
    "src/cluster/reconcile.test.ts",
  ],
  [
    "a process of a command that runs counts as left",
    "src/execution/process/process-trees.ts",
    "mark?.startsWith(this.#markPrefix) && !this.#liveMarks.has(mark)",
    "mark?.startsWith(this.#markPrefix)",
    "test/integration/reconcile.test.ts",
  ],
  [
    "another node at the same address is compared",
    "src/cluster/node-service.ts",
    "if (nodeId !== parts.nodeId)",
    "if (false)",
    "src/cluster/remote-reconcile.test.ts",
  ],
  [
    "a port of an open run is held by an ended one",
    "src/web/ports.ts",
    "const unused = ended.filter(({ port }) => !here.has(port));",
    "const unused = ended;",
    "src/web/ports.test.ts",
  ],
  [
    "attempts that other nodes run are missed here",
    "src/engine/engine.ts",
    "node: task.state.lease?.node ?? null",
    "node: null",
    "test/integration/reconcile.test.ts",
  ],
];

export const reconcileMutations: readonly Mutation[] = faults.map(
  ([fault, file, search, replacement, test]) => ({ fault, file, search, replacement, tests: [test] }),
);
