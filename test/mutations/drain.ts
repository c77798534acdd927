// Faults of drains: jobs that leave a node, and a node that takes nothing on.

import type { Mutation } from "./mutation.ts";

const of = (
  file: string,
  test: string,
  faults: readonly (readonly [fault: string, search: string, replacement: string])[],
): readonly Mutation[] =>
  faults.map(([fault, search, replacement]) => ({ fault, file, search, replacement, tests: [test] }));

const drain = "src/engine/drain.test.ts";
const simulated = "test/simulation/nodes.test.ts";
const membership = "src/cluster/membership.test.ts";
const rows = "src/store/postgres/nodes.test.ts";

export const drainMutations: readonly Mutation[] = [
  ...of("src/engine/job/tasks.ts", drain, [
    ["a job that leaves begins attempts", "if (job.isLeaving) {", "if (job.isLeaving && job.taskSeq < 0) {"],
    [
      "slots are granted to a job that leaves",
      'job.status !== "running" || job.isLeaving)',
      'job.status !== "running")',
    ],
  ]),
  ...of("src/engine/job/handover.ts", drain, [
    [
      "a job that leaves waits for slots here on",
      "for (const task of job.tasks.values()) withdrawRequest(job, task);",
      "",
    ],
    ["a worker that must not run twice is ended early", " && mayRunTwice(job, task));", ");"],
    ["what ends soon is ended early", "isEndless(job, task) && mayRunTwice", "mayRunTwice"],
    [
      "services of a job that was handed over are checked on",
      'if (job.hasServices) job.draft.effects.services.push({ kind: "job_closed", jobId: job.jobId });',
      "",
    ],
    [
      "a job that stays after all does not ask for slots",
      'for (const task of [...job.tasks.values()]) if (task.state.kind === "queued") requestSlots(job, task);',
      "",
    ],
  ]),
  ...of("src/engine/job/handover.ts", simulated, [
    ["a job is handed over while it runs", " && runningOf(job).length === 0;", ";"],
  ]),
  ...of("src/engine/job/job.ts", drain, [
    [
      "a job that was handed over is held for a person",
      'job.graph.recoveryPolicy === "manual_recover" && !wasHandedOver;',
      'job.graph.recoveryPolicy === "manual_recover";',
    ],
  ]),
  ...of("src/engine/drain.ts", drain, [
    ["nothing happens at the deadline", "() => this.begin(this.#order)", "() => {}"],
    [
      "a deadline that was moved is kept too",
      "    this.#cancelTimer();\n    const leftMs",
      "    const leftMs",
    ],
    ["services leave with the others", "return this.#areServicesGoing || !isService(job);", "return true;"],
    ["services stay until the deadline", "for (const job of all) if (!isService(job)) return;", "return;"],
    ["all jobs go with one batch", "if ((i + 1) % JOBS_PER_BATCH !== 0) continue;", "continue;"],
    [
      "the end of a drain writes jobs that are over",
      "if (!job.isLeaving || isOver(job)) continue;\n      stay",
      "if (!job.isLeaving) continue;\n      stay",
    ],
    [
      "callers that wait for the end of a drain are not told of its cancellation",
      "    this.#cancelTimer();\n    this.#tellWaiters();",
      "    this.#cancelTimer();",
    ],
  ]),
  ...of("src/engine/commit-barrier.ts", drain, [
    ["a job changes after it was handed over", "      all.delete(jobId);\n      ready", "      ready"],
    [
      "a job that has come back is forgotten with the part that handed it over",
      "left === undefined ? this.#open.all.get(jobId) : undefined;",
      "this.#open.all.get(jobId);",
    ],
    ["who waits for the end of a drain is not told that all jobs were given up", "this.#onWritten(0);", ""],
    ["a job that was given up on its way is held on", "for (const job of leaving) this.#gone(job);", ""],
  ]),
  ...of("src/engine/engine.ts", drain, [
    [
      "a job that was being taken over when a drain began stays",
      "job.isLeaving = this.#drain?.includes(job) ?? false;\n    goOn",
      "goOn",
    ],
    ["new jobs are accepted in a drain", "?? this.#drain?.reason ?? null;", "?? null;"],
    [
      "what is submitted in a drain begins here",
      "job.isLeaving = this.#drain?.includes(job) ?? false;\n    this.#jobs.add(job);\n    start(job);",
      "this.#jobs.add(job);\n    start(job);",
    ],
    [
      "a job that ends elsewhere counts as ended for its submitter",
      "const hasEnded = isOver(job) && !this.holds(jobId);",
      "const hasEnded = !this.holds(jobId);",
    ],
    ["workers that never end hold up a drain", "if (job.isLeaving) stopEndless(job);", ""],
  ]),
  ...of("src/store/postgres/journal.ts", rows, [
    [
      "a job that was handed over has its owner",
      "values: [FREE_OWNER, handedOver]",
      "values: [FREE_OWNER, []]",
    ],
  ]),
  ...of("src/store/postgres/journal-statements.ts", rows, [
    [
      "jobs of a lost owner wait for a node that takes nothing on",
      "CASE WHEN nodes.drain_until IS NULL THEN nodes.lease_until + ${GRACE_MS} END",
      "nodes.lease_until + ${GRACE_MS}",
    ],
  ]),
  ...of("src/cluster/membership.ts", membership, [
    [
      "a node that is drained takes jobs over",
      "this.#outage === null ? await this.#work!.takeOver() : 0;",
      "await this.#work!.takeOver();",
    ],
    [
      "a node does not hear when it registers that it is in maintenance",
      "this.#follow(work, registration);",
      "",
    ],
    [
      "a drain begins again with each renewal",
      "if (before?.requestedAtMs === outage.requestedAtMs && before.kind === outage.kind) return;",
      "",
    ],
    ["a request waits for the next renewal when one is under way", "    await this.#renewing;\n", ""],
    [
      "a node that is drained and reaches no database asks it all the time",
      "this.#renewAt(clock.steadyMs() + this.#retryMs);",
      "this.#renewLater(clock.steadyMs() - this.#times.renewEveryMs + this.#retryMs);",
    ],
  ]),
  ...of("src/app/node.ts", "test/integration/node-drain.test.ts", [
    [
      "nodes that are all stopped wait for each other",
      "if (!(await hasReadyOthers().catch(() => true))) return;",
      "await hasReadyOthers().catch(() => true);",
    ],
  ]),
  ...of("src/store/postgres/nodes.ts", rows, [
    [
      "maintenance ends with the program",
      "nodes.maintenance = 1 OR nodes.owner = ANY ($10) THEN",
      "nodes.owner = ANY ($10) THEN",
    ],
    [
      "a drain ends with the lease",
      "nodes.maintenance = 1 OR nodes.owner = ANY ($10) THEN",
      "nodes.maintenance = 1 THEN",
    ],
    ["undraining ends maintenance", "CASE WHEN maintenance = 1 THEN ${column} END", "NULL"],
  ]),
];
