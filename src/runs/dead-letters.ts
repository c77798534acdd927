// Dead letters that are sent again: as new messages to the same agents, while the run is open; one alone also with another
// body, which is kept beside its own.
//
// - A letter is sent again once: requests for one run take turns, and each looks at what is on disk then.
// - Memory and work are bounded: letters are taken up a few at a time, each on disk before the next.

import { isoTime } from "../engine/event.ts";
import type { Letter } from "../engine/job/messages.ts";
import type { JobControl } from "../engine/job-control.ts";
import { type DeadLetterReason, isTerminal } from "../engine/journal.ts";
import type { JsonValue } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import type { Envelope } from "../engine/message.ts";
import { KeyedMutex } from "../lib/async.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { Page } from "../lib/page.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { noPaths, secretPathsIn } from "../security/secret-detection.ts";
import type { JobRecords } from "./job-records.ts";
import { type AskedRun, runEnded, whyNotOpen } from "./open-run.ts";
import { storedObject } from "./stored-json.ts";

const LETTERS_AT_ONCE = 100;

export type LetterStatus = "open" | "retried";
export const letterStatuses: readonly LetterStatus[] = ["open", "retried"];

/** A message that could not be processed. */
export interface DeadLetter {
  /** `dl_` and a time-ordered id. */
  readonly deadLetterId: string;
  readonly agentId: string | null;
  readonly reason: DeadLetterReason;
  readonly attempts: number;
  readonly status: LetterStatus;
  readonly createdAtMs: number;
  readonly retriedAtMs: number | null;
  /** The message as it stood in the mailbox. */
  readonly messageJson: string;
  /** `{principal, body}`: who sent it again with another body, and with which; null: it was sent as it was, or not at all. */
  readonly changeJson: string | null;
}

export interface DeadLetterPage {
  /** Null: whatever their status. */
  readonly status: LetterStatus | null;
  readonly limit: number;
  /** The last letter of the page before; null for the first page. */
  readonly before: string | null;
}

/** A letter with the gateway's run that it belongs to. */
export interface LetterOfRun {
  readonly runId: string;
  readonly letter: DeadLetter;
}

/** Of all runs of the gateway. */
export interface LettersOfRunsPage {
  readonly status: LetterStatus;
  readonly reason: DeadLetterReason | null;
  readonly runId: string | null;
  readonly jobId: string | null;
  readonly limit: number;
  /** The last letter of the page before; null for the first page. */
  readonly before: string | null;
}

/**
 * The dead letters of a job, as committed. A port, implemented in src/store: no read scans a history, and none finds
 * what a removed job has left.
 */
export interface DeadLetterRecords {
  /** Newest first. */
  deadLetters(jobId: string, page: DeadLetterPage): Promise<Page<DeadLetter>>;
  deadLetter(jobId: string, deadLetterId: string): Promise<DeadLetter | null>;
  /** Newest first, over all runs of the gateway. */
  lettersOfRuns(page: LettersOfRunsPage): Promise<Page<LetterOfRun>>;
  /** The newest open letter's id; null without one. */
  newestOpenLetter(jobId: string): Promise<string | null>;
  /** Open ones behind `after`, up to and including `through`, oldest first: few, to be worked on at once. */
  openLetters(
    jobId: string,
    range: { readonly after: string; readonly through: string; readonly limit: number },
  ): Promise<readonly DeadLetter[]>;
}

/** Result of the retry. */
export interface Retried {
  readonly retried: number;
  /** Letters that would only become dead again: their agent does not exist, has ended or has no room. */
  readonly notDeliverable: number;
}

export interface DeadLettersParts {
  readonly records: DeadLetterRecords;
  readonly jobs: Pick<JobRecords, "find" | "manifest">;
  readonly control: Pick<JobControl, "retryDeadLetters">;
  readonly secrets: Pick<ConfigurationSecrets, "encryptBody">;
}

/** A body in place of a letter's own, and who has given it. */
export interface ChangedBody {
  readonly body: JsonValue;
  readonly principal: string;
}

export class DeadLetters {
  readonly #parts: DeadLettersParts;
  readonly #turns = new KeyedMutex();

  constructor(parts: DeadLettersParts) {
    this.#parts = parts;
  }

  /** @throws DomainError `dead_letter_not_found` */
  async find(run: AskedRun, deadLetterId: string): Promise<DeadLetter> {
    const letter = await this.#parts.records.deadLetter(run.jobId, deadLetterId);
    if (letter === null) throw notFound(run, deadLetterId);
    return letter;
  }

