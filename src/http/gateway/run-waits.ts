// Starts of runs that may wait for the end (`Prefer: wait`). What is kept under an Idempotency-Key is the answer without
// waiting, so that a repeated request waits again, for the same runs.

import type { FastifyReply, FastifyRequest } from "fastify";
import { isTerminal } from "../../engine/journal.ts";
import type { NewRun } from "../../launch/records.ts";
import { answerStarted, type Start, sendGiven } from "./idempotent.ts";
import { renderRun } from "./render-run.ts";
import type { GatewayServices } from "./services.ts";

export interface StartOfRun<Started> extends Start<Started> {
  runOf(started: Started): NewRun;
}

/** Answers 202 under an Idempotency-Key; or, to a request that waits, 200 and the run once it has ended. */
export async function sendStartedRun<Started>(
  services: GatewayServices,
  request: FastifyRequest,
  reply: FastifyReply,
  start: StartOfRun<Started>,
): Promise<FastifyReply> {
  const isWaiting = services.waits.isAsked(reply);
  const { given, started } = await answerStarted(services, request, start);
  const launch = () => {
    if (started !== undefined) start.started(started);
  };
  if (!isWaiting) {
    launch();
    return sendGiven(reply, given);
  }
  const { run_id: runId } = JSON.parse(given.answer.body) as { readonly run_id: string };
  await allEnded(services, reply, { runIds: [runId], fresh: started && [start.runOf(started)], launch });
  const ended = await renderEnded(services, runId);
  if (ended === null) return sendGiven(reply, given);
  reply.header("preference-applied", "wait");
  return sendGiven(reply, { ...given, answer: { ...given.answer, status: 200, body: ended } });
}

export interface StartedRuns {
  readonly runIds: readonly string[];
  /** The same, as this very request has made them; undefined when an earlier one has. */
  readonly fresh: readonly NewRun[] | undefined;
  /** Has fresh ones launched. */
  launch(): void;
}

/** Launches runs and waits for their ends. @returns whether all of them have ended */
export async function allEnded(
  services: GatewayServices,
  reply: FastifyReply,
  { runIds, fresh, launch }: StartedRuns,
): Promise<boolean> {
  if (fresh === undefined) return oldOnesEnded(services, reply, runIds);
  // Before the launch: none of them can have ended.
  const watch = services.waits.watch(
    reply,
    fresh.map(({ runtimeJobId }) => runtimeJobId),
  );
  launch();
  await watch.over;
  return watch.isComplete;
}

async function oldOnesEnded(
  { records, waits }: GatewayServices,
  reply: FastifyReply,
  runIds: readonly string[],
): Promise<boolean> {
  const open = (await Promise.all(runIds.map((runId) => records.openRun(runId)))).filter(
    (run) => run !== null,
  );
  const watch = waits.watch(
    reply,
    open.map(({ runtimeJobId }) => runtimeJobId),
  );
  // Some may have ended between the look at them and the watch.
  for (const { runId, runtimeJobId } of open) {
    if ((await records.openRun(runId)) === null) watch.ended(runtimeJobId);
  }
  await watch.over;
  return watch.isComplete;
}

/** @returns null for a run that has not ended, or has been deleted */
export async function renderEnded(
  { records, secrets }: GatewayServices,
  runId: string,
): Promise<string | null> {
  const run = await records.run(runId);
  return run === null || !isTerminal(run.status) ? null : renderRun(run, { secrets, nowMs: null });
}
