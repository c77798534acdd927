// A job's whole state, and what the journal gives back of it. Random jobs do whatever a job can do; after every batch the
// journal is read, as a process would that takes the job over, and each field of the record has to be equal.
//
// Fields are taken from the record itself: one that is new has to be stored, or to stand below with the reason why it
// is not. One that is stored has to change in these runs, or nobody would notice that it is forgotten.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Random } from "../../../test/simulation/random.ts";
import { executor, graph, module, router, sensor } from "../../../test/support/graphs.ts";
import { sized } from "../../../test/support/long.ts";
import { MemoryJournal } from "../../../test/support/memory-journal.ts";
import { PoolSlots } from "../../execution/pools.ts";
import { Fifo } from "../fifo.ts";
import { idSource } from "../ids.ts";
import type { JsonObject } from "../json.ts";
import { manifestProblemsText, parseManifest } from "../manifest.ts";
import { parseSlotsKey, slotsKey } from "../ports.ts";
import { defaultTerms } from "../share.ts";
import { submittedJob } from "../submission.ts";
import { noActions, type TaskOutcome, type TaskStart, type WorkerActions } from "../task-port.ts";
import { TimerQueue } from "../timers.ts";
import { retryDue, taskEnded } from "./attempts.ts";
import { answer, expireRequest } from "./human-answers.ts";
import { readJob, takePart } from "./image.ts";
import { goOnAfterRestart, hasWork, start, step } from "./job.ts";
import { deliver, retryDeadLetters } from "./messages.ts";
import { taskActions, taskEvents } from "./outcomes.ts";
import { type AgentState, isOver, type Job, type JobContext } from "./state.ts";
import { deadlineDue, pause, resume } from "./status.ts";
import { sensorTimerDue } from "./steps.ts";
import { slotsGranted } from "./tasks.ts";

/** Fields that are not stored, and why; by the record that they are in. */
const notStored: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  job: {
    lastEvent: "a restart adds an event before the next batch needs it",
    ready: "a restart looks at every agent, and queues those that can do something",
    aggregators: "an order that follows from the graph, and a place in it that a restart sets to the front",
    isLeaving: "who takes a job over keeps it",
    retriedLetters: "a caller after a restart has read from the journal that they are closed",
  },
  human: { isFullSaid: "the warning comes once in each process" },
  request: { attempt: "a restart interrupts every attempt" },
  agent: { isQueued: "a restart fills the ready queue anew" },
  task: { requestedAtMs: "a restart asks for slots again", waitsFor: "so does what it waits for" },
};

/** Fields that are the same in all batches of these jobs. */
const constant: Readonly<Record<string, readonly string[]>> = {
  job: [
    ...["jobId", "runId", "publicJobId", "insert", "graph", "hasServices", "context"],
    // Jobs that have ended are never read back, and a batch leaves nothing in the draft.
    ...["result", "failure", "draft"],
  ],
  agent: ["node", "isCutOff"],
};

/** What was seen of each stored field. */
const seen = new Map<string, Set<string>>();

/** Fields that are not stored, as they were met; and states of tasks. */
const excused = new Set<string>();
const taskStates = new Set<string>();

const noted = (record: string, field: string, value: unknown): void => {
  if (constant[record]?.includes(field)) return;
  const name = `${record}.${field}`;
  const values = seen.get(name) ?? new Set();
  seen.set(name, values);
  if (values.size < 2) values.add(JSON.stringify(plain(value)));
};

/** A value without the queues, maps and sets that JSON does not know. */
function plain(value: unknown): unknown {
  if (value instanceof Fifo) return plain(value.tailWhile(() => true));
  if (value instanceof Set) return [...value];
  if (value instanceof Map) return [...value].map(plain);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, plain(inner)]));
}

