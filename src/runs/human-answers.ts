// Answers of people to what workers asked.
//
// - The first answer counts. The same answer of the same person may be given again and finds the first one: a client
//   that lost the reply may repeat its request, also after a crash.
// - An answer is on disk before its caller hears of it.

import { isDeepStrictEqual } from "node:util";
import { isoTime } from "../engine/event.ts";
import type { JobControl } from "../engine/job-control.ts";
import type { HumanRequest, HumanResponse } from "../engine/journal.ts";
import type { JsonObject, JsonValue } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { Page } from "../lib/page.ts";
import type { JobRecords } from "./job-records.ts";
import { type AskedRun, whyNotOpen } from "./open-run.ts";

export type HumanStatus = HumanRequest["status"];
export const humanStatuses: readonly HumanStatus[] = ["pending", "answered", "timed_out"];

export interface HumanRequestPage {
  /** Null: whatever their status. */
  readonly status: HumanStatus | null;
  readonly limit: number;
  /** `eventSeq` of the last request of the page before; 0 for the first page. */
  readonly afterSeq: number;
}

/** A request with the gateway's run that it belongs to. */
export interface RequestOfRun {
  readonly runId: string;
  readonly request: HumanRequest;
}

/** Of all runs of the gateway. Pending ones are those that can be answered: their runs have not ended. */
export interface RequestsOfRunsPage {
  readonly status: HumanStatus;
  readonly runId: string | null;
  readonly jobId: string | null;
  readonly limit: number;
  /** The last request of the page before; null for the first page. */
  readonly after: {
    readonly createdAtMs: number;
    readonly runId: string;
    readonly eventSeq: number;
  } | null;
}

/**
 * What the workers of a job asked people, as committed. A port, implemented in src/store: no read scans a history, and
 * none finds what a removed job has left.
 */
export interface HumanRequestRecords {
  /** In the order in which they were asked. */
  humanRequests(jobId: string, page: HumanRequestPage): Promise<Page<HumanRequest>>;
  humanRequest(jobId: string, requestId: string): Promise<HumanRequest | null>;
  /** Oldest first, over all runs of the gateway. Reads nothing of what has ended, unless that is asked for. */
  requestsOfRuns(page: RequestsOfRunsPage): Promise<Page<RequestOfRun>>;
}

export const answerLimits = {
  decisionCharsMax: limits.nameCharsMax,
  commentCharsMax: 4 * 1024,
  /** Of `data` as JSON. */
  dataCharsMax: 64 * 1024,
} as const;

export interface GivenAnswer {
  readonly decision: string;
  readonly comment: string | null;
  /** Any JSON; null for none. */
  readonly data: JsonValue;
  readonly principal: string;
}

export interface HumanAnswersParts {
  readonly records: HumanRequestRecords;
  readonly jobs: Pick<JobRecords, "find">;
  readonly control: Pick<JobControl, "answerHuman">;
  /** What is wrong with an answer's data; each path begins with "/data". */
  readonly dataProblems: (schema: JsonObject, data: JsonValue) => readonly DomainErrorEntry[];
}

export class HumanAnswers {
  readonly #parts: HumanAnswersParts;

  constructor(parts: HumanAnswersParts) {
    this.#parts = parts;
  }

  /** @throws DomainError `human_request_not_found` */
  async find(run: AskedRun, requestId: string): Promise<HumanRequest> {
    const request = await this.#parts.records.humanRequest(run.jobId, requestId);
    if (request === null) throw notFound(run, requestId);
    return request;
  }

