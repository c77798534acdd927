// Faults of the engine and of its recovery.

import type { Mutation } from "./mutation.ts";

const simulation = ["test/simulation/simulation.test.ts"];

const wholeState = ["src/engine/job/image.test.ts"];
const recovery = ["src/engine/recovery.test.ts"];

/** What a restart could forget of a job, or remember wrongly. */
const forgotten: readonly Mutation[] = (
  [
    [
      "the deadline",
      "deadlineAtMs: deadlineAtMs === null ? null : toSteady(clock, deadlineAtMs)",
      "deadlineAtMs: null",
    ],
    [
      "since when a job is paused",
      "pausedAtMs: pausedAtMs === null ? null : toSteady(clock, pausedAtMs)",
      "pausedAtMs: null",
    ],
    [
      "how much a run has logged",
      "logBytes: progress.logBytes,\n    updatedAtMs",
      "logBytes: 0,\n    updatedAtMs",
    ],
    ["that a result is partial", "partial: progress.partial", "partial: false"],
    [
      "how many attempts were made again",
      "tally: { ...progress.tally },\n  };",
      "tally: { ...progress.tally, retries: 0 },\n  };",
    ],
    ["that an agent has failed", 'failed: record.status === "failed"', "failed: false"],
    ["that an agent has begun", 'started: record.status !== "pending"', "started: false"],
    ["an agent's last error", "lastError: record.lastError", "lastError: null"],
    [
      "how often a task has failed",
      "failures,\n      message: withExpiry",
      "failures: 0,\n      message: withExpiry",
    ],
    ["that a person is waited for", "if (isOpen) askerOf(job, request).openRequests++;", ""],
    [
      "that sensors wait",
      'if (node.config.kind === "sensor" && !done) job.openSensors++;',
      "void [node, done];",
    ],
    ["how much waits in mailboxes", "putInMailbox(job, agent, withExpiry", "agent.mailbox.push(withExpiry"],
    ["which messages are stored", "agent.storedSeq = message.seq;\n  }\n  for", "}\n  for"],
    ["the last collected item", "firstSeq + bodiesJson.length - 1", "firstSeq + bodiesJson.length"],
  ] as const
).map(([what, search, replacement]) => ({
  fault: `a restart forgets ${what}`,
  file: "src/engine/job/image.ts",
  search,
  replacement,
  tests: wholeState,
}));

const waitsByWallTime: readonly Mutation[] = (
  [
    ["a retry", "job/attempts.ts", "clock.steadyMs() + delayMs", simulation],
    ["a sensor", "agents/sensor.ts", "clock.steadyMs() + intervalMs", simulation],
    ["a question", "job/human-answers.ts", "dueAtMs > clock.steadyMs()", simulation],
    ["a deadline", "job/job.ts", "clock.steadyMs() + graph.timeoutMs", simulation],
    ["the loop", "loop.ts", "const steadyMs = this.#clock.steadyMs()", simulation],
    ["a ttl", "job/messages.ts", "clock.steadyMs() > expiresAtMs", ["src/engine/clock-jumps.test.ts"]],
  ] as const
).map(([what, file, search, tests]) => ({
  fault: `${what} waits by wall time`,
  file: `src/engine/${file}`,
  search,
  replacement: search.replace("steadyMs()", "nowMs()"),
  tests,
}));