  /**
   * Sends one letter again.
   *
   * @param change.body in place of its own; a mask in it keeps the secret that is there
   * @throws DomainError `dead_letter_not_found`, `already_retried`, `run_ended`; `conflict` when its agent can take
   *   nothing; `validation_failed` for a body that no message may have; EngineUnavailable
   */
  retry(run: AskedRun, deadLetterId: string, change: ChangedBody | null = null): Promise<Retried> {
    return this.#turns.run(run.jobId, async () => {
      const letter = await this.find(run, deadLetterId);
      if (letter.status === "retried") throw alreadyRetried(letter);
      const given = change === null ? givenOf(letter) : await this.#changed(run, letter, change);
      const retried = await this.#send(run, [given]);
      if (retried === 0) throw notDeliverable(letter);
      return { retried, notDeliverable: 0 };
    });
  }

  /**
   * Sends every letter again that is open when the request's turn comes; what becomes a letter meanwhile is not taken up.
   *
   * @throws DomainError `run_ended`; EngineUnavailable, when some letters may have been sent: asking again sends the rest
   */
  retryAll(run: AskedRun): Promise<Retried> {
    return this.#turns.run(run.jobId, async () => {
      if (isTerminal(run.status)) throw tooLate(run);
      const { records } = this.#parts;
      const through = await records.newestOpenLetter(run.jobId);
      const sum = { retried: 0, notDeliverable: 0 };
      for (let after = ""; through !== null; ) {
        const letters = await records.openLetters(run.jobId, { after, through, limit: LETTERS_AT_ONCE });
        const last = letters.at(-1);
        if (last === undefined) break;
        const retried = await this.#send(run, letters.map(givenOf));
        sum.retried += retried;
        sum.notDeliverable += letters.length - retried;
        after = last.deadLetterId;
      }
      return sum;
    });
  }

  async #changed({ jobId }: AskedRun, letter: DeadLetter, { body, principal }: ChangedBody): Promise<Letter> {
    const { jobs, secrets } = this.#parts;
    const given = givenOf(letter);
    const bytes = Buffer.byteLength(JSON.stringify(body));
    if (bytes > limits.messageBodyBytesMax) throw tooLong(bytes);
    const manifestJson = await jobs.manifest(jobId);
    const paths = manifestJson === null ? noPaths : secretPathsIn(await storedObject(manifestJson));
    const encrypted = await secrets.encryptBody(body, { paths, stored: given.message.body });
    if (encrypted.kind === "invalid") throw refused(encrypted.errors);
    return { ...given, message: { ...given.message, body: encrypted.value }, changedBy: principal };
  }

  /** @returns how many were sent */
  async #send(run: AskedRun, letters: readonly Letter[]): Promise<number> {
    const { control, jobs } = this.#parts;
    const answer = await control.retryDeadLetters(run.jobId, letters);
    if (answer.kind === "not_open") throw await whyNotOpen(jobs, run, NOTHING_TAKEN);
    return answer.retried.length;
  }
}

const givenOf = ({ deadLetterId, agentId, messageJson }: DeadLetter): Letter => ({
  deadLetterId,
  agentId,
  message: JSON.parse(messageJson) as Envelope,
});

const NOTHING_TAKEN = "its agents take no messages any more. Start a new run instead";

const tooLate = (run: AskedRun) => runEnded(run, run.status, NOTHING_TAKEN);

function notFound({ runId }: AskedRun, deadLetterId: string): DomainError {
  return new DomainError(
    "dead_letter_not_found",
    `Run ${runId} has no dead letter ${JSON.stringify(deadLetterId.slice(0, 200))}. List its dead letters.`,
  );
}

function alreadyRetried({ deadLetterId, retriedAtMs }: DeadLetter): DomainError {
  const when = retriedAtMs === null ? "before" : `at ${isoTime(retriedAtMs)}`;
  return new DomainError("already_retried", `Dead letter ${deadLetterId} was sent again ${when}.`);
}

const tooLong = (bytes: number) =>
  refused([
    {
      path: "/body",
      code: "too_long",
      message: `has ${bytes} bytes as JSON, and a message's body at most ${limits.messageBodyBytesMax}`,
    },
  ]);

function refused(errors: readonly DomainErrorEntry[]): DomainError {
  const [first] = errors;
  return new DomainError("validation_failed", `${first?.path}: ${first?.message}. Nothing was sent.`, errors);
}

function notDeliverable({ deadLetterId, agentId }: DeadLetter): DomainError {
  const whom = agentId === null ? "Whom it was for" : `Agent ${JSON.stringify(agentId)}`;
  return new DomainError(
    "conflict",
    `Dead letter ${deadLetterId} stays open: it would only be dead-lettered again. ${whom} does not exist, has ended, or has no room for more messages now.`,
  );
}