  /**
   * Answers a request; with the answer that it already has, by the same person, nothing is changed.
   *
   * @returns the request as it is then
   * @throws DomainError `human_request_not_found`, `already_answered`, `human_request_timed_out`, `run_ended`,
   *   `validation_failed` for an answer that is not allowed; EngineUnavailable
   */
  async answer(run: AskedRun, requestId: string, given: GivenAnswer): Promise<HumanRequest> {
    const { control, jobs } = this.#parts;
    const asked = await this.find(run, requestId);
    if (asked.status !== "pending") return standing(asked, given);
    mustBeAllowed(asked, given, this.#parts.dataProblems);
    const { decision, comment, principal } = given;
    const dataJson = jsonOf(given.data);
    const answer = await control.answerHuman(run.jobId, {
      requestId,
      decision,
      comment,
      dataJson,
      principal,
    });
    if (answer.kind === "answered") return answer.request;
    if (answer.kind === "already_closed") return standing(answer.request, given);
    // Closed since it was read; perhaps so long ago that only the store knows of it.
    const now = await this.find(run, requestId);
    if (now.status !== "pending") return standing(now, given);
    throw await whyNotOpen(jobs, run, `nobody waits for an answer to ${requestId} any more`);
  }
}

/** What a closed request says to one more answer. */
function standing(request: HumanRequest, given: GivenAnswer): HumanRequest {
  const { requestId, status, response } = request;
  if (response === null) throw new Error(`Request ${requestId} is ${status} and has no response.`);
  if (status === "answered" && isSame(response, given)) return request;
  const when = isoTime(response.respondedAtMs);
  const decision = JSON.stringify(response.decision);
  if (status === "timed_out") {
    throw new DomainError(
      "human_request_timed_out",
      `The time of request ${requestId} was over at ${when}; the worker was told ${decision}.`,
    );
  }
  throw new DomainError(
    "already_answered",
    `Request ${requestId} was answered ${decision} by ${response.principal} at ${when}; the first answer stands.`,
  );
}

function isSame(response: HumanResponse, given: GivenAnswer): boolean {
  const { decision, comment, dataJson, principal } = response;
  const isSameText =
    decision === given.decision && comment === given.comment && principal === given.principal;
  return isSameText && isDeepStrictEqual(parsed(dataJson), parsed(jsonOf(given.data)));
}

const jsonOf = (data: JsonValue) => (data === null ? null : JSON.stringify(data));
const parsed = (json: string | null): unknown => (json === null ? null : JSON.parse(json));

function mustBeAllowed(
  { allowedDecisions, dataSchemaJson }: HumanRequest,
  { decision, comment, data }: GivenAnswer,
  dataProblems: HumanAnswersParts["dataProblems"],
): void {
  const { decisionCharsMax, commentCharsMax, dataCharsMax } = answerLimits;
  const errors: DomainErrorEntry[] = [];
  const tooLong = (path: string, max: number) => {
    errors.push({ path, code: "too_long", message: `must have at most ${max} characters` });
  };
  if (decision === "") {
    errors.push({ path: "/decision", code: "too_short", message: "must not be empty" });
  } else if (decision.length > decisionCharsMax) tooLong("/decision", decisionCharsMax);
  else if (allowedDecisions.length > 0 && !allowedDecisions.includes(decision)) {
    const message = `must be one of ${allowedDecisions.map((one) => JSON.stringify(one)).join(", ")}`;
    errors.push({ path: "/decision", code: "not_allowed", message });
  }
  if (comment !== null && comment.length > commentCharsMax) tooLong("/comment", commentCharsMax);
  if ((jsonOf(data)?.length ?? 0) > dataCharsMax) tooLong("/data", dataCharsMax);
  else if (dataSchemaJson !== null) errors.push(...dataProblems(JSON.parse(dataSchemaJson), data));
  const [first] = errors;
  if (first === undefined) return;
  throw new DomainError("validation_failed", `${first.path}: ${first.message}. Nothing was changed.`, errors);
}

function notFound({ runId }: AskedRun, requestId: string): DomainError {
  return new DomainError(
    "human_request_not_found",
    `Run ${runId} has asked nothing under the id ${JSON.stringify(requestId.slice(0, 200))}. List its questions.`,
  );
}
