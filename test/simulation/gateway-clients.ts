// Clients of the gateway: they ask for runs and for operations under idempotency keys, again until they are answered
// and sometimes afterwards, and they pause, resume and cancel runs. They know only what they were answered.
//
// W1. Requests with one key have one effect and one answer, whichever process answers; another request under the same
//     key is refused.
// W4. A run whose cancellation was acknowledged is cancelled.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Effect } from "../../src/http/core/idempotency.ts";
import { Problem } from "../../src/http/core/problem.ts";
import type { DesiredState, GatewayWrites } from "../../src/launch/records.ts";
import { DomainError } from "../../src/lib/domain-error.ts";
import { isUnavailable } from "../../src/operations/work-queue.ts";
import type { GatewayProcess } from "./gateway-process.ts";
import type { GatewayWorld } from "./gateway-world.ts";

const PATIENCE_MS = 3_000;

interface Request {
  readonly kind: "run" | "operation";
  readonly key: string;
  /** The job of a run, the target of an operation. */
  readonly of: string;
  /** What it was answered, over and over. */
  readonly answers: string[];
  repeats: number;
}

/** What is done after the commit of a request that was not answered before. */
type Started = (process: GatewayProcess) => void;

export class GatewayClients {
  readonly requests: Request[] = [];
  readonly cancelled = new Set<string>();
  readonly #world: GatewayWorld;

  constructor(world: GatewayWorld) {
    this.#world = world;
  }

  /** Plans a request at a random moment. */
  planRequest(kind: Request["kind"], of: string, spanMs: number): void {
    const { random } = this.#world;
    const request: Request = {
      kind,
      key: `key-${this.requests.length}`,
      of,
      answers: [],
      repeats: random.chance(0.4) ? random.between(1, 3) : 0,
    };
    this.requests.push(request);
    const atMs = random.between(0, spanMs);
    for (let times = random.chance(0.2) ? 2 : 1; times > 0; times--) this.#askAfter(atMs, request);
    if (random.chance(0.2)) this.#world.plan(atMs + spanMs, null, () => this.#misuse(request));
  }

  planControl(spanMs: number): void {
    const { random } = this.#world;
    const desired = random.pick(["paused", "running", "cancelled"] as const);
    this.#world.plan(random.between(1, spanMs), null, () => {
      const runs = this.runIds();
      if (runs.length > 0) this.control(random.pick(runs), desired);
    });
  }

  control(runId: string, desired: DesiredState): void {
    this.#world.anyProcess.runs.control(runId, desired).then(
      () => {
        if (desired === "cancelled") this.cancelled.add(runId);
      },
      (error: unknown) => this.#mayBeRefused(error),
    );
  }

  /** The runs that were answered. */
  runIds(): readonly string[] {
    const answered = this.requests.filter(({ kind, answers }) => kind === "run" && answers.length > 0);
    return answered.map(({ answers }) => idIn(answers[0]!));
  }

  #askAfter(delayMs: number, request: Request): void {
    this.#world.plan(delayMs, null, () => this.#ask(request));
  }

  #ask(request: Request): void {
    const { random, counts, anyProcess: process } = this.#world;
    let started: Started = () => {};
    const prepare = () => this.#prepare(process, request, (then) => (started = then));
    let isOver = false;
    const again = (delayMs: number) => {
      if (!isOver) this.#askAfter(delayMs, request);
      isOver = true;
    };
    process.idempotency.answer(this.#asked(request, { n: 1 }), prepare).then(
      ({ answer, isReplay }) => {
        isOver = true;
        if (isReplay) counts.add("answer that was given again");
        else started(process);
        request.answers.push(answer.body);
        if (request.repeats-- > 0) this.#askAfter(random.between(0, 2_000), request);
      },
      (error: unknown) => {
        this.#mayBeRefused(error);
        again(random.between(200, 2_000));
      },
    );
    // A process that has died never answers, and one that stands still not for a long time.
    this.#world.plan(PATIENCE_MS, null, () => again(0));
  }

  #asked({ kind, of, key }: Request, content: JsonObject) {
    return { principal: "somebody", method: "POST", path: `/${kind}/${of}`, key, content };
  }

  async #prepare(
    process: GatewayProcess,
    { kind, key, of }: Request,
    then: (started: Started) => void,
  ): Promise<Effect> {
    if (kind === "run") {
      const trigger = { kind: "api", id: null } as const;
      const asked = { inputs: { key }, configOverrides: null, trigger, trace: null };
      const insert = await process.runs.prepare(of, asked);
      return async (writes) => {
        const run = await insert(writes);
        then(({ runs }) => runs.accepted(run));
        return answerOf(run.runId);
      };
    }
    return async (writes: GatewayWrites) => {
      const asked = { kind: "blueprint_addition", target: of, request: { key } } as const;
      const operation = await process.operations.request(writes, asked);
      then(({ operations }) => operations.begin(operation));
      return answerOf(operation.operationId);
    };
  }

  /** Somebody uses a key again for something else. */
  #misuse(request: Request): void {
    const { anyProcess: process, counts } = this.#world;
    if (request.answers.length === 0) return;
    const refused = process.idempotency.answer(this.#asked(request, { n: 2 }), async () => {
      throw new Error(`W1: ${request.key} was used for something else`);
    });
    refused.then(
      () => this.#world.broken(new Error(`W1: ${request.key} answered another request`)),
      (error: unknown) => {
        if (error instanceof Problem && error.code === "idempotency_key_reused") {
          counts.add("key that was used for something else");
        } else this.#mayBeRefused(error);
      },
    );
  }

  #mayBeRefused(error: unknown): void {
    if (isUnavailable(error)) return;
    if (error instanceof DomainError) {
      if (error.code === "no_free_port") this.#world.counts.add("run without a free port");
      if (error.code === "blueprint_busy") this.#world.counts.add("operation on a busy target");
      return;
    }
    this.#world.broken(error);
  }

  /** Judges what was answered, once everything has come to rest. */
  judge(): void {
    for (const { kind, key, answers } of this.requests) {
      assert.ok(answers.length > 0, `W1: ${key} was answered in the end`);
      assert.equal(new Set(answers).size, 1, `W1: ${key} was answered in several ways`);
      const { connection } = this.#world.database;
      const sql =
        kind === "run"
          ? "SELECT run_id AS id FROM runs WHERE inputs_json = ?"
          : "SELECT operation_id AS id FROM operations WHERE request_json = ?";
      const rows = connection.prepare(sql).all(JSON.stringify({ key }));
      assert.deepEqual(
        rows.map(({ id }) => id),
        [idIn(answers[0]!)],
        `W1: ${key} had one effect`,
      );
    }
  }
}

const answerOf = (id: string) => ({ status: 202, headers: {}, body: JSON.stringify({ id }) });
const idIn = (body: string) => (JSON.parse(body) as { id: string }).id;
