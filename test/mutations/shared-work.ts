// Faults of work that several programs share: runs that wait for their launch, operations, ports.

import type { Mutation } from "./mutation.ts";

const owners = ["src/store/sql/work-owners.test.ts"];
const assets = ["src/blueprints/local-assets.test.ts"];
const takeover = ["src/operations/takeover.test.ts"];
const runs = ["src/launch/shared-runs.test.ts"];
const operations = ["src/operations/operations.test.ts", "src/store/sql/operations.test.ts"];

export const sharedWorkMutations: readonly Mutation[] = (
  [
    [
      "work of living programs is taken over",
      "operations/takeover.ts",
      "one === null || !living.has(one)",
      "true",
      takeover,
    ],
    [
      "the living are read before the names in the records",
      "operations/takeover.ts",
      "const owners = await records.owners();",
      "await ownership.living();\n    const owners = await records.owners();",
      takeover,
    ],
    [
      "work is not looked at again",
      "operations/takeover.ts",
      ".then(() => this.#lookLater());",
      ";",
      takeover,
    ],
    [
      "a lost program is noticed with the next look only",
      "operations/takeover.ts",
      "this.#look({ isSettling: true });",
      "this.#lookLater();",
      takeover,
    ],
    [
      "what was taken over is not begun",
      "operations/takeover.ts",
      "if (hasWork || isSettling) await",
      "if (isSettling) await",
      takeover,
    ],
    [
      "a run that was taken over is launched by its former owner too",
      "launch/launcher.ts",
      "isToBeLaunched(run) && this.#isOwn(run)",
      "isToBeLaunched(run)",
      runs,
    ],
    [
      "a launched run is reported as ended where another program cancels it",
      "launch/run-ends.ts",
      "if (run !== null && !run.launched) {",
      "if (run !== null) {",
      runs,
    ],
    [
      "a run fails for what a program has met that has lost it",
      "launch/run-ends.ts",
      "(run) => run.owner === owner",
      "() => true",
      runs,
    ],
    [
      "a run is left to a program that was not told that its job is ready",
      "launch/launcher.ts",
      "if (owner !== null) await records.write((writes) => writes.adoptRuns(jobId, owner));",
      "",
      runs,
    ],
    [
      "a run that is being controlled is looked after at once",
      "launch/launcher.ts",
      "clock.nowMs() - STRAYED_MS",
      "clock.nowMs() + STRAYED_MS",
      runs,
    ],
    [
      "a launched run is left in the state that a lost program did not bring it to",
      "launch/launcher.ts",
      "yield* this.#pages((page) => records.strayedRunsOf(owner, beforeMs, page));",
      "",
      runs,
    ],
    [
      "a resumed run waits for its owner of before",
      "store/sql/runs.ts",
      ".set({ status, label, owner, updated_at: nowMs })",
      ".set({ status, label, updated_at: nowMs })",
      owners,
    ],
    [
      "the job of a run that has ended is begun, on SQLite",
      "store/sqlite/journal.ts",
      "if (insert.definitionId !== null && this.#sql.selectOpenRun.get(jobId) === undefined)",
      "if (false)",
      owners,
    ],
    [
      "the job of a run that has ended is begun, on PostgreSQL",
      "store/postgres/journal.ts",
      "(insert.definitionId === null ? news : newOfRuns).push(row);",
      "news.push(row);",
      owners,
    ],
    [
      "what is launched is taken over",
      "store/sql/work-owners.ts",
      '          .where("launched", "=", sql.lit(0));\n',
      "          ;\n",
      owners,
    ],
    [
      "a port of another node is in use on this one",
      "store/sql/ports.ts",
      'eb("p.node", "=", node),',
      'eb("p.port", ">", 0),',
      owners,
    ],
    [
      "a run that was taken over loses its port",
      "store/sql/ports.ts",
      "substr(j.owner, 1, length(${ownersOfNode})) = ${ownersOfNode}",
      "false",
      owners,
    ],
    [
      "an operation of another program is worked on",
      "operations/operations.ts",
      " || operation.owner !== ownership.owner()",
      "",
      operations,
    ],
    [
      "a program that has lost an operation writes it all the same",
      "store/sql/operations.ts",
      '.where(({ eb }) => (owner === null ? eb("owner", "is", null) : eb("owner", "=", owner)))',
      "",
      operations,
    ],
    [
      "a program that has lost an operation lets it fail",
      "operations/operations.ts",
      "if (error instanceof OperationLost) return;",
      "",
      operations,
    ],
    [
      "a duty has two programs at once",
      "store/postgres/duties.ts",
      "WHERE duty.owner = excluded.owner OR duty.until <= ${now}",
      "",
      ["src/store/postgres/duties.test.ts"],
    ],
    [
      "a duty stays with a program that was lost",
      "store/postgres/duties.ts",
      " OR duty.until <= ${now}",
      "",
      ["src/store/postgres/duties.test.ts"],
    ],
    [
      "every program removes old runs",
      "runs/retention.ts",
      "(await this.#ports.takeDuty(ON_DUTY_MS)) ? this.#ports.limits : NO_LIMITS",
      "this.#ports.limits",
      ["src/runs/retention.test.ts"],
    ],
    [
      "every program does the housekeeping",
      "launch/housekeeping.ts",
      "if (await takeDuty(ON_DUTY_MS)) {",
      "{",
      ["src/launch/housekeeping.test.ts"],
    ],
    [
      "a run does without what its blueprint's addition has made on another node",
      "launch/preparation/preparation.ts",
      "    await this.#bringAssets(subject, progress);\n",
      "",
      assets,
    ],
    [
      "a model of another content is kept under its blueprint",
      "blueprints/local-assets.ts",
      "path, sha256, knownSha256: sha256, signal",
      "path, sha256: model.sha256, knownSha256: sha256, signal",
      assets,
    ],
    [
      "resources of removed blueprints stay on other nodes",
      "blueprints/resources.ts",
      "if (!owned.has(join(folder, resource))) await",
      "if (false) await",
      assets,
    ],
    [
      "models of blueprints are swept away on other nodes",
      "models/model-files.ts",
      "if (!kept.has(folder)) await",
      "await",
      assets,
    ],
    [
      "a home is swept by the program on duty alone",
      "launch/housekeeping.ts",
      "    }\n    await sweepHome();",
      "      await sweepHome();\n    }",
      ["src/launch/housekeeping.test.ts"],
    ],
  ] as const
).map(([fault, file, search, replacement, tests]) => ({
  fault,
  file: `src/${file}`,
  search,
  replacement,
  tests,
}));
