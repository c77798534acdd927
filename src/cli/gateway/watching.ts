// Following a run of the gateway to its end, and showing what it came to.

import type { Run, TroupeClient } from "../../../sdk/src/index.ts";
import type { JsonValue } from "../../engine/json.ts";
import { exitCodes } from "../command.ts";
import { watch, watchStyleFor } from "../follow.ts";
import { endLines } from "../result-text.ts";
import { cleanText } from "../text.ts";
import type { HistoryEvent } from "../wire.ts";
import { failureOf, historyEvent } from "./record-text.ts";
import { filesOf, linkTo, placed, saveInto } from "./run-files.ts";
import type { Session } from "./session.ts";

/**
 * Shows a run as it goes, then how it ended; with --json only the end, and with --save copies of its files.
 *
 * @param also what else stands in the JSON document
 * @returns the exit code: of the run's end, or 130 when the watching was interrupted
 */
export async function watchRun(session: Session, runId: string, also: object = {}): Promise<number> {
  const { call, client } = session;
  const watching = call.flag("json")
    ? client.runs.wait(runId)
    : watch({ id: runId, events: historyOf(client, runId) }, call.terminal, watchStyleFor(call.terminal));
  if (!(await isOver(session, runId, watching))) return exitCodes.interrupted;
  return showEnd(session, await client.runs.get(runId), also);
}

/** Waits without a word, then shows how the run ended. */
export async function awaitRun(session: Session, runId: string): Promise<number> {
  const { client } = session;
  if (!(await isOver(session, runId, client.runs.wait(runId)))) return exitCodes.interrupted;
  return showEnd(session, await client.runs.get(runId), {});
}

/** @returns false when the waiting was interrupted; what it means for the run has then been said */
async function isOver(
  { call, interrupt }: Session,
  runId: string,
  waiting: Promise<unknown>,
): Promise<boolean> {
  try {
    await waiting;
    return true;
  } catch (error) {
    if (!interrupt.aborted) throw error;
    const id = cleanText(runId);
    call.terminal.note(
      `Stopped watching; the run goes on. Follow it: troupe runs events ${id} --follow. End it: troupe runs cancel ${id}`,
    );
    return false;
  }
}

async function* historyOf(client: TroupeClient, runId: string): AsyncGenerator<HistoryEvent, undefined> {
  for await (const event of client.runs.follow(runId)) yield historyEvent(event);
}

async function showEnd(session: Session, run: Run, also: object): Promise<number> {
  const { call } = session;
  const folder = call.text("save");
  const files = await filesOf(session, run.run_id);
  const places = folder === null ? new Map<string, string>() : await saveInto(session, files, folder);
  if (call.flag("json")) {
    const outputs = files.map((file) => placed(session, file, places));
    call.terminal.print(JSON.stringify({ ...also, ...run, outputs }));
  } else {
    for (const line of runEndLines(session, run, files, places)) call.terminal.print(line);
  }
  return exitCodeOf(run.status);
}

/** How a run stands: status, failure, result, files. */
export function runEndLines(
  session: Session,
  run: Run,
  files: Awaited<ReturnType<typeof filesOf>>,
  places: ReadonlyMap<string, string> = new Map(),
): readonly string[] {
  const failure = failureOf(run.failure);
  const ended = {
    id: run.run_id,
    status: run.status,
    // A failure of an unknown form is shown as it is.
    result: (failure === null && run.failure !== null ? run.failure : run.result) as JsonValue,
    failure,
    files: files.map((file) => ({ title: null, primary: false, ...file })),
    place: (file: { readonly artifact_id: string; readonly url: string }) =>
      places.get(file.artifact_id) ?? linkTo(session, file),
  };
  return endLines(ended, session.call.terminal.paint);
}

/** What a command ends with that waited for a run. */
export function exitCodeOf(status: Run["status"]): number {
  if (status === "completed") return exitCodes.success;
  return status === "cancelled" ? exitCodes.cancelled : exitCodes.failure;
}
