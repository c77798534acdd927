// The client of the runtime API: a runtime's own jobs, which are manifests and registered folders. A program that may
// choose uses the gateway; this is for a runtime without one, and for what only the runtime has.
//
// Its operations are few and are not in the gateway's document, so they are written here.

import type { FollowOptions } from "./follow.ts";
import type { JsonObject, OperationShape } from "./generated.ts";
import type {
  Artifact,
  CollectGarbage,
  CollectReport,
  DeadLetter,
  HumanAnswer,
  HumanRequest,
  LimitsInput,
  NewSchedule,
  NewTriggerEvent,
  Output,
  Resource,
  Retried,
  RetryDeadLetter,
  RunEvent,
  Schedule,
  SchedulePatch,
  SchedulesQuery,
  TriggerEvent,
  TriggerEventsQuery,
} from "./records.ts";
import {
  type CallOptions,
  type LooseRequest,
  openTransport,
  type Transport,
  type TroupeClientOptions,
} from "./transport.ts";

export interface RuntimeJob {
  readonly job_id: string;
  readonly graph_id: string;
  readonly job_name: string | null;
  readonly status: string;
  readonly priority: "low" | "normal" | "high";
  readonly weight: number;
  readonly submitted_at: string;
  readonly updated_at: string;
}

export interface RuntimeJobDetail {
  readonly job: RuntimeJob & {
    readonly run_id: string;
    readonly result: JsonObject | null;
    /** svc.error.v1 */
    readonly failure?: JsonObject;
    readonly observability_summary?: JsonObject;
  };
  readonly agents: readonly {
    readonly agent_id: string;
    readonly agent_type: string;
    readonly status: string;
    readonly processed_messages: number;
    readonly mailbox_depth: number;
    readonly last_error: string | null;
  }[];
  /** Newest first. */
  readonly recent_events: readonly Omit<RuntimeEvent, "id">[];
}

/** As the gateway's events are, but for the run's id. */
export type RuntimeEvent = Omit<RunEvent, "run_id" | "agent_id"> & { readonly agent_id?: string };

/** A folder that the runtime has by path. */
export interface RuntimeBundle {
  readonly bundle_id: string;
  readonly graph_id: string;
  readonly fingerprint: string;
  /** Of a registration only. */
  readonly warnings?: readonly { readonly message: string }[];
}

/** Whose runs: one of these, or job_id or blueprint_id. */
export type RuntimeSchedule = NewSchedule & {
  readonly manifest?: JsonObject;
  /** Files for the commands of `manifest`: base64, by their paths below payloads/. */
  readonly payloads?: Readonly<Record<string, string>>;
  readonly bundle_id?: string;
  /** A folder or a .zip on the runtime's machine. */
  readonly bundle_path?: string;
};

export type RuntimeArtifact = Artifact & Pick<Output, "title" | "primary">;

const get = (path: string, also: Partial<OperationShape> = {}): OperationShape => ({
  method: "GET",
  path,
  body: "none",
  answer: "json",
  takesKey: false,
  ...also,
});
const post = (path: string, body: "json" | "none" = "none"): OperationShape => ({
  ...get(path, { body }),
  method: "POST",
});
const change = (
  method: "PATCH" | "PUT" | "DELETE",
  path: string,
  also: Partial<OperationShape>,
): OperationShape => ({ ...get(path, also), method });

const operations = {
  health: get("/health", { alsoAnswers: [503] }),
  jobs: get("/jobs"),
  job: get("/jobs/{job_id}"),
  submit: post("/jobs", "json"),
  pause: post("/jobs/{job_id}/pause"),
  resume: post("/jobs/{job_id}/resume"),
  cancel: post("/jobs/{job_id}/cancel"),
  send: post("/jobs/{job_id}/messages", "json"),
  cleanup: post("/jobs/cleanup"),
  collectGarbage: post("/system/gc", "json"),
  events: get("/jobs/{job_id}/events"),
  streamEvents: get("/jobs/{job_id}/events/stream", { answer: "events" }),
  bundles: get("/bundles"),
  registerBundle: post("/bundles", "json"),
  reloadBundle: post("/bundles/{bundle_id}/reload"),
  artifacts: get("/runs/{run_id}/artifacts"),
  humanRequests: get("/runs/{run_id}/human"),
  answer: post("/runs/{run_id}/human/{request_id}/response", "json"),
  deadLetters: get("/runs/{run_id}/dead-letters"),
  retryDeadLetter: post("/runs/{run_id}/dead-letters/{dead_letter_id}/retry"),
  retryDeadLetters: post("/runs/{run_id}/dead-letters/retry"),
  schedules: get("/schedules"),
  schedule: get("/schedules/{schedule_id}"),
  createSchedule: post("/schedules", "json"),
  updateSchedule: change("PATCH", "/schedules/{schedule_id}", { body: "json" }),
  pauseSchedule: post("/schedules/{schedule_id}/pause"),
  resumeSchedule: post("/schedules/{schedule_id}/resume"),
  dispatchSchedule: post("/schedules/{schedule_id}/dispatch"),
  deleteSchedule: change("DELETE", "/schedules/{schedule_id}", { answer: "none" }),
  emitEvent: post("/events", "json"),
  triggerEvents: get("/events"),
  triggerEvent: get("/events/{event_id}"),
  resource: get("/resource"),
  changeLimits: post("/resource", "json"),
  setLimits: change("PUT", "/resource", { body: "json" }),
} as const;

