// Control of jobs wherever they are: by the engine of this node for those that it holds, by the owner's node for the others.
//
// - Answers and errors are those of an engine, so that nobody needs to know where a job is.
// - Ownership may change between the look at a job's owner and the call: a node that does not hold the job any more says
//   so, and the owner is looked up again, once.
// - A call whose answer was lost may have had its effect. Only a message is not sent again then: everything else changes
//   nothing when it is asked for twice.

import { EngineUnavailable, JobUnwritable } from "../engine/batch.ts";
import type { PersonsAnswer } from "../engine/job/human-answers.ts";
import type { Letter } from "../engine/job/messages.ts";
import type {
  ControlAnswer,
  DeliverAnswer,
  ExternalMessage,
  HumanAnswer,
  JobControl,
  RetryAnswer,
} from "../engine/job-control.ts";
import type { Priority } from "../engine/share.ts";
import {
  actionToWire,
  type ControlAction,
  type ControlOutcome,
  outcomeFromWire,
  WireProblem,
} from "./wire/control.ts";
import { type NodeClient, PeerUnreachable } from "./wire/peers.ts";

/** Who has an open job. */
export interface JobPlace {
  readonly owner: string;
  /** Where its node is reached, as host:port; null when it is lost, or cannot be reached by others. */
  readonly address: string | null;
}

export interface RemoteControlParts {
  readonly engine: JobControl & { holds(jobId: string): boolean };
  /** This node's owner, as it is now. */
  readonly owner: () => string;
  /** @returns null when there is no such open job. @throws JournalUnavailable */
  readonly placeOf: (jobId: string) => Promise<JobPlace | null>;
  readonly peers: { call<A>(address: string, call: (client: NodeClient) => Promise<A>): Promise<A> };
}

const LOST = "its node is lost and its jobs are being taken over";
/** Of the letters of one call, unless a single one has more. */
const LETTERS_CHARS_MAX = 1024 * 1024;

/** What an engine says; the other outcomes are errors, or not an answer to what was asked. */
type Read<Answer> = (outcome: ControlOutcome) => Answer | null;

export class RemoteControl implements JobControl {
  readonly #parts: RemoteControlParts;

  constructor(parts: RemoteControlParts) {
    this.#parts = parts;
  }

  cancel(jobId: string): Promise<ControlAnswer> {
    return this.#ask(jobId, (engine) => engine.cancel(jobId), { kind: "cancel" }, changed);
  }

  pause(jobId: string): Promise<ControlAnswer> {
    return this.#ask(jobId, (engine) => engine.pause(jobId), { kind: "pause" }, changed);
  }

  resume(jobId: string): Promise<ControlAnswer> {
    return this.#ask(jobId, (engine) => engine.resume(jobId), { kind: "resume" }, changed);
  }

  prioritize(jobId: string, priority: Priority): Promise<ControlAnswer> {
    const here = (engine: JobControl) => engine.prioritize(jobId, priority);
    return this.#ask(jobId, here, { kind: "prioritize", priority }, changed);
  }

  deliver(jobId: string, message: ExternalMessage): Promise<DeliverAnswer> {
    const here = (engine: JobControl) => engine.deliver(jobId, message);
    return this.#ask(jobId, here, { kind: "deliver", message }, (outcome) =>
      outcome.kind === "accepted" || outcome.kind === "unknown_agent" ? outcome : null,
    );
  }

  answerHuman(jobId: string, given: PersonsAnswer): Promise<HumanAnswer> {
    const here = (engine: JobControl) => engine.answerHuman(jobId, given);
    return this.#ask(jobId, here, { kind: "answer_human", given }, (outcome) =>
      outcome.kind === "answered" || outcome.kind === "already_closed" || outcome.kind === "unknown_request"
        ? outcome
        : null,
    );
  }

  async retryDeadLetters(jobId: string, letters: readonly Letter[]): Promise<RetryAnswer> {
    const retried: string[] = [];
    for (const some of portions(letters)) {
      const here = (engine: JobControl) => engine.retryDeadLetters(jobId, some);
      const action = { kind: "retry_dead_letters", letters: some } as const;
      const answer = await this.#ask<RetryAnswer>(jobId, here, action, (outcome) =>
        outcome.kind === "retried" ? { kind: "done", retried: outcome.deadLetterIds } : null,
      );
      if (answer.kind === "not_open") return answer;
      retried.push(...answer.retried);
    }
    return { kind: "done", retried };
  }

  async #ask<Answer extends { readonly kind: string }>(
    jobId: string,
    here: (engine: JobControl) => Promise<Answer>,
    action: ControlAction,
    read: Read<Answer>,
  ): Promise<Answer | { readonly kind: "not_open" }> {
    const { engine, owner, placeOf } = this.#parts;
    // What ends while it is asked is looked up too, and found to be over.
    if (engine.holds(jobId)) {
      const answer = await here(engine);
      if (answer.kind !== "not_open") return answer;
    }
    for (let looks = 0; looks < 2; looks++) {
      const place = await placeOf(jobId);
      if (place === null) break;
      if (place.owner === owner()) return here(engine);
      if (place.address === null) throw new EngineUnavailable(lostText(jobId));
      const outcome = await this.#call({ ...place, address: place.address }, jobId, action);
      if (outcome.kind === "not_held") continue;
      if (outcome.kind === "unavailable") throw new EngineUnavailable(outcome.message, outcome.mayRetry);
      if (outcome.kind === "unwritable") throw new JobUnwritable(outcome.message);
      const answer = read(outcome);
      if (answer === null) throw new WireProblem(`Node ${place.address} has answered ${outcome.kind}.`);
      return answer;
    }
    return { kind: "not_open" };
  }

  async #call(
    { owner, address }: { readonly owner: string; readonly address: string },
    jobId: string,
    action: ControlAction,
  ): Promise<ControlOutcome> {
    const request = { owner, jobId, action: actionToWire(action) };
    try {
      const { result } = await this.#parts.peers.call(address, (client) => client.control(request));
      return outcomeFromWire(result);
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      const mayRetry = action.kind !== "deliver" || !error.mayHaveArrived;
      throw new EngineUnavailable(mayRetry ? lostText(jobId) : unknownText(jobId), mayRetry);
    }
  }
}

const changed: Read<ControlAnswer> = (outcome) =>
  outcome.kind === "changed" ? { kind: "done", status: outcome.status } : null;

const lostText = (jobId: string) => `Job ${jobId} cannot be asked now: ${LOST}. Try again in a moment.`;
const unknownText = (jobId: string) =>
  `It is not known whether the message for job ${jobId} was accepted: the answer of its node was lost. Look at the job's events before you send it again.`;

/** Messages between nodes have a largest size. */
function* portions(letters: readonly Letter[]): Generator<readonly Letter[]> {
  let some: Letter[] = [];
  let chars = 0;
  for (const letter of letters) {
    const more = JSON.stringify(letter.message).length;
    if (some.length > 0 && chars + more > LETTERS_CHARS_MAX) {
      yield some;
      some = [];
      chars = 0;
    }
    some.push(letter);
    chars += more;
  }
  if (some.length > 0) yield some;
}
