// Faults of the order in which slots are granted.

import type { Mutation } from "./mutation.ts";

const turns = (fault: string, search: string, replacement: string): Mutation => ({
  fault,
  file: "src/execution/turns.ts",
  search,
  replacement,
  tests: ["src/execution/turns.test.ts"],
});

const simulated = (fault: string, search: string, replacement: string): Mutation => ({
  ...turns(fault, search, replacement),
  tests: ["test/simulation/shares.test.ts"],
});

const pools = (fault: string, search: string, replacement: string): Mutation => ({
  ...turns(fault, search, replacement),
  file: "src/execution/pools.ts",
});

const engine = (fault: string, search: string, replacement: string): Mutation => ({
  ...turns(fault, search, replacement),
  file: "src/engine/job/tasks.ts",
  tests: ["src/engine/placing.test.ts"],
});

const cluster = (fault: string, name: string, search: string, replacement: string): Mutation => ({
  ...turns(fault, search, replacement),
  file: `src/cluster/tasks/${name}.ts`,
  tests: [`src/cluster/tasks/${name}.test.ts`],
});

export const turnMutations: readonly Mutation[] = [
  turns(
    "a job keeps its turn for as long as it waits",
    "for (const queue of competitor.queues) queue.line.toEnd(queue);",
    "",
  ),
  turns(
    "a job's turn ends in one of its lines only",
    "for (const queue of competitor.queues) queue.line.toEnd(queue);",
    "for (const queue of competitor.queues.slice(0, 1)) queue.line.toEnd(queue);",
  ),
  turns("all turns are of one length", "competitor.credit += competitor.weight;", "competitor.credit += 1;"),
  turns("a first turn is one slot", "credit: weight, turn", "credit: 1, turn"),
  turns("a job keeps the weight of its first request", "known.weight = weight;", ""),
  turns("turns count commands, not slots", "competitor.credit -= slots;", "competitor.credit -= 1;"),
  turns(
    "what was granted beyond a turn is not taken off the next ones",
    "competitor.credit += competitor.weight;",
    "competitor.credit = competitor.weight;",
  ),
  turns(
    "a job that waits for nothing more keeps its place",
    "if (queues.length === 0) this.#competitors.delete(job);",
    "",
  ),
  turns("a higher priority does not go first", "other.rank - one.rank ||", ""),
  turns("a lower priority never rises", "this.#passedAtMs ??= nowMs();", ";"),
  turns(
    "a priority stays risen",
    "    this.remove(request);\n    this.#passedAtMs = null;",
    "    this.remove(request);",
  ),
  turns(
    "a priority rises while it is passed over again and again",
    "this.#passedAtMs ??= nowMs();",
    "this.#passedAtMs = nowMs();",
  ),
  turns(
    "waiting behind the same priority raises",
    "if (level > this.level && this.size > 0)",
    "if (this.size > 0)",
  ),
  turns(
    "one that has risen does not go before those that it has caught up with",
    "one.line.level - other.line.level ||",
    "",
  ),
  pools(
    "free slots are not granted to a higher priority while a large request waits",
    "if (slots <= pool.available && this.#next(pool)?.request === ticket) {",
    "if (false) {",
  ),
  simulated(
    "a job that is granted its turn has the next one, too",
    "for (const queue of competitor.queues) queue.line.toEnd(queue);",
    "",
  ),
  simulated("a priority that is passed over does not rise", "this.#passedAtMs ??= nowMs();", ";"),
  simulated(
    "a turn has 100 slots, whatever the weight",
    "competitor.credit += competitor.weight;",
    "competitor.credit += 100;",
  ),
  cluster(
    "a job keeps its turn while its requests are taken to other nodes",
    "slots",
    "line.charge(request);",
    "",
  ),
  cluster(
    "requests of low priority are taken to other nodes first",
    "slots",
    "lines.at(-1 - levelOf(share))!",
    "lines.at(levelOf(share))!",
  ),
  cluster(
    "what other nodes ask for has the usual share",
    "host",
    "(share === undefined ? null : shareIn(share)) ??",
    "null ??",
  ),
  engine(
    "a new priority is not of what waits already",
    "withdrawRequest(job, task);\n    requestSlots(job, task);",
    "",
  ),
  engine("a new priority is forgotten by a restart", "job.draft.priority = priority;", ""),
];
