// Work for a cluster: runs whose commands have grandchildren, fail once, and send messages, submitted to whichever node, under keys, and
// again when the answer was lost; people who cancel some of them; and readers who follow some of them from node to node.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Random } from "../simulation/random.ts";
import { type Answer, createJob, type Frame, frames, type SeenEvent, walk } from "../support/gateway-api.ts";
import { aggregator, executor, graph, router } from "../support/graphs.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";
import type { Effects } from "./effects.ts";
import { type ToldRun, wrongWithList, wrongWithRun } from "./histories.ts";

/** How long a node may take to answer before another one is asked. */
const ANSWER_MS = 5_000;
/** How long work may take behind the last fault. */
const END_MS = 180_000;
/** How many wrong histories are shown when the judgement fails. */
const SHOWN_MAX = 3;

const MADE = "made.txt";
/** Leaves a file with the number of its attempt, and a process that only its runtime ends. */
const SHELL = `sleep 600 >/dev/null 2>&1 & sleep 1; printf %s "$SVC_ATTEMPT" >"$SVC_OUTPUT_DIR/${MADE}"; echo done`;
const PARTS = 3;
const PYTHON = `
import json, subprocess
subprocess.run(["sleep", "0.7"], check=True)
print(json.dumps({"emit_messages": [{"type": "part", "body": {"n": n}} for n in range(${PARTS})]}))`;
const FAILS_ONCE = `
const { spawnSync } = process.getBuiltinModule("node:child_process");
spawnSync("sleep", ["0.3"]);
process.exitCode = process.env.SVC_ATTEMPT === "1" ? 1 : 0;`;

/** How many messages each agent of a run that completes has received. */
const RECEIVED = { in: 1, shell: 1, python: 1, node: 1, pass: PARTS, out: PARTS + 2 };

function manifestOf(effects: Effects, policies: JsonObject): JsonObject {
  const command = (id: string, more: JsonObject, ...words: readonly string[]) => {
    const { command, ...config } = effects.command(...words);
    return executor(id, command, { ...config, ...more });
  };
  return graph(
    "survivor",
    [
      router("in", { emit_type: "work" }),
      command("shell", {}, "sh", "-c", SHELL),
      command("python", { output_message_type: null }, "python3", "-c", PYTHON),
      command("node", { max_attempts: 3, retry_backoff_ms: 10 }, process.execPath, "-e", FAILS_ONCE),
      router("pass", { emit_type: "done" }),
      aggregator("out", { complete_after: RECEIVED.out }),
    ],
    [
      ["in", "shell", "work"],
      ["in", "python", "work"],
      ["in", "node", "work"],
      ["python", "pass", "part"],
      ["pass", "out"],
      ["shell", "out"],
      ["node", "out"],
    ],
    { policies },
  );
}

/** The nodes that serve the API now. */
interface Serving {
  readonly serving: readonly { readonly name: string; readonly program: Program }[];
}

export interface LoadOptions {
  readonly cluster: Serving;
  readonly effects: Effects;
  readonly random: Random;
}

/** What the faults have caused. */
export interface Found {
  /** How often jobs were recovered. */
  readonly recovered: number;
  /** How many attempts were lost. */
  readonly interrupted: number;
}

export class Load {
  readonly #cluster: Serving;
  readonly #effects: Effects;
  readonly #random: Random;
  /** Jobs whose runs are started, one for each way in which work is recovered and placed. */
  #jobIds: readonly string[] = [];
  /** The run of each key that was acknowledged. */
  readonly #runs = new Map<string, string>();
  readonly #cancelled = new Set<string>();
  readonly #readers: Promise<void>[] = [];
  /** What readers were told who followed a run from node to node. */
  readonly #followed = new Map<string, Frame[]>();
  #keys = 0;

  constructor({ cluster, effects, random }: LoadOptions) {
    this.#cluster = cluster;
    this.#effects = effects;
    this.#random = random;
  }

  get acknowledged(): number {
    return this.#runs.size;
  }