/** Compares two records of one kind field by field; `inner` compares the fields that are records themselves. */
function compare<T extends object>(
  record: string,
  live: T,
  read: T,
  inner: { readonly [K in keyof T]?: (live: T[K], read: T[K]) => void } = {},
): void {
  for (const field of new Set([...Object.keys(live), ...Object.keys(read)]) as Set<keyof T & string>) {
    if (notStored[record]?.[field] !== undefined) {
      excused.add(`${record}.${field}`);
      continue;
    }
    if (inner[field] !== undefined) {
      inner[field](live[field], read[field]);
      continue;
    }
    noted(record, field, live[field]);
    if (live[field] !== read[field])
      assert.deepEqual(plain(read[field]), plain(live[field]), `${record}.${field} is read back wrongly`);
  }
}

function compareJobs(live: Job, read: Job): void {
  compare("job", live, read, {
    agents: (agents, others) => {
      assert.equal(others.length, agents.length);
      for (const [i, agent] of agents.entries()) compareAgents(agent, others[i]!);
    },
    tasks: (tasks, others) => {
      assert.deepEqual([...others.keys()], [...tasks.keys()]);
      for (const [seq, task] of tasks) {
        taskStates.add(task.state.kind);
        compare("task", task, others.get(seq)!);
      }
    },
    human: (human, other) =>
      compare("human", human, other, { pending: compareRequests, closed: compareRequests }),
  });
}

function compareAgents(live: AgentState, read: AgentState): void {
  compare("agent", live, read, {
    task: (task, other) => {
      assert.equal(other?.seq, task?.seq, "the same task keeps the agent busy");
      noted("agent", "task", task?.seq);
    },
    // Messages that wait are compared with it, so that it says nothing of an empty mailbox.
    storedSeq: (seq, other) => {
      if (live.mailbox.size > 0) assert.equal(other, seq);
      noted("agent", "storedSeq", seq);
    },
  });
}

function compareRequests(live: Job["human"]["pending"], read: Job["human"]["pending"]): void {
  assert.deepEqual([...read.keys()].sort(), [...live.keys()].sort());
  for (const [id, entry] of live) compare("request", entry, read.get(id)!);
}

const long = { command: ["true"], lifecycle: "long_lived", safe_to_retry: true };
const retried = { max_attempts: 3, retry_backoff_ms: 1_000 };

/** One of everything that keeps a state. */
const everything = graph(
  "g",
  [
    router("in"),
    sensor("clock", { interval_ms: 2_000, complete_after: 20, output_message_type: "tick" }),
    sensor("file", { file: "flag", complete_after: 2 }),
    executor("work", ["true"], retried),
    module("thread", { module: "m.mjs", ...retried }),
    { ...executor("long", ["true"], long), services: [{ name: "s", port: 1 }] },
    {
      node_id: "pairs",
      agent_type: "aggregator",
      config: { complete_after: 3, output_message_type: "three" },
    },
    { node_id: "all", agent_type: "aggregator", config: { complete_run: false } },
    router("nowhere"),
  ],
  [
    ["in", "work"],
    ["in", "pairs"],
    ["clock", "thread"],
    ["file", "all"],
    ["work", "pairs"],
    ["thread", "long"],
    ["pairs", "all"],
    ["long", "nowhere"],
  ],
  {
    type: "service",
    policies: { failure_policy: "continue", timeout_seconds: 3_600 },
    outputs: ["report.md", "data.csv"],
    initial_inputs: { in: [1, 2, 3] },
  },
);

/** The wall clock and the steady one are far apart, so that a time which is not moved between them is noticed. */
const WALL_AHEAD_MS = 1_000_000_000;