/** What only the simulation tries in all its combinations. */
const simulated: readonly Mutation[] = (
  [
    [
      "an attempt is given seconds for milliseconds",
      "job/tasks.ts",
      "timeoutSeconds === 0 ? null : timeoutSeconds * 1_000",
      "timeoutSeconds === 0 ? null : timeoutSeconds",
    ],
    [
      "an attempt without a limit is ended at once",
      "job/tasks.ts",
      "timeoutSeconds === 0 ? null : timeoutSeconds * 1_000",
      "timeoutSeconds * 1_000",
    ],
    [
      "a command that took too long is not tried again",
      "failure-catalogue.ts",
      'category: "timeout",\n    retryable: true,\n    meaning: "The command',
      'category: "timeout",\n    retryable: false,\n    meaning: "The command',
    ],
    [
      "a module that took too long is not tried again",
      "failure-catalogue.ts",
      'category: "timeout",\n    retryable: true,\n    meaning: "handle()',
      'category: "timeout",\n    retryable: false,\n    meaning: "handle()',
    ],
    [
      "a module's next attempt begins, and no batch records it",
      "loop.ts",
      " || job.draft.changedTasks.size > 0",
      "",
    ],
    [
      "what a task says of its agent's state is dropped",
      "agents/executor.ts",
      "given.nextState === undefined ? state : given.nextState",
      "state",
    ],
    [
      "a mailbox takes one message more than it may",
      "job/messages.ts",
      "agent.mailbox.size >= limits.mailboxMessagesMax",
      "agent.mailbox.size > limits.mailboxMessagesMax",
    ],
    [
      "a message that finds no room vanishes",
      "job/messages.ts",
      "if (reason !== null) deadLetter(job, message, reason, 0);\n  else {",
      "if (reason === null) {",
    ],
    [
      "a message that is too old is taken",
      "job/job.ts",
      "if (isExpired(job, message)) {",
      "if (message.seq < 0) {",
    ],
    [
      "work on a message that has become too old begins",
      "job/tasks.ts",
      "task.attempt === 0 && isExpired(job, task.message)",
      "task.attempt < 0",
    ],
    [
      "a restart forgets how long a waiting message lives",
      "job/image.ts",
      "putInMailbox(job, agent, withExpiry(job, message));",
      "putInMailbox(job, agent, message);",
    ],
    [
      "a sensor whose file may not be watched holds its job open",
      "job/outcomes.ts",
      'else if (task.kind === "file") sensorDone(job, agent);',
      "",
    ],
    [
      "a job that cannot be read for a moment ends as damaged",
      "recovery.ts",
      "if (error instanceof JournalUnavailable) throw error;\n    const reason",
      "const reason",
    ],
    [
      "a start that cannot read what is open goes on without it",
      "engine.ts",
      "if (!this.#barrier.isDamaged) throw error;",
      "",
    ],
  ] as const
).map(([fault, file, search, replacement]) => ({
  fault,
  file: `src/engine/${file}`,
  search,
  replacement,
  tests: simulation,
}));