type OperationName = keyof typeof operations;

/**
 * @example
 * const runtime = new TroupeRuntime({ baseUrl: "http://127.0.0.1:4000" });
 * const { id } = await runtime.submit(manifest);
 * for await (const event of runtime.follow(id)) console.log(event.id, event.type);
 */
export class TroupeRuntime {
  /** Where the runtime API is, ending with /api/v1. */
  readonly baseUrl: string;
  readonly #transport: Transport;

  constructor(options: TroupeClientOptions) {
    this.#transport = openTransport("runtime", options);
    this.baseUrl = this.#transport.settings.baseUrl;
  }

  /** Needs no token. A runtime that takes no writes answers too: its status is "degraded". */
  health(options: CallOptions = {}): Promise<{ readonly status: string; readonly version: string }> {
    return this.#call("health", {}, options);
  }

  /** Newest first. @param query.limit all of them when absent */
  jobs(
    query: { readonly limit?: number | undefined; readonly include_terminal?: boolean | undefined } = {},
    options: CallOptions = {},
  ): Promise<readonly RuntimeJob[]> {
    return this.#list("jobs", { query }, options);
  }

  job(jobId: string, options: CallOptions = {}): Promise<RuntimeJobDetail> {
    return this.#call("job", { path: { job_id: jobId } }, options);
  }

  /** @param body a manifest, or `{ bundle_id, inputs?, config? }` of a registered folder; both may have priority and weight */
  submit(
    body: JsonObject,
    options: CallOptions = {},
  ): Promise<{ readonly id: string; readonly run_id: string }> {
    return this.#call("submit", { body }, options);
  }

  /** Asks for a change of state. @throws TroupeProblem 400 when the job has ended */
  control(
    jobId: string,
    action: "cancel" | "pause" | "resume",
    options: CallOptions = {},
  ): Promise<{ readonly job_id: string; readonly status: string }> {
    return this.#call(action, { path: { job_id: jobId } }, options);
  }

  /** Sends a message to an agent of a job. */
  send(
    jobId: string,
    message: { readonly agent_id: string; readonly body: unknown; readonly type?: string | undefined },
    options: CallOptions = {},
  ): Promise<{ readonly message_id: string }> {
    return this.#call("send", { path: { job_id: jobId }, body: message }, options);
  }

  /** Removes the records of ended jobs. @param query.all open ones too: they are cancelled first */
  cleanup(
    query: { readonly all?: boolean } = {},
    options: CallOptions = {},
  ): Promise<{ readonly deleted_count: number; readonly deleted_jobs: readonly string[] }> {
    return this.#call("cleanup", { query }, options);
  }

  /** Removes what is no longer kept, or with `dry_run` lists what would be removed. */
  collectGarbage(body: CollectGarbage = {}, options: CallOptions = {}): Promise<CollectReport> {
    return this.#call("collectGarbage", { body }, options);
  }

  /** The history so far, oldest first. */
  async events(jobId: string, options: CallOptions = {}): Promise<readonly RuntimeEvent[]> {
    const data = await this.#list<RuntimeEvent>("events", { path: { job_id: jobId } }, options);
    return data.map((event, i) => ({ ...event, id: i + 1 }));
  }

