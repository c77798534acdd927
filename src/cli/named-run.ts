// The run that a command's first word names, on whichever API it is: by its own id, as its job's latest run, or as a job
// of the runtime API.

import {
  type Artifact,
  addressOf,
  type DeadLetter,
  type HumanAnswer,
  type HumanRequest,
  type JsonObject,
  type Output,
  type Retried,
  type Run,
  type RunEvent,
  type RuntimeEvent,
  TroupeProblem,
} from "../../sdk/src/index.ts";
import { exitCodes } from "./command.ts";
import { idKind, idOf } from "./ids.ts";
import type { ServerCall } from "./session.ts";

const PAGE = 200;
/** The name under which the gateway knows a run's dashboard. */
export const DASHBOARD_SERVICE = "blueprint-web-ui";

/** A file as the lists of both APIs have it. */
export type RunFile = Artifact & Partial<Pick<Output, "title" | "primary">>;

/** A file with where it can be got: a path when it was saved, else an address. */
export type PlacedFile = RunFile & { readonly place: string };

/** The state of a run, which has mostly ended. */
export interface Outcome {
  readonly status: string;
  readonly result: unknown;
  readonly failure: JsonObject | null;
  /** What --json prints. */
  document(files: readonly PlacedFile[]): object;
}

/** A run on one of the two APIs. */
export interface NamedRun {
  /** What the other commands take. */
  readonly id: string;
  /** The history so far. */
  events(): AsyncIterable<RunEvent | RuntimeEvent>;
  /** The history to its end. */
  follow(): AsyncIterable<RunEvent | RuntimeEvent>;
  /** Resolves at its end. */
  wait(): Promise<unknown>;
  outcome(): Promise<Outcome>;
  /** Its outputs among them; perhaps these alone, if there are any. */
  files(): Promise<readonly RunFile[]>;
  download(file: RunFile, options: { readonly signal: AbortSignal }): Promise<Response>;
  /** The address of a path of its server, as a program outside can open it. */
  address(path: string): string;
  /** The address of its dashboard while that can be reached, else null. */
  dashboard(): Promise<string | null>;
  /** The address of its page that stays after its end; null when there is none. */
  readonly page: string | null;
  /** Its open questions to people. */
  requests(): AsyncIterable<HumanRequest>;
  answer(requestId: string, answer: HumanAnswer): Promise<HumanRequest>;
  /** @param limit of all of them; null for every one */
  letters(pageSize: number, limit: number | null): AsyncIterable<DeadLetter>;
  /** @param deadLetterId null for all that are open */
  retry(deadLetterId: string | null): Promise<Retried>;
}

/**
 * Does a command's work with the run that its first word names. A job without a run is only reported.
 *
 * @param only the kind of id the command takes; any kind when absent
 */
export async function withNamedRun(
  call: ServerCall,
  work: (run: NamedRun) => Promise<number>,
  only?: "job" | "run",
): Promise<number> {
  const id = only === undefined ? (call.words[0] ?? "") : idOf(call, only);
  const kind = only ?? idKind(id);
  if (kind === "runtime") return work(runtimeRun(call, id));
  if (kind === "run") return work(gatewayRun(call, id));
  const { latest_run: latest } = await call.client.jobs.get(id);
  if (latest !== null) return work(gatewayRun(call, latest.run_id));
  call.terminal.note(`${id} has no run yet. Start one: troupe runs start ${id}`);
  return exitCodes.success;
}

/** Files with where they can be got. @param saved paths by artifact id */
export function placed(
  { address }: Pick<NamedRun, "address">,
  files: readonly RunFile[],
  saved: ReadonlyMap<string, string> = new Map(),
): readonly PlacedFile[] {
  return files.map((file) => ({ ...file, place: saved.get(file.artifact_id) ?? address(file.url) }));
}

export function gatewayRun({ client }: ServerCall, id: string): NamedRun {
  const { runs } = client;
  const address = (path: string) => addressOf(client.baseUrl, path);
  return {
    id,
    events: () => runs.events(id, { page_size: PAGE }),
    follow: () => runs.follow(id),
    wait: () => runs.wait(id),
    outcome: async () => outcomeOf(await runs.get(id)),
    async files() {
      const outputs = await Array.fromAsync(runs.outputs(id, { page_size: PAGE }));
      if (outputs.length > 0) return outputs;
      return Array.fromAsync(runs.artifacts(id, { evidence: false, page_size: PAGE }));
    },
    download: (file, options) => runs.download(file, options),
    address,
    async dashboard() {
      const query = { name: DASHBOARD_SERVICE, run_id: id, status: "passing" } as const;
      for await (const { public_url } of client.services.list(query)) return public_url;
      return null;
    },
    page: address(`/api/v1/runs/${id}/dashboard`),
    requests: () => runs.humanRequests(id, { status: "pending", page_size: PAGE }),
    answer: (requestId, answer) => runs.answer(id, requestId, answer),
    letters: (pageSize) => runs.deadLetters(id, { page_size: pageSize }),
    retry: (letter) => (letter === null ? runs.retryDeadLetters(id) : runs.retryDeadLetter(id, letter)),
  };
}

export const outcomeOf = (run: Run): Outcome => ({ ...run, document: (outputs) => ({ ...run, outputs }) });

/** Its files, questions and dead letters are found by the id of its run. */
export function runtimeRun({ runtime }: ServerCall, id: string): NamedRun {
  const runId = async () => (await runtime.job(id)).job.run_id;
  return {
    id,
    async *events() {
      yield* await runtime.events(id);
    },
    follow: () => runtime.follow(id),
    async wait() {
      const events = runtime.follow(id);
      while (!(await events.next()).done);
    },
    async outcome() {
      const { job_id, run_id, status, result, failure = null } = (await runtime.job(id)).job;
      const record = { status, result, failure };
      return { ...record, document: (artifacts) => ({ job_id, run_id, ...record, artifacts }) };
    },
    async files() {
      const run = await runId();
      try {
        return await runtime.artifacts(run);
      } catch (error) {
        // A runtime that knows the run no longer.
        if (error instanceof TroupeProblem && error.status === 404) return [];
        throw error;
      }
    },
    download: (file, options) => runtime.download(file, options),
    address: (path) => addressOf(runtime.baseUrl, path),
    dashboard: async () => null,
    page: null,
    async *requests() {
      yield* await runtime.humanRequests(await runId());
    },
    answer: async (requestId, answer) => runtime.answer(await runId(), requestId, answer),
    async *letters(_pageSize, limit) {
      // One more than is shown, to know whether there are more.
      const query = limit === null ? {} : { limit: limit + 1 };
      yield* await runtime.deadLetters(await runId(), query);
    },
    retry: async (letter) => {
      const run = await runId();
      return letter === null ? runtime.retryDeadLetters(run) : runtime.retryDeadLetter(run, letter);
    },
  };
}
