// `troupe human`, `answer` and `dead-letters`: what runs ask people, and the messages that they gave up. Each takes the id
// of a gateway's run or job, or of a job of the runtime API.

import type { DeadLetter, HumanAnswer, HumanRequest, Retried } from "../../sdk/src/index.ts";
import { parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import {
  answeredLine,
  letterHead,
  letterRow,
  requestHead,
  requestRow,
  retriedLines,
} from "./attention-text.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { clientFor } from "./connection.ts";
import { gatewayKind } from "./ids.ts";
import { printList } from "./lists.ts";
import { limitOf } from "./runtime-jobs.ts";
import { type Session, withGateway } from "./session.ts";
import { cleanText } from "./text.ts";

const PAGE = 200;

/** A run on one of the two APIs, as far as these commands look at it. */
interface AskedRun {
  /** What the other commands take. */
  readonly id: string;
  requests(): AsyncIterable<HumanRequest>;
  answer(requestId: string, answer: HumanAnswer): Promise<HumanRequest>;
  /** @param limit of all of them; null for every one */
  letters(pageSize: number, limit: number | null): AsyncIterable<DeadLetter>;
  /** @param deadLetterId null for all that are open */
  retry(deadLetterId: string | null): Promise<Retried>;
}

/** Does a command's work with the run that its first word names; of a gateway's job the latest run. */
function withRun(call: Call, work: (run: AskedRun) => Promise<number>): Promise<number> {
  const id = call.words[0] ?? "";
  const kind = gatewayKind(id);
  if (kind === null) return onRuntime(call, id).then(work);
  return withGateway(call, async ({ client }) => {
    if (kind === "run") return work(onGateway(client, id));
    const { latest_run: latest } = await client.jobs.get(id);
    if (latest !== null) return work(onGateway(client, latest.run_id));
    call.terminal.note(`${id} has no run yet. Start one: troupe runs start ${id}`);
    return exitCodes.success;
  });
}

function onGateway({ runs }: Session["client"], id: string): AskedRun {
  return {
    id,
    requests: () => runs.humanRequests(id, { status: "pending", page_size: PAGE }),
    answer: (requestId, answer) => runs.answer(id, requestId, answer),
    letters: (pageSize) => runs.deadLetters(id, { page_size: pageSize }),
    retry: (letter) => (letter === null ? runs.retryDeadLetters(id) : runs.retryDeadLetter(id, letter)),
  };
}

async function onRuntime(call: Call, id: string): Promise<AskedRun> {
  const client = clientFor(call);
  const runId = (await client.job(id)).job.run_id ?? "";
  return {
    id,
    requests: async function* () {
      yield* await client.humanRequests(runId);
    },
    answer: (requestId, answer) => client.answer(runId, requestId, answer),
    letters: async function* (_pageSize, limit) {
      // One more than is shown tells whether there are more.
      yield* await client.deadLetters(runId, limit === null ? null : limit + 1);
    },
    retry: (letter) => client.retryDeadLetters(runId, letter),
  };
}

// ------------------------------------------------------------------------------------------------ human

/** `troupe human`: open requests of one run, or of every run of the gateway that is under way. */
export async function human(call: Call): Promise<number> {
  if (call.words[0] !== undefined) return withRun(call, (run) => printRequests(call, requestsOf(run)));
  return withGateway(call, ({ client }) => printRequests(call, requestsOfAll(client)));
}

interface OpenRequest {
  /** Of the run, or of the runtime's job. */
  readonly id: string;
  readonly request: HumanRequest;
}

async function* requestsOf(run: AskedRun): AsyncGenerator<OpenRequest, undefined> {
  for await (const request of run.requests()) yield { id: run.id, request };
}

async function* requestsOfAll(client: Session["client"]): AsyncGenerator<OpenRequest, undefined> {
  for (const status of ["running", "queued", "paused"] as const) {
    for await (const run of client.runs.list({ status, page_size: PAGE })) {
      if (run.progress.human_pending > 0) yield* requestsOf(onGateway(client, run.run_id));
    }
  }
}

async function printRequests(call: Call, requests: AsyncIterable<OpenRequest>): Promise<number> {
  if (call.flag("json")) {
    return printList<HumanRequest>(call, { ...table, items: () => recordsOf(requests), row: () => [] }, null);
  }
  let isEmpty = true;
  const watched = async function* () {
    for await (const one of requests) {
      isEmpty = false;
      yield one;
    }
  };
  const row = ({ id, request }: OpenRequest) => requestRow(id, request);
  const code = await printList<OpenRequest>(call, { ...table, items: watched, row }, null);
  if (!isEmpty) call.terminal.note("Answer with: troupe answer RUN REQUEST DECISION");
  return code;
}

const table = { head: requestHead, nothing: "Nobody is asked anything." };

async function* recordsOf(requests: AsyncIterable<OpenRequest>): AsyncGenerator<HumanRequest, undefined> {
  for await (const { request } of requests) yield request;
}

/** `troupe answer`. */
export async function answer(call: Call): Promise<number> {
  const [, requestId = "", decision = ""] = call.words;
  const comment = call.text("comment");
  const given = { decision, ...(comment !== null && { comment }), ...dataOf(call) };
  return withRun(call, async (run) => {
    const answered = await run.answer(requestId, given);
    call.terminal.print(call.flag("json") ? JSON.stringify(answered) : answeredLine(answered));
    return exitCodes.success;
  });
}

function dataOf(call: Call): { readonly data?: unknown } {
  const text = call.text("data");
  if (text === null) return {};
  const parsed = parseJson(text, limits.jsonDepthMax);
  if (parsed === null) throw new UsageError(`--data is no JSON. Example: --data '{"version": 3}'`);
  return { data: parsed.value };
}

// ----------------------------------------------------------------------------------------- dead letters

/** `troupe dead-letters`: lists them, or sends one or all open ones again. */
export async function deadLetters(call: Call): Promise<number> {
  const one = call.text("retry");
  if (one !== null && call.flag("retry-all")) throw new UsageError("Give --retry or --retry-all, not both.");
  if (one !== null || call.flag("retry-all")) return withRun(call, (run) => retry(call, run, one));
  const limit = limitOf(call);
  return withRun(call, (run) =>
    printList<DeadLetter>(
      call,
      {
        items: (pageSize) => run.letters(pageSize, limit),
        head: letterHead,
        row: letterRow,
        nothing: `${cleanText(run.id)} has no dead letters.`,
      },
      limit,
    ),
  );
}

async function retry(call: Call, run: AskedRun, deadLetterId: string | null): Promise<number> {
  const retried = await run.retry(deadLetterId);
  if (call.flag("json")) {
    call.terminal.print(JSON.stringify(retried));
    return exitCodes.success;
  }
  const [line, why] = retriedLines(retried);
  call.terminal.print(line);
  if (why !== null) call.terminal.note(why);
  return exitCodes.success;
}