export const engineMutations: readonly Mutation[] = [
  {
    fault: "a payload that is too large is replaced whole",
    file: "src/engine/event.ts",
    search: "boundedValue(JSON.parse(body) as JsonValue, limits.eventPayloadCharsMax)",
    replacement: "{ truncated: true, chars: body.length, preview: body.slice(0, 1_024) }",
    tests: ["src/engine/event.test.ts"],
  },
  {
    fault: "a job that only waits for slots counts as running",
    file: "src/engine/job/image.ts",
    search: 'return isQueued ? "queued" : "running";',
    replacement: 'return "running";',
    tests: simulation,
  },
  {
    fault: "agents that were cut off count as done",
    file: "src/engine/job/status.ts",
    search: 'return isAtWork ? "cancelled" : "done";',
    replacement: 'return "done";',
    tests: ["src/engine/job/ends.test.ts"],
  },
  {
    fault: "a restart forgets which outputs were written",
    file: "src/engine/job/image.ts",
    search: "tally: { ...progress.tally },\n  };",
    replacement: "tally: { ...progress.tally, outputs: [] },\n  };",
    tests: ["src/engine/job/ends.test.ts"],
  },
  {
    fault: "a state that is changed is missing in the batch",
    file: "src/engine/job/steps.ts",
    search: "agent.state = step.state;\n  job.draft.changedAgents.add(agent.node.index);",
    replacement: "agent.state = step.state;",
    tests: wholeState,
  },
  {
    fault: "a job that is dropped keeps its slots",
    file: "src/engine/commit-barrier.ts",
    search: "this.#ports.slots.release(slotsKey(ref));",
    replacement: "",
    tests: ["src/engine/store-refusals.test.ts"],
  },
  {
    fault: "only the open jobs of the first claim are recovered",
    file: "src/engine/recovery.ts",
    search: "isLast = jobIds.length === 0;",
    replacement: "isLast = claimed.length > jobIds.length;",
    tests: ["src/engine/store-refusals.test.ts"],
  },
  {
    fault: "no job is claimed while others are read",
    file: "src/engine/recovery.ts",
    search: "claimed.length <= CLAIM_MAX && canClaim()",
    replacement: "claimed.length === 0 && canClaim()",
    tests: recovery,
  },
  {
    fault: "no job is read while others go on",
    file: "src/engine/recovery.ts",
    search: "if (reading.length <= READ_AT_ONCE)",
    replacement: "if (reading.length === 0)",
    tests: recovery,
  },
  {
    fault: "all jobs that are claimed are read at once",
    file: "src/engine/recovery.ts",
    search: "if (reading.length <= READ_AT_ONCE)",
    replacement: "",
    tests: recovery,
  },
  {
    fault: "a job that is claimed while another one cannot be read is nobody's",
    file: "src/engine/recovery.ts",
    search: "await claiming?.catch(() => {});",
    replacement: "",
    tests: recovery,
  },
  {
    fault: "jobs go on however many are not on disk",
    file: "src/engine/recovery.ts",
    search: "    await written;\n",
    replacement: "",
    tests: recovery,
  },
  {
    fault: "an attempt begins because of an earlier wait of its task",
    file: "src/engine/job/attempts.ts",
    search: "if (task.state.dueAtMs > job.context.clock.steadyMs()) return;",
    replacement: "",
    tests: ["src/engine/giving-up.test.ts"],
  },
  {
    fault: "an engine that is drained takes jobs over",
    file: "src/engine/engine.ts",
    search: "canClaim: () => this.#drain === null,",
    replacement: "canClaim: () => true,",
    tests: ["src/engine/drain.test.ts"],
  },
  {
    fault: "a submission that was refused as not accepted is written after all",
    file: "src/engine/commit-barrier.ts",
    search: "return withoutJobs(batch, given);",
    replacement: "return batch;",
    tests: ["src/engine/job.test.ts"],
  },
  {
    fault: "a submission of which nobody knows whether it was written is refused as not accepted",
    file: "src/engine/commit-barrier.ts",
    search: 'isUnknown ||= error.outcome === "unknown";',
    replacement: "",
    tests: ["src/engine/store-refusals.test.ts"],
  },
  {
    fault: "what an aggregator collects after a restart reuses a number",
    file: "src/engine/job/image.ts",
    search: "agent.collectedSeq = firstSeq + bodiesJson.length - 1;",
    replacement: "agent.collectedSeq = firstSeq + bodiesJson.length - 2;",
    tests: ["test/simulation/simulation.test.ts"],
  },
  {
    fault: "events are published although the job was lost to another owner",
    file: "src/engine/commit-barrier.ts",
    search: "if (lost.has(jobId)) continue;",
    replacement: "",
    tests: ["src/engine/job.test.ts"],
  },
  ...forgotten,
  {
    fault: "a failure that no further attempt would fix is retried",
    file: "src/engine/job/attempts.ts",
    search: "failureCatalogue[code].retryable && ",
    replacement: "",
    tests: simulation,
  },
  {
    fault: "an interrupted attempt counts against max_attempts",
    file: "src/engine/job/attempts.ts",
    search: 'addEvent(job, "executor_interrupted"',
    replacement: 'task.failures++;\n  addEvent(job, "executor_interrupted"',
    tests: simulation,
  },
  {
    fault: "the result of an older attempt ends the current one",
    file: "src/engine/job/tasks.ts",
    search: " || task.attempt !== ref.attempt) return null",
    replacement: ") return null",
    tests: simulation,
  },
  ...waitsByWallTime,
  ...simulated,
  {
    fault: "jobs that are submitted together are written before they have come to rest",
    file: "src/engine/engine.ts",
    search: "if (jobs.length > 1) this.#pending.hold",
    replacement: "if (jobs.length < 1) this.#pending.hold",
    tests: ["src/engine/submission.test.ts"],
  },
  {
    fault: "what is no JSON is taken as JSON when it is large",
    file: "src/engine/large-json.ts",
    search: "keys.length === 0 && !mayBeEmpty",
    replacement: "keys.length < 0 && !mayBeEmpty",
    tests: ["src/engine/large-json.test.ts"],
  },
  {
    fault: "ended jobs stay in memory until a full collection",
    file: "src/engine/job-map.ts",
    search: "    holder.job = null;\n",
    replacement: "",
    tests: ["src/engine/job-map.test.ts"],
  },
  {
    fault: "a batch is written while its callers are coming in",
    file: "src/engine/batch.ts",
    search: "this.#callersSeen > seen",
    replacement: "this.#callersSeen < seen",
    tests: ["src/engine/submission.test.ts"],
  },
];
