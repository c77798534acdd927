// Faults of launches, operations and idempotency keys that show only when crashes come between: the gateway's half of
// the simulation notices them.

import type { Mutation } from "./mutation.ts";

export const simulatedGatewayMutations: readonly Mutation[] = (
  [
    [
      "a start does not launch what was accepted before it",
      "launch/launcher.ts",
      "for await (const runs of this.#unsettled(null)) {\n      await Promise.all",
      "for await (const runs of this.#unsettled('')) {\n      await Promise.all",
    ],
    [
      "the cancellation of a run that waits is only noted",
      "launch/launcher.ts",
      "await ends.cancelled(runId)",
      "await this.#parts.records.write((writes) => writes.setDesiredState(runId, desiredState, 1)).then(() => false)",
    ],
    [
      "what was prepared for a run that was cancelled meanwhile stays",
      "launch/preparation/run-folders.ts",
      "if (run === null) return this.#runEnded(runId);",
      "if (run === null) return;",
    ],
    [
      "a start does not remove what was prepared for runs that have ended",
      "launch/preparation/run-folders.ts",
      "await this.keepUntilEnded(name);",
      "",
    ],
    [
      "a stored response is not committed with its effect",
      "http/core/idempotency.ts",
      "if (!(await writes.saveIdempotency(record, this.#expiredMs()))) throw new KeyTaken();",
      "",
    ],
    [
      "a key answers another request than its own",
      "http/core/idempotency.ts",
      "if (record.requestHash !== requestHash) throw reusedKey();",
      "",
    ],
    [
      "a start forgets the operations that are open",
      "operations/operations.ts",
      "for (const operation of await this.#parts.records.openOperations()) this.begin(operation);",
      "await this.#parts.records.openOperations();",
    ],
    [
      "the end of an operation does not bring about what it should",
      "operations/operations.ts",
      "return commit(writes, change.operation, nowMs);",
      "return () => {};",
    ],
    [
      "a second operation of a target begins beside the first",
      "operations/operations.ts",
      "if (open !== null) throw busy(open);",
      "",
    ],
    [
      "an operation that is done again enters its steps again",
      "operations/operation-change.ts",
      'if (step.status !== "pending") return null;',
      "",
    ],
    [
      "progress of an operation is published before it is stored",
      "operations/progress.ts",
      "await this.#parts.write((writes) => saveOwn(writes, change.operation, line));\n      this.#operation = change.operation;\n      this.#parts.published(change.operation, line);",
      "this.#parts.published(change.operation, line);\n      await this.#parts.write((writes) => saveOwn(writes, change.operation, line));\n      this.#operation = change.operation;",
    ],
  ] as const
).map(([fault, file, search, replacement]) => ({
  fault,
  file: `src/${file}`,
  search,
  replacement,
  tests: ["test/simulation/gateway.test.ts"],
}));
