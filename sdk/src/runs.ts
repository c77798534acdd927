// Runs: executions of jobs.

import type { FollowOptions } from "./follow.ts";
import { operations } from "./generated.ts";
import { type Pages, pagesOf } from "./pages.ts";
import type {
  AllDeadLettersQuery,
  AllHumanRequestsQuery,
  Artifact,
  ArtifactsQuery,
  Channel,
  DeadLetter,
  EventsQuery,
  HumanAnswer,
  HumanRequest,
  HumanRequestsQuery,
  LogFilters,
  LogHistogram,
  LogHistogramQuery,
  LogPage,
  LogRecord,
  LogsQuery,
  MergedEvent,
  NewRun,
  ObservabilitySummary,
  Output,
  OutputsQuery,
  Retried,
  RetryDeadLetter,
  Run,
  RunDeadLettersQuery,
  RunEvent,
  RunResult,
  RunsQuery,
  StartedRun,
  TimelineQuery,
  TimelineRecord,
} from "./records.ts";
import {
  type CallOptions,
  type KeyedOptions,
  type StartOptions,
  type Transport,
  waitHeaders,
} from "./transport.ts";

/** Short enough for the proxies that are in use; a run that takes longer is followed. */
export const FIRST_WAIT_SECONDS = 20;

export class RunsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Starts a run of a job. It is accepted once it is on disk; acceptance is not completion: give `wait` to be answered with
   * the ended run, if it ends in that time, `wait` for its end, or `follow` its events.
   *
   * @throws TroupeProblem `job_not_found`; `validation_failed` when the inputs do not fit
   *
   * @example const run = await client.runs.start(jobId, { inputs: { topic: "bees" } }, { wait: 10 });
   */
  start(jobId: string, run: NewRun = {}, options: StartOptions = {}): Promise<Run> {
    const request = { path: { job_id: jobId }, ...waitHeaders(options.wait), body: run };
    return this.#transport.value("createRun", request, options);
  }

  /**
   * Starts a run and waits for its end. A run that fails does not throw: see its status, its failure and its
   * outputs. A signal ends the waiting, not the run.
   *
   * @example const { status, result } = await client.runs.startAndWait(jobId, { inputs: { topic: "bees" } });
   */
  async startAndWait(jobId: string, run: NewRun = {}, options: KeyedOptions = {}): Promise<Run> {
    const started = await this.start(jobId, run, { wait: FIRST_WAIT_SECONDS, ...options });
    return started.finished_at === null ? this.wait(started.run_id, options) : started;
  }

  /**
   * Starts up to 1,000 runs of a job at once. They are accepted together; an item that is refused does not affect the
   * others. With `wait` each item whose run has ended in that time carries it.
   *
   * @returns the outcome of each item, in order: `id`, perhaps `run`; or `error`
   * @throws TroupeProblem `job_not_found`
   *
   * @example
   * const items = await client.runs.startBatch(jobId, [{ inputs: { n: 1 } }, { inputs: { n: 2 } }], { wait: 10 });
   * for (const { id, run, error } of items) console.log(id ?? error?.detail, run?.result);
   */
  async startBatch(
    jobId: string,
    runs: readonly NewRun[],
    options: StartOptions = {},
  ): Promise<readonly StartedRun[]> {
    const request = { path: { job_id: jobId }, ...waitHeaders(options.wait), body: { items: runs } };
    return (await this.#transport.json("createRuns", request, options)).value.items;
  }

  /** Waits until a run has ended. @returns the run, completed, failed or cancelled */
  async wait(runId: string, { signal }: CallOptions = {}): Promise<Run> {
    // The narrowest channel: little but the terminal event comes.
    const ending = this.stream(runId, { channels: ["human"], signal });
    while (!(await ending.next()).done);
    return this.get(runId, { signal });
  }

  /** Newest first. */
  list(query: RunsQuery = {}, options: CallOptions = {}): Pages<Run> {
    return pagesOf(this.#transport, "listRuns", { query }, options);
  }

  get(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#transport.value("getRun", pathOf(runId), options);
  }

  /** What happened in it, in numbers, and where to read on. */
  summary(runId: string, options: CallOptions = {}): Promise<ObservabilitySummary> {
    return this.#transport.value("getObservabilitySummary", pathOf(runId), options);
  }

  /** Stops dispatch; a task that is running may finish. @throws TroupeProblem `invalid_transition` after the end */
  pause(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#control(runId, "paused", options);
  }

  /** Resumes a paused run. @throws TroupeProblem `invalid_transition` after the end */
  resume(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#control(runId, "running", options);
  }

  /**
   * Ends a run and its commands; external actions already performed are not reversed.
   *
   * @throws TroupeProblem `invalid_transition` when it has completed or failed
   */
  cancel(runId: string, options: CallOptions = {}): Promise<Run> {
    return this.#control(runId, "cancelled", options);
  }

  /** Its result; null before the end. */
  result(runId: string, options: CallOptions = {}): Promise<RunResult> {
    return this.#transport.value("getRunResult", pathOf(runId), options);
  }

  /** What its workers print and report, oldest first by default. */
  logs(runId: string, query: LogsQuery = {}, options: CallOptions = {}): Pages<LogRecord> {
    return pagesOf(this.#transport, "listRunLogs", { ...pathOf(runId), query }, options);
  }

  /**
   * One page of its logs, with `last_event_id`: following the logs after that id misses nothing and repeats nothing.
   *
   * @example
   * const page = await client.runs.logPage(runId, { order: "desc", page_size: 20 });
   * for await (const record of client.runs.followLogs(runId, { after: page.last_event_id })) console.log(record.message);
   */
  logPage(runId: string, query: LogsQuery = {}, options: CallOptions = {}): Promise<LogPage> {
    return this.#transport.value("listRunLogs", { ...pathOf(runId), query }, options);
  }

  /**
   * A part of the count of its logs over time; `next_page_token` counts on, and what comes is added to the buckets of the
   * same start.
   */
  logHistogram(
    runId: string,
    query: LogHistogramQuery = {},
    options: CallOptions = {},
  ): Promise<LogHistogram> {
    return this.#transport.value("countRunLogs", { ...pathOf(runId), query }, options);
  }

  /** Its steps, agents, tasks and attempts as records of spans, oldest first. */
  timeline(runId: string, query: TimelineQuery = {}, options: CallOptions = {}): Pages<TimelineRecord> {
    return pagesOf(this.#transport, "listRunTimeline", { ...pathOf(runId), query }, options);
  }

  /** Its evidence under stable ids, then every file that its workers left, oldest first. */
  artifacts(runId: string, query: ArtifactsQuery = {}, options: CallOptions = {}): Pages<Artifact> {
    return pagesOf(this.#transport, "listRunArtifacts", { ...pathOf(runId), query }, options);
  }

  /** The files that the run was for, primary ones first. */
  outputs(runId: string, query: OutputsQuery = {}, options: CallOptions = {}): Pages<Output> {
    return pagesOf(this.#transport, "listRunOutputs", { ...pathOf(runId), query }, options);
  }

  /** The history so far, oldest first; `follow` continues from there. */
  events(runId: string, query: EventsQuery = {}, options: CallOptions = {}): Pages<RunEvent> {
    return pagesOf(this.#transport, "listRunEvents", { ...pathOf(runId), query }, options);
  }

  /**
   * Yields a run's events as they happen, each once and in order, and ends after the terminal one. A lost connection is
   * reopened after the last event; a gateway that is unreachable for more than a minute is an error.
   *
   * @param options.after the id of the last event that you have processed, to continue from there
   * @throws TroupeProblem `run_not_found`; TroupeUnreachable
   *
   * @example for await (const event of client.runs.follow(runId)) console.log(event.id, event.type);
   */
  follow(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, undefined> {
    return this.#transport.follow(operations.streamRunEvents, pathOf(runId), options, {
      isGapless: true,
      read: (data) => data as RunEvent,
    });
  }

  /** As `follow`, with log records, those that the filters let through. */
  followLogs(
    runId: string,
    { filters = {}, ...options }: FollowOptions & { readonly filters?: LogFilters } = {},
  ): AsyncGenerator<LogRecord, undefined> {
    const request = { ...pathOf(runId), query: filters };
    return this.#transport.follow(operations.streamRunLogs, request, options, {
      isGapless: false,
      read: (data) => data as LogRecord,
    });
  }

  /**
   * As `follow`, with each event as several channels show it; events that none of them shows are left out.
   *
   * @param options.channels all of them when absent
   */
  stream(
    runId: string,
    { channels, ...options }: FollowOptions & { readonly channels?: readonly Channel[] } = {},
  ): AsyncGenerator<MergedEvent, undefined> {
    const request = { ...pathOf(runId), query: { channels: channels?.join(",") } };
    return this.#transport.follow(operations.streamRun, request, options, {
      isGapless: false,
      read: (data) => data as MergedEvent,
    });
  }

  /**
   * Downloads an artifact or output.
   *
   * @returns the answer with its body unread, like that of `fetch`: take `body`, `blob()`, `text()` …
   * @throws TroupeProblem `artifact_not_found` when it was removed
   */
  download(file: { readonly url: string }, options: CallOptions = {}): Promise<Response> {
    return this.#transport.openLink(file.url, options);
  }

  /** Its workers' questions to people, oldest first; `status: "pending"` for the open ones. */
  humanRequests(
    runId: string,
    query: HumanRequestsQuery = {},
    options: CallOptions = {},
  ): Pages<HumanRequest> {
    return pagesOf(this.#transport, "listHumanRequests", { ...pathOf(runId), query }, options);
  }

  humanRequest(runId: string, requestId: string, options: CallOptions = {}): Promise<HumanRequest> {
    const request = { path: { run_id: runId, request_id: requestId } };
    return this.#transport.value("getHumanRequest", request, options);
  }

  /**
   * Answers a question of a worker. The first answer counts; the same one may be given again.
   *
   * @throws TroupeProblem `already_answered`, `human_request_timed_out`, `run_ended`; `validation_failed` for a decision
   *   that is not allowed
   *
   * @example await client.runs.answer(runId, "ship", { decision: "approve", comment: "Looks good." });
   */
  answer(
    runId: string,
    requestId: string,
    answer: HumanAnswer,
    options: KeyedOptions = {},
  ): Promise<HumanRequest> {
    const request = { path: { run_id: runId, request_id: requestId }, body: answer };
    return this.#transport.value("answerHumanRequest", request, options);
  }

  /** The questions of all runs to people, oldest first: the ones that can be answered, unless the query says otherwise. */
  allHumanRequests(query: AllHumanRequestsQuery = {}, options: CallOptions = {}): Pages<HumanRequest> {
    return pagesOf(this.#transport, "listAllHumanRequests", { query }, options);
  }

  /** The messages of all runs that were not processed, newest first: the open ones, unless the query says otherwise. */
  allDeadLetters(query: AllDeadLettersQuery = {}, options: CallOptions = {}): Pages<DeadLetter> {
    return pagesOf(this.#transport, "listDeadLetters", { query }, options);
  }

  /** Its messages that were not processed, newest first. */
  deadLetters(runId: string, query: RunDeadLettersQuery = {}, options: CallOptions = {}): Pages<DeadLetter> {
    return pagesOf(this.#transport, "listRunDeadLetters", { ...pathOf(runId), query }, options);
  }

  deadLetter(runId: string, deadLetterId: string, options: CallOptions = {}): Promise<DeadLetter> {
    const request = { path: { run_id: runId, dead_letter_id: deadLetterId } };
    return this.#transport.value("getRunDeadLetter", request, options);
  }

  /**
   * Sends a dead letter again, as a new message to the same agent.
   *
   * @param change.body sent in place of its own, which stays in its record
   * @throws TroupeProblem `already_retried`, `run_ended`; `conflict` when its agent can take nothing; `validation_failed` for
   *   a body that no message may have
   */
  retryDeadLetter(
    runId: string,
    deadLetterId: string,
    change: RetryDeadLetter = {},
    options: KeyedOptions = {},
  ): Promise<Retried> {
    const request = { path: { run_id: runId, dead_letter_id: deadLetterId }, body: change };
    return this.#transport.value("retryRunDeadLetter", request, options);
  }

  /** Sends every dead letter again that is open now. @throws TroupeProblem `run_ended` */
  retryDeadLetters(runId: string, options: KeyedOptions = {}): Promise<Retried> {
    return this.#transport.value("retryRunDeadLetters", pathOf(runId), options);
  }

  /** What waits of it for slots has the new priority at once. @throws TroupeProblem `invalid_transition` after the end */
  prioritize(runId: string, priority: Run["priority"], options: CallOptions = {}): Promise<Run> {
    return this.#change(runId, { priority }, options);
  }

  #control(
    runId: string,
    desired_state: "paused" | "running" | "cancelled",
    options: CallOptions,
  ): Promise<Run> {
    return this.#change(runId, { desired_state }, options);
  }

  async #change(
    runId: string,
    body: { readonly desired_state?: Run["desired_state"]; readonly priority?: Run["priority"] },
    options: CallOptions,
  ): Promise<Run> {
    // Asking for what the run already is changes nothing.
    const request = { ...pathOf(runId), body };
    return (await this.#transport.json("controlRun", request, { ...options, repeat: "always" })).value;
  }
}

const pathOf = (runId: string) => ({ path: { run_id: runId } });
