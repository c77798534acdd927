// Following a run of the gateway to its end, and showing what it came to.

import { setTimeout as pause } from "node:timers/promises";
import { type Run, type TroupeClient, TroupeUnreachable } from "../../sdk/src/index.ts";
import type { JsonValue } from "../engine/json.ts";
import { CommandFailed, exitCodes } from "./command.ts";
import { watch, watchStyleFor } from "./follow.ts";
import { failureOf, historyEvent } from "./record-text.ts";
import { endLines } from "./result-text.ts";
import { filesOf, linkTo, placed, saveInto } from "./run-files.ts";
import type { Session } from "./session.ts";
import { cleanText, fit } from "./text.ts";
import type { HistoryEvent } from "./wire.ts";

/** The name under which the gateway knows a run's dashboard. */
const WEB_UI_SERVICE = "blueprint-web-ui";

/**
 * Shows a run as it goes, then how it ended; with --json only the end, and with --save copies of its files.
 *
 * @param also what else stands in the JSON document
 * @returns the exit code: of the run's end, or 130 when the watching was interrupted
 */
export async function watchRun(session: Session, runId: string, also: object = {}): Promise<number> {
  const { call, client } = session;
  const watching = call.flag("json") ? client.runs.wait(runId) : watchLive(session, runId);
  if (!(await isOver(session, runId, watching))) return exitCodes.interrupted;
  return showEnd(session, await client.runs.get(runId), also);
}

/** The same for a run that was just asked for: it may have to be prepared first. */
export async function watchLaunch(session: Session, runId: string, also: object = {}): Promise<number> {
  const preparing = session.call.flag("json") ? Promise.resolve() : showPreparation(session, runId);
  if (!(await isOver(session, runId, preparing))) return exitCodes.interrupted;
  return watchRun(session, runId, also);
}

const LABEL_MS = 500;

/** What a run that is not launched yet is waiting for, as it changes. */
async function showPreparation({ call, client, interrupt }: Session, runId: string): Promise<void> {
  const { terminal } = call;
  let shown: string | null = null;
  for (;;) {
    const { status, progress } = await client.runs.get(runId);
    if (status !== "pending") break;
    if (progress.label !== shown) {
      shown = progress.label;
      const line = cleanText(shown ?? "");
      if (terminal.isScreen) terminal.redraw([fit(line, terminal.size().columns)]);
      else if (line !== "") terminal.print(line);
    }
    await pause(LABEL_MS, undefined, { signal: interrupt });
  }
  terminal.settle();
}

/** Shows the events as they come, and where the run's page is, once it can be reached. */
async function watchLive(session: Session, runId: string): Promise<void> {
  const { terminal } = session.call;
  const style = watchStyleFor(terminal);
  let page: string | null = null;
  const found = (line: string) => {
    if (style === "lines" && line !== page) terminal.print(line);
    page = line;
  };
  const events = historyOf(session, runId, found);
  await watch({ id: runId, events, footer: () => page }, terminal, style);
}

/** Waits without a word, then shows how the run ended. */
export async function awaitRun(session: Session, runId: string): Promise<number> {
  const { client } = session;
  if (!(await isOver(session, runId, client.runs.wait(runId)))) return exitCodes.interrupted;
  return showEnd(session, await client.runs.get(runId), {});
}

/**
 * @returns false when the waiting was interrupted; what it means for the run has then been said
 * @throws CommandFailed that says how to go on, when the gateway has gone away for too long
 */
async function isOver(
  { call, interrupt }: Session,
  runId: string,
  waiting: Promise<unknown>,
): Promise<boolean> {
  try {
    await waiting;
    return true;
  } catch (error) {
    const id = cleanText(runId);
    if (!interrupt.aborted && error instanceof TroupeUnreachable && error.status === null) {
      throw new CommandFailed(
        `${error.message}\nThe run goes on when the gateway does. Start it with \`troupe up\`, then: troupe runs events ${id} --follow`,
      );
    }
    if (!interrupt.aborted) throw error;
    call.terminal.note(
      `Stopped watching; the run goes on. Follow it: troupe runs events ${id} --follow. End it: troupe runs cancel ${id}`,
    );
    return false;
  }
}

/** @param found told in a line where the run's page is: its own dashboard, and after the end the gateway's */
async function* historyOf(
  session: Session,
  runId: string,
  found: (line: string) => void,
): AsyncGenerator<HistoryEvent, undefined> {
  const { client } = session;
  let hadDashboard = false;
  for await (const event of client.runs.follow(runId)) {
    const seen = historyEvent(event);
    if (seen.payload.name === WEB_UI_SERVICE) {
      // A short run is over before its dashboard can be reached.
      hadDashboard ||= seen.type === "service_registered";
      const url = seen.type === "service_passing" ? await dashboardOf(client, runId) : null;
      if (url !== null) found(`Dashboard ${cleanText(url)}`);
    }
    yield seen;
  }
  if (hadDashboard) found(`Its page stays at ${linkTo(session, { url: `/api/v1/runs/${runId}/dashboard` })}`);
}

/** @returns null when the dashboard has gone, or nobody says where it is: what is watched is the run */
async function dashboardOf(client: TroupeClient, runId: string): Promise<string | null> {
  const query = { name: WEB_UI_SERVICE, run_id: runId, status: "passing" } as const;
  try {
    for await (const { public_url } of client.services.list(query)) return public_url;
  } catch {
    // The watching itself meets the same trouble, and knows what to do about it.
  }
  return null;
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
    address: (url: string) => linkTo(session, { url }),
  };
  return endLines(ended, session.call.terminal.paint);
}

/** What a command ends with that waited for a run. */
export function exitCodeOf(status: Run["status"]): number {
  if (status === "completed") return exitCodes.success;
  return status === "cancelled" ? exitCodes.cancelled : exitCodes.failure;
}