class Driver {
  readonly #random: Random;
  readonly #journal = new MemoryJournal();
  readonly #id: () => string;
  #nowMs: number;
  #context: JobContext;
  #job: Job;
  #running: TaskStart[] = [];

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#nowMs = this.#random.below(10_000);
    this.#id = idSource(
      () => this.#nowMs + WALL_AHEAD_MS,
      () => this.#random.fraction(),
    );
    const parsed = parseManifest(everything);
    if (parsed.kind === "invalid") throw new Error(manifestProblemsText(parsed.problems));
    this.#context = this.#newContext("first");
    this.#job = submittedJob(
      {
        graph: parsed.graph,
        identity: null,
        manifestJson: JSON.stringify(everything),
        bundleFingerprint: null,
        hasOwnPayload: false,
        configurationJson: null,
        trace: null,
        ...defaultTerms,
      },
      this.#context,
    );
    start(this.#job);
  }

  async run(): Promise<void> {
    const actions = [
      () => this.#work(),
      () => this.#work(),
      () => this.#endOne(),
      () => this.#endOne(),
      () => this.#report(),
      () => this.#act(),
      () => this.#deliver(),
      () => this.#wait(),
      () => this.#hold(),
      () => this.#answerOne(),
      () => this.#retryLetters(),
    ];
    for (let n = 0; n < 120 && !isOver(this.#job); n++) {
      this.#random.pick(actions)();
      if (this.#random.chance(0.4)) await this.#commit();
      if (this.#random.chance(0.03)) await this.#restart();
    }
  }

  #newContext(owner: string): JobContext {
    const slots = new PoolSlots({ default: 2 }, this.#id, () => 0);
    slots.onGranted = (key, lease) => {
      if (!slotsGranted(this.#job, parseSlotsKey(key), lease)) slots.release(key);
    };
    return {
      owner,
      clock: {
        nowMs: () => this.#nowMs + WALL_AHEAD_MS,
        steadyMs: () => this.#nowMs,
        after: () => () => {},
        soon: () => {},
      },
      schemaProblem: () => null,
      randomness: { id: this.#id, fraction: () => this.#random.fraction() },
      slots,
      timers: new TimerQueue(() => true),
    };
  }

  async #commit(): Promise<void> {
    const { changes, effects } = takePart(this.#job);
    assert.deepEqual(this.#journal.apply([changes]), { lost: [], unwritable: [] });
    const isStopped = ({ ref }: TaskStart) => effects.stops.some((one) => isDeepStrictEqual(one, ref));
    this.#running = [...this.#running, ...effects.starts].filter((one) => !isStopped(one));
    if (!isOver(this.#job)) compareJobs(this.#job, await this.#read());
  }

  async #read(): Promise<Job> {
    const image = await this.#journal.load(this.#job.jobId);
    return readJob(image!, this.#job.graph, this.#context);
  }

  async #restart(): Promise<void> {
    if (this.#job.revision === 0 || isOver(this.#job)) return;
    this.#running = [];
    this.#context = this.#newContext(this.#id());
    await this.#journal.claim(this.#context.owner, 1);
    this.#job = await this.#read();
    goOnAfterRestart(this.#job);
  }

  #work(): void {
    for (let n = this.#random.between(1, 20); n > 0 && hasWork(this.#job); n--) step(this.#job);
  }

  #endOne(): void {
    const start = this.#random.pick(this.#running.length > 0 ? this.#running : [null]);
    // A long-lived worker that exits is gone for good.
    if (start === null || (start.agentId === "long" && this.#random.chance(0.9))) return;
    this.#running = this.#running.filter((one) => one !== start);
    taskEnded(this.#job, start.ref, this.#outcome(start.kind));
    this.#context.slots.release(slotsKey(start.ref));
  }

  /** A long-lived worker does something while it runs. */
  #act(): void {
    const start = this.#running.find(({ agentId }) => agentId === "long");
    if (start !== undefined) taskActions(this.#job, start.ref, this.#actions());
  }

  #outcome(kind: TaskStart["kind"]): TaskOutcome {
    const roll = this.#random.fraction();
    if (roll < 0.15) return { kind: "interrupted", reason: "stopped" };
    const command = kind === "command" ? { ...nothingSaid, usage: { cpuMs: 5, rssBytesMax: 100 } } : null;
    const artifacts = this.#random.chance(0.2) ? [this.#artifact()] : [];
    if (roll < 0.45) {
      return { kind: "failed", code: "executor.exit_nonzero", message: "it failed", command, artifacts };
    }
    return {
      kind: "succeeded",
      actions: this.#actions(),
      command,
      artifacts,
      observation: { n: this.#id() },
    };
  }

  #actions(): WorkerActions {
    return {
      ...noActions,
      emits: this.#random.chance(0.5) ? [{ type: "said", body: { n: this.#random.below(9) }, to: null }] : [],
      nextState: this.#random.chance(0.5) ? { count: this.#random.below(9) } : undefined,
    };
  }

  #artifact() {
    const name = this.#random.pick(["report.md", "data.csv", "other"]);
    const artifactId = `art_${this.#id()}`;
    const fixed = { kind: "output", title: null, primary: false, contentType: "text/plain" } as const;
    return { ...fixed, artifactId, agentId: "work", name, size: 3, sha256: "0", createdAtMs: this.#nowMs };
  }

  /** A command says something while it runs. */
  #report(): void {
    if (this.#running.length === 0) return;
    const { ref } = this.#random.pick(this.#running);
    const question = {
      prompt: this.#random.pick(["Which one?", "Really?"]),
      ...(this.#random.chance(0.5) && { timeout_seconds: this.#random.between(1, 20) }),
      ...(this.#random.chance(0.5) && { request_id: this.#random.pick(["a", "b", "c"]) }),
      ...(this.#random.chance(0.3) && { reply: "message" }),
    };
    const payloads: readonly (readonly [string, JsonObject])[] = [
      ["log", { level: "warn", message: "so" }],
      ["metric", { tokens: { input: 3, output: 4 } }],
      ["human_input_requested", question],
    ];
    const [type, payload] = this.#random.pick(payloads);
    taskEvents(this.#job, ref, [{ type, payload }]);
  }

  #deliver(): void {
    const to = this.#random.below(this.#job.agents.length);
    const ttlMs = this.#random.chance(0.3) ? this.#random.between(1, 3_000) : null;
    deliver(this.#job, to, { from: null, type: "message", body: { n: this.#random.below(9) }, ttlMs });
  }

  /** Time passes, and the timers that are due go off. */
  #wait(): void {
    this.#nowMs += this.#random.between(1, 2_000);
    for (;;) {
      const timer = this.#context.timers.popDue(this.#nowMs);
      if (timer === undefined || isOver(this.#job)) return;
      const { what } = timer;
      if (what.kind === "deadline") deadlineDue(this.#job, this.#nowMs);
      else if (what.kind === "retry") retryDue(this.#job, what.taskSeq);
      else if (what.kind === "sensor") sensorTimerDue(this.#job, what.agentIndex);
      else expireRequest(this.#job, what.requestId);
    }
  }

  #hold(): void {
    if (this.#job.status === "paused") resume(this.#job);
    else if (this.#random.chance(0.3)) pause(this.#job);
  }

  #answerOne(): void {
    const [requestId] = this.#job.human.pending.keys();
    if (requestId === undefined) return;
    answer(this.#job, {
      requestId,
      decision: "yes",
      comment: null,
      dataJson: '{"n":1}',
      principal: "somebody",
    });
  }

  #retryLetters(): void {
    const stored = this.#journal.jobs.get(this.#job.jobId);
    if (stored === undefined) return;
    const open = stored.deadLetters.filter(({ deadLetterId }) => !stored.retriedLetters.has(deadLetterId));
    retryDeadLetters(this.#job, open.slice(0, 1));
  }
}

const nothingSaid = { exitCode: 0, signal: null, stdout: "", stderr: "", durationMs: 1 } as const;
const SEEDS = sized(50, 500);

test(`after every batch the journal holds the whole state (${SEEDS} random jobs)`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await new Driver(seed).run().catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed.`, { cause });
    });
  }
});

test("every field that is stored took two values at least in these jobs, and every excuse is needed", () => {
  const same = [...seen].filter(([, values]) => values.size < 2).map(([name]) => name);
  assert.deepEqual(same, []);
  const excuses = Object.entries(notStored).flatMap(([record, fields]) =>
    Object.keys(fields).map((field) => `${record}.${field}`),
  );
  assert.deepEqual([...excused].sort(), excuses.sort());
  assert.deepEqual([...taskStates].sort(), ["backoff", "ended", "queued", "running"]);
});
