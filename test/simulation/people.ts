// People who look at runs now and then: they answer what is asked of them, some twice and some at the same moment, and
// they send dead letters again. They know only what is in the journal, as the API's readers do.
//
// I8. A request closes once, an answer that was acknowledged is the one that stands, and no attempt is given it twice.
// I9. A dead letter is sent again once, and its stored row shows it.

import assert from "node:assert/strict";
import type { HumanRequest } from "../../src/engine/journal.ts";
import { isTerminal } from "../../src/engine/journal.ts";
import type { StoredJob } from "../support/memory-journal.ts";
import { parse } from "./checker.ts";
import type { World } from "./world.ts";

export class People {
  readonly #world: World;
  /** Decisions that were answered with "answered", by job and request. */
  readonly #acknowledged = new Map<string, string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Lets people look at everything a few times within the span. */
  planLooks(count: number, spanMs: number): void {
    const { random } = this.#world;
    for (; count > 0; count--) {
      this.#world.plan(random.between(10, spanMs), null, () => {
        for (const [jobId, request] of this.#open()) if (random.chance(0.5)) this.#answer(jobId, request);
        this.#retrySome();
      });
    }
  }

  /** Answers everything that is open. @returns whether there was something */
  answerAll(): boolean {
    const open = this.#open();
    for (const [jobId, request] of open) this.#answer(jobId, request);
    return open.length > 0;
  }

  #open(): (readonly [jobId: string, request: HumanRequest])[] {
    return [...this.#world.journal.jobs]
      .filter(([, job]) => !isTerminal(job.progress.status))
      .flatMap(([jobId, job]) =>
        [...job.humanRequests.values()]
          .filter(({ status }) => status === "pending")
          .map((request) => [jobId, request] as const),
      );
  }

  #answer(jobId: string, { requestId }: HumanRequest): void {
    const { random } = this.#world;
    for (let times = random.chance(0.3) ? 2 : 1; times > 0; times--) {
      const decision = `decision ${random.below(1_000_000)}`;
      const given = { requestId, decision, comment: null, dataJson: null, principal: "somebody" };
      this.#world
        .anyEngineOf(jobId)
        .answerHuman(jobId, given)
        .then(
          (answer) => {
            if (answer.kind !== "answered") return;
            const known = this.#acknowledged.get(`${jobId} ${requestId}`);
            assert.equal(known, undefined, `I8: ${requestId} of ${jobId} was answered twice`);
            this.#acknowledged.set(`${jobId} ${requestId}`, decision);
          },
          () => {},
        );
    }
  }

  #retrySome(): void {
    const { random, journal } = this.#world;
    for (const [jobId, { deadLetters, retriedLetters }] of journal.jobs) {
      const open = deadLetters.filter(({ deadLetterId }) => !retriedLetters.has(deadLetterId));
      if (open.length === 0 || random.chance(0.5)) continue;
      const letters = random.chance(0.5) ? open : open.slice(0, 1);
      for (let times = random.chance(0.3) ? 2 : 1; times > 0; times--) {
        this.#world
          .anyEngineOf(jobId)
          .retryDeadLetters(jobId, letters)
          .catch(() => {});
      }
    }
  }

  /** Judges a job that is over. */
  judge(jobId: string, job: StoredJob): void {
    const events = job.events.map(parse);
    const closed = new Map<unknown, string>();
    for (const { type, payload } of events) {
      if (type !== "human_input_answered" && type !== "human_input_timed_out") continue;
      assert.ok(
        !closed.has(payload.request_id),
        `I8: ${String(payload.request_id)} of ${jobId} closed twice`,
      );
      closed.set(payload.request_id, String(payload.decision));
    }
    let pending = 0;
    for (const { requestId, status, response } of job.humanRequests.values()) {
      if (status === "pending") pending++;
      assert.equal(response?.decision, closed.get(requestId), `I8: ${requestId} of ${jobId}`);
      const acknowledged = this.#acknowledged.get(`${jobId} ${requestId}`);
      if (acknowledged !== undefined) assert.equal(response?.decision, acknowledged, `I8: ${requestId}`);
    }
    assert.equal(job.progress.humanPending, pending, `I8: ${jobId} counts what is open`);
    if (job.progress.status === "completed") assert.equal(pending, 0, `I8: ${jobId} waited for everybody`);
    const retried = events.filter(({ type }) => type === "message_retried").map(({ payload }) => payload);
    const letters = retried.map((payload) => String(payload.dead_letter_id));
    assert.equal(new Set(letters).size, letters.length, `I9: a dead letter of ${jobId} was sent twice`);
    assert.deepEqual(new Set(letters), job.retriedLetters, `I9: ${jobId} stores what was sent again`);
  }
}

/** How many messages each agent was sent because somebody retried a dead letter. */
export function retriedOf(job: StoredJob): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { type, agent_id: agentId } of job.events.map(parse)) {
    if (type === "message_retried") counts.set(agentId!, (counts.get(agentId!) ?? 0) + 1);
  }
  return counts;
}