  /** @param policies of the jobs whose runs are submitted */
  async prepare(policies: readonly JsonObject[]): Promise<void> {
    this.#jobIds = await Promise.all(
      policies.map((one) => createJob(this.#anyNode(), manifestOf(this.#effects, one))),
    );
  }

  /** Starts a run, at one node after another until one of them has said that it is there. */
  async submit(): Promise<void> {
    const key = `key-${++this.#keys}`;
    const jobId = this.#random.pick(this.#jobIds);
    const post = () => this.#ask("POST", `/jobs/${jobId}/runs`, {}, key);
    const runId = await this.#answered(`${key} is acknowledged`, post, 202);
    this.#runs.set(key, runId);
    if (this.#random.chance(0.2)) assert.equal(await this.#answered(`${key} is repeated`, post, 202), runId);
    if (this.#random.chance(0.1)) this.#readers.push(this.#follow(runId));
    if (this.#random.chance(0.1)) await this.#cancel(runId);
  }

  async #cancel(runId: string): Promise<void> {
    this.#cancelled.add(runId);
    const patch = () => this.#ask("PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    // 409: it has ended.
    await this.#answered(`${runId} is cancelled`, patch, 200, 202, 409);
  }

  /** Resumes a run that is paused by manual_recover. */
  async #resume(runId: string): Promise<void> {
    const patch = () => this.#ask("PATCH", `/runs/${runId}`, { desired_state: "running" });
    // 409: it has ended.
    await this.#answered(`${runId} is resumed`, patch, 200, 202, 409);
  }

  /** Waits until everything has ended that was submitted, and judges it. @throws AssertionError */
  async judge(): Promise<Found> {
    const runIds = [...this.#runs.values()];
    const nodes = this.#cluster.serving;
    const [first] = nodes;
    assert.ok(first !== undefined);
    const records = await until(
      "all runs have ended",
      async () => {
        const found = await this.#records(first.program).catch(() => []);
        for (const { run_id, status } of found) if (status === "paused") await this.#resume(String(run_id));
        return (
          found.length >= runIds.length && found.every(({ finished_at }) => finished_at !== null) && found
        );
      },
      END_MS,
    );
    await Promise.all(this.#readers);
    const wrong: string[] = [];
    for (const { name, program } of nodes) {
      const listed = await this.#records(program);
      wrong.push(
        ...wrongWithList(
          runIds,
          listed.map(({ run_id }) => String(run_id)),
        ).map((text) => `${name}: ${text}`),
      );
    }
    const histories = new Map<string, readonly SeenEvent[]>();
    for (const { run_id: id } of records) {
      const runId = String(id);
      const told = new Map<string, ToldRun>();
      for (const { name, program } of nodes) told.set(name, await tell(program, runId));
      const [any] = told.values() as unknown as [ToldRun];
      const { events } = any;
      histories.set(runId, events);
      wrong.push(...wrongWithRun(runId, told), ...this.#wrongEnd(runId, any));
      const followed = this.#followed.get(runId);
      if (followed !== undefined && followed.map(({ id }) => id).join() !== events.map(({ id }) => id).join())
        wrong.push(`${runId}: who followed it from node to node was told ${followed.map(({ id }) => id)}`);
    }
    wrong.push(...(await this.#effects.wrongWith(histories)));
    const isWrong = (runId: string) => wrong.some((text) => text.includes(runId));
    const shown = [...histories].filter(([runId]) => isWrong(runId)).slice(0, SHOWN_MAX);
    assert.equal(wrong.length, 0, [...wrong, ...shown.map(([, events]) => linesOf(events))].join("\n"));
    await until("nothing of any command is left", async () => (await this.#effects.running()).length === 0);
    const all = [...histories.values()].flat();
    const count = (type: string) => all.filter((event) => event.type === type).length;
    return { recovered: count("job_recovered"), interrupted: count("executor_interrupted") };
  }

  #wrongEnd(runId: string, { status, events, files }: ToldRun): readonly string[] {
    if (status === "cancelled" && this.#cancelled.has(runId)) return [];
    if (status !== "completed") return [`${runId}: it is ${status}: ${JSON.stringify(events.at(-1))}`];
    const made = events.find(
      ({ type, agent_id }) => type === "sandbox_job_completed" && agent_id === "shell",
    );
    if (files.join() !== String(made?.payload.attempt))
      return [`${runId}: attempt ${made?.payload.attempt} succeeded, and its files are of ${files}`];
    const received = events.filter(({ type }) => type === "agent_message_received");
    const counts = Object.keys(RECEIVED).map((agent) => [
      agent,
      received.filter(({ agent_id }) => agent_id === agent).length,
    ]);
    const found = JSON.stringify(Object.fromEntries(counts));
    return found === JSON.stringify(RECEIVED) ? [] : [`${runId}: messages were received so: ${found}`];
  }

  async #records(program: Program): Promise<readonly JsonObject[]> {
    const lists = await Promise.all(this.#jobIds.map((jobId) => walk(program, `/jobs/${jobId}/runs`)));
    return lists.flat();
  }

  #anyNode(): Program {
    return this.#random.pick(this.#cluster.serving).program;
  }

  /** Asks whichever nodes, again and again, until one has given one of these answers. @returns the run's id */
  #answered(
    what: string,
    ask: () => Promise<Answer | null>,
    ...statuses: readonly number[]
  ): Promise<string> {
    return until(
      what,
      async () => {
        const answer = await ask();
        if (answer === null || answer.status === 503) return null;
        assert.ok(statuses.includes(answer.status), `${what}: ${answer.status} ${answer.text}`);
        return String(answer.body.run_id ?? "ended");
      },
      END_MS,
    );
  }

  /** @returns null when there is no answer: it may have been done or not */
  async #ask(method: string, path: string, body: JsonObject, key?: string): Promise<Answer | null> {
    if (this.#cluster.serving.length === 0) return null;
    try {
      const answer = await fetch(`${this.#anyNode().api}${path}`, {
        method,
        headers: { "content-type": "application/json", ...(key !== undefined && { "idempotency-key": key }) },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) };
    } catch {
      return null;
    }
  }

  /** Reads a run's stream to its end, and goes on at another node whenever it breaks off. */
  async #follow(runId: string): Promise<void> {
    const told: Frame[] = [];
    this.#followed.set(runId, told);
    await until(
      `the stream of ${runId} comes to its end`,
      async () => {
        try {
          const after = String(told.at(-1)?.id ?? 0);
          const path = `/runs/${runId}/events/stream`;
          const headers = { "last-event-id": after };
          for await (const frame of frames(this.#anyNode(), path, headers, ANSWER_MS)) told.push(frame);
        } catch {
          // Its node is gone or stopped, or cannot read it, or was read from long enough.
        }
        return told.at(-1)?.event.match(/^job_(completed|failed|cancelled)$/) ?? null;
      },
      END_MS,
    );
  }
}

/** A history for people: an event in a line. */
function linesOf(events: readonly SeenEvent[]): string {
  return events
    .map(({ id, type, timestamp, agent_id, payload }) =>
      [id, timestamp.slice(11, -1), type, agent_id ?? "", JSON.stringify(payload).slice(0, 100)].join(" "),
    )
    .join("\n");
}

async function tell(program: Program, runId: string): Promise<ToldRun> {
  const [run, events, stream, artifacts] = await Promise.all([
    fetch(`${program.api}/runs/${runId}`).then((answer) => answer.json() as Promise<JsonObject>),
    walk(program, `/runs/${runId}/events`),
    Array.fromAsync(frames(program, `/runs/${runId}/events/stream`)),
    walk(program, `/runs/${runId}/artifacts`),
  ]);
  const made = artifacts.filter(({ name }) => name === MADE);
  return {
    status: String(run.status),
    events: events as unknown as readonly SeenEvent[],
    streamed: stream.map(({ data }) => data as unknown as SeenEvent),
    files: await Promise.all(
      made.map(async ({ artifact_id: id }) => {
        const answer = await fetch(`${program.api}/runs/${runId}/artifacts/${id}`);
        return answer.ok ? answer.text() : `a file with status ${answer.status}`;
      }),
    ),
  };
}
