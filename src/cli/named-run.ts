// The run that a command's first word names, by its own id, as its job's latest run, or as a job of the runtime API.

import type {
  DeadLetter,
  HumanAnswer,
  HumanRequest,
  Retried,
  RunEvent,
  RuntimeEvent,
} from "../../sdk/src/index.ts";
import { exitCodes } from "./command.ts";
import { idKind, idOf } from "./ids.ts";
import type { ServerCall } from "./session.ts";

const PAGE = 200;

/** A run on one of the two APIs, as far as both have it. */
export interface NamedRun {
  /** What the other commands take. */
  readonly id: string;
  /** The history so far. */
  events(): AsyncIterable<RunEvent | RuntimeEvent>;
  /** The history to its end. */
  follow(): AsyncIterable<RunEvent | RuntimeEvent>;
  /** What it asks people and nobody has answered yet. */
  requests(): AsyncIterable<HumanRequest>;
  answer(requestId: string, answer: HumanAnswer): Promise<HumanRequest>;
  /** @param limit of all of them; null for every one */
  letters(pageSize: number, limit: number | null): AsyncIterable<DeadLetter>;
  /** @param deadLetterId null for all that are open */
  retry(deadLetterId: string | null): Promise<Retried>;
}

/**
 * Does a command's work with the run that its first word names. A job without a run has nothing to work on.
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

export function gatewayRun({ client: { runs } }: ServerCall, id: string): NamedRun {
  return {
    id,
    events: () => runs.events(id, { page_size: PAGE }),
    follow: () => runs.follow(id),
    requests: () => runs.humanRequests(id, { status: "pending", page_size: PAGE }),
    answer: (requestId, answer) => runs.answer(id, requestId, answer),
    letters: (pageSize) => runs.deadLetters(id, { page_size: pageSize }),
    retry: (letter) => (letter === null ? runs.retryDeadLetters(id) : runs.retryDeadLetter(id, letter)),
  };
}

/** Its questions and dead letters are found by the id of its run. */
function runtimeRun({ runtime }: ServerCall, id: string): NamedRun {
  const runId = async () => (await runtime.job(id)).job.run_id;
  return {
    id,
    async *events() {
      yield* await runtime.events(id);
    },
    follow: () => runtime.follow(id),
    async *requests() {
      yield* await runtime.humanRequests(await runId());
    },
    answer: async (requestId, answer) => runtime.answer(await runId(), requestId, answer),
    async *letters(_pageSize, limit) {
      // One more than is shown tells whether there are more.
      const query = limit === null ? {} : { limit: limit + 1 };
      yield* await runtime.deadLetters(await runId(), query);
    },
    retry: async (letter) => {
      const run = await runId();
      return letter === null ? runtime.retryDeadLetters(run) : runtime.retryDeadLetter(run, letter);
    },
  };
}
