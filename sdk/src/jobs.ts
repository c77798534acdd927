// Jobs: durable definitions of work.

import { TroupeProblem } from "./errors.ts";
import type { JsonObject } from "./generated.ts";
import { type Pages, pagesOf } from "./pages.ts";
import type {
  DeadLetter,
  DeadLettersQuery,
  Job,
  JobAnswer,
  JobControl,
  JobDetail,
  JobEventsQuery,
  JobGrid,
  JobGridQuery,
  JobPatch,
  JobQuestion,
  JobRunsQuery,
  JobsQuery,
  JobVersion,
  NewJob,
  Run,
  RunEvent,
  TaggedJob,
  WorkflowProgress,
} from "./records.ts";
import { tagged } from "./tagged.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

export class JobsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a job from an uploaded bundle. Keep what comes back, or its job_id and etag: changes need both.
   *
   * @throws TroupeProblem `validation_failed` when there is no such bundle, or the configuration does not fit
   */
  async create(job: NewJob, options: KeyedOptions = {}): Promise<TaggedJob> {
    return tagged(await this.#transport.json("createJob", { body: job }, options));
  }

  /** Newest first. */
  list(query: JobsQuery = {}, options: CallOptions = {}): Pages<Job> {
    return pagesOf(this.#transport, "listJobs", { query }, options);
  }

  /** @param options.view full: with its manifest, graph, recent runs and events, and services */
  async get(
    jobId: string,
    { view, ...options }: CallOptions & { readonly view?: "compact" | "full" } = {},
  ): Promise<JobDetail> {
    const request = { path: { job_id: jobId }, query: { view } };
    return tagged(await this.#transport.json("getJob", request, options));
  }

  /**
   * Changes the name or the configuration: a JSON merge patch, in which null removes a key and "********" keeps the
   * secret that is stored.
   *
   * @param job as it was read: nothing is changed when it was changed elsewhere since
   * @throws TroupeProblem `precondition_failed` when the job has changed: get it again, then decide
   *
   * @example await client.jobs.update(await client.jobs.get(jobId), { name: "Weekly digest" });
   */
  async update(job: JobVersion, patch: JobPatch, options: CallOptions = {}): Promise<TaggedJob> {
    const request = { path: { job_id: job.job_id }, headers: { "if-match": job.etag }, body: patch };
    return tagged(await this.#transport.json("updateJob", request, options));
  }

  /**
   * Deletes a job with its runs, their events and their files.
   *
   * @param options.force cancels open runs first
   * @throws TroupeProblem `precondition_failed` when the job has changed; `active_runs` while a run has not ended
   */
  async delete(
    job: JobVersion,
    { force, ...options }: CallOptions & { readonly force?: boolean } = {},
  ): Promise<void> {
    const request = { path: { job_id: job.job_id }, query: { force }, headers: { "if-match": job.etag } };
    await this.#transport.json("deleteJob", request, options);
  }

  /** Pauses every open run. @throws TroupeProblem `invalid_transition` when there is none */
  pause(jobId: string, options: KeyedOptions = {}): Promise<JobControl> {
    return this.#transport.value("pauseJob", { path: { job_id: jobId } }, options);
  }

  /** Resumes every paused run. @throws TroupeProblem `invalid_transition` when no run is open */
  resume(jobId: string, options: KeyedOptions = {}): Promise<JobControl> {
    return this.#transport.value("resumeJob", { path: { job_id: jobId } }, options);
  }

  /** Cancels every open run. @throws TroupeProblem `invalid_transition` when there is none */
  cancel(jobId: string, options: KeyedOptions = {}): Promise<JobControl> {
    return this.#transport.value("cancelJob", { path: { job_id: jobId } }, options);
  }

  /** Its runs, newest first. */
  runs(jobId: string, query: JobRunsQuery = {}, options: CallOptions = {}): Pages<Run> {
    return pagesOf(this.#transport, "listJobRuns", { path: { job_id: jobId }, query }, options);
  }

  /** The events of its latest run, or of the one that the query names; oldest first. */
  events(jobId: string, query: JobEventsQuery = {}, options: CallOptions = {}): Pages<RunEvent> {
    return pagesOf(this.#transport, "listJobEvents", { path: { job_id: jobId }, query }, options);
  }

  /** What its agents are in its newest runs: a page of agents, `query.page_token` for the next one. */
  grid(jobId: string, query: JobGridQuery = {}, options: CallOptions = {}): Promise<JobGrid> {
    return this.#transport.value("getJobGrid", { path: { job_id: jobId }, query }, options);
  }

  /** How far its latest run has come, or the one that `run_id` names. */
  workflowProgress(
    jobId: string,
    { run_id, ...options }: CallOptions & { readonly run_id?: string } = {},
  ): Promise<WorkflowProgress> {
    const request = { path: { job_id: jobId }, query: { run_id } };
    return this.#transport.value("getWorkflowProgress", request, options);
  }

  /**
   * Asks it: the answer consists of quotes from what the job has published; no run is started.
   *
   * @throws TroupeProblem `not_found` when its package does not enable `svc.response`; with what the job said in place of
   *   an answer, such as that it has no such run
   *
   * @example
   * const first = await client.jobs.ask(jobId, { question: "Why did it fail?" });
   * const ids = first.citations.map(({ id }) => id);
   * await client.jobs.ask(jobId, { question: "At which step?", earlier_ids: ids });
   */
  async ask(jobId: string, asked: JobQuestion, options: CallOptions = {}): Promise<JobAnswer> {
    const params = { name: "ask_job", arguments: asked };
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params } as const;
    const request = { path: { job_id: jobId }, body };
    return answerIn(await this.#transport.value("callJobTools", request, options));
  }

  /** Messages of its latest run, or of the one that the query names, that were not processed; newest first. */
  deadLetters(jobId: string, query: DeadLettersQuery = {}, options: CallOptions = {}): Pages<DeadLetter> {
    return pagesOf(this.#transport, "listJobDeadLetters", { path: { job_id: jobId }, query }, options);
  }
}

/** @throws TroupeProblem when the message holds none */
function answerIn(message: JsonObject): JobAnswer {
  const { result, error } = message as {
    readonly result?: {
      readonly structuredContent?: JobAnswer;
      readonly content?: readonly { readonly text?: string }[];
    };
    readonly error?: { readonly message?: string };
  };
  if (result?.structuredContent !== undefined) return result.structuredContent;
  const detail = result?.content?.[0]?.text ?? error?.message ?? "";
  // The protocol says this with 200: as the gateway says it of other requests that do not fit.
  throw new TroupeProblem({ status: 422, headers: new Headers() }, { title: "No Answer", detail }, 0);
}