  /** Yields a job's events as they happen, each once and in order, and ends after the terminal one. */
  follow(jobId: string, options: FollowOptions = {}): AsyncGenerator<RuntimeEvent, undefined> {
    return this.#transport.follow(operations.streamEvents, { path: { job_id: jobId } }, options, {
      isGapless: true,
      read: (data, id) => ({ ...(data as RuntimeEvent), id: Number(id) }),
    });
  }

  bundles(options: CallOptions = {}): Promise<readonly RuntimeBundle[]> {
    return this.#list("bundles", {}, options);
  }

  /** @param path a folder on the runtime's machine */
  registerBundle(path: string, options: CallOptions = {}): Promise<RuntimeBundle> {
    return this.#call("registerBundle", { body: { path } }, options);
  }

  /** Reads a registered folder again. */
  reloadBundle(bundleId: string, options: CallOptions = {}): Promise<JsonObject> {
    return this.#call("reloadBundle", { path: { bundle_id: bundleId } }, options);
  }

  /** The files that a run's workers left, oldest first. */
  artifacts(runId: string, options: CallOptions = {}): Promise<readonly RuntimeArtifact[]> {
    return this.#list("artifacts", { path: { run_id: runId }, query: { evidence: false } }, options);
  }

  /** @returns the answer with its body unread, like that of `fetch` */
  download(file: { readonly url: string }, options: CallOptions = {}): Promise<Response> {
    return this.#transport.openLink(file.url, options);
  }

  /** The open questions of a run to people. */
  humanRequests(runId: string, options: CallOptions = {}): Promise<readonly HumanRequest[]> {
    return this.#list("humanRequests", { path: { run_id: runId }, query: { status: "pending" } }, options);
  }

  answer(
    runId: string,
    requestId: string,
    answer: HumanAnswer,
    options: CallOptions = {},
  ): Promise<HumanRequest> {
    return this.#call("answer", { path: { run_id: runId, request_id: requestId }, body: answer }, options);
  }

  /** Newest first. @param query.limit all of them when absent */
  deadLetters(
    runId: string,
    query: { readonly limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<readonly DeadLetter[]> {
    return this.#list("deadLetters", { path: { run_id: runId }, query }, options);
  }

  /** @param change.body sent in place of its own, which stays in its record */
  retryDeadLetter(
    runId: string,
    deadLetterId: string,
    change: RetryDeadLetter = {},
    options: CallOptions = {},
  ): Promise<Retried> {
    const path = { run_id: runId, dead_letter_id: deadLetterId };
    return this.#call("retryDeadLetter", { path, body: change }, options);
  }

  retryDeadLetters(runId: string, options: CallOptions = {}): Promise<Retried> {
    return this.#call("retryDeadLetters", { path: { run_id: runId } }, options);
  }

  /** Newest first. @param query.limit all of them when absent */
  schedules(
    query: Omit<SchedulesQuery, "page_size" | "page_token"> & { readonly limit?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<readonly Schedule[]> {
    return this.#list("schedules", { query }, options);
  }

  schedule(scheduleId: string, options: CallOptions = {}): Promise<Schedule> {
    return this.#call("schedule", { path: { schedule_id: scheduleId } }, options);
  }

  /** Starts runs by a rule, as the gateway's client does, and also of what the runtime API takes. */
  createSchedule(schedule: RuntimeSchedule, options: CallOptions = {}): Promise<Schedule> {
    return this.#call("createSchedule", { body: schedule }, options);
  }

  /** Changes what it says: a JSON merge patch, in which null removes a key. */
  updateSchedule(scheduleId: string, patch: SchedulePatch, options: CallOptions = {}): Promise<Schedule> {
    return this.#call("updateSchedule", { path: { schedule_id: scheduleId }, body: patch }, options);
  }

  /** Pauses it, or has it go on from now. @throws TroupeProblem 400 when it is over */
  controlSchedule(
    scheduleId: string,
    action: "pause" | "resume",
    options: CallOptions = {},
  ): Promise<Schedule> {
    return this.#call(`${action}Schedule`, { path: { schedule_id: scheduleId } }, options);
  }

  /** Starts a run now, whatever its status and its rule. */
  dispatchSchedule(scheduleId: string, options: CallOptions = {}): Promise<{ readonly run_id: string }> {
    return this.#call("dispatchSchedule", { path: { schedule_id: scheduleId } }, options);
  }

  /** Deletes it; its runs and its job stay. */
  deleteSchedule(scheduleId: string, options: CallOptions = {}): Promise<void> {
    return this.#call("deleteSchedule", { path: { schedule_id: scheduleId } }, options);
  }

  /** Tells of an event, to which schedules react. */
  emit(event: NewTriggerEvent, options: CallOptions = {}): Promise<TriggerEvent> {
    return this.#call("emitEvent", { body: event }, options);
  }

  /** Newest first. @param query.limit 100 when absent */
  triggerEvents(
    query: Omit<TriggerEventsQuery, "page_size" | "page_token"> & {
      readonly limit?: number | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<readonly TriggerEvent[]> {
    return this.#list("triggerEvents", { query }, options);
  }

  triggerEvent(eventId: string, options: CallOptions = {}): Promise<TriggerEvent> {
    return this.#call("triggerEvent", { path: { event_id: eventId } }, options);
  }

  /** What the machines have, and what of it commands may have. */
  resource(options: CallOptions = {}): Promise<Resource> {
    return this.#call("resource", {}, options);
  }

  /** Changes the limits that are given; null takes one back. */
  changeLimits(limits: LimitsInput, options: CallOptions = {}): Promise<Resource> {
    return this.#call("changeLimits", { body: { limits } }, options);
  }

  /** The same; limits that are not given are taken back. */
  setLimits(limits: LimitsInput, options: CallOptions = {}): Promise<Resource> {
    return this.#call("setLimits", { body: { limits } }, options);
  }

  async #call<Answer>(name: OperationName, request: LooseRequest, options: CallOptions): Promise<Answer> {
    return (await this.#transport.call<Answer>(operations[name], request, options)).value;
  }

  /** Lists are not paged; they come in an envelope. */
  async #list<Item>(
    name: OperationName,
    request: LooseRequest,
    options: CallOptions,
  ): Promise<readonly Item[]> {
    return (await this.#call<{ readonly data: readonly Item[] }>(name, request, options)).data;
  }
}
