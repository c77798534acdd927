// Following a run to its end: its events go to a live screen, or to plain lines, until the terminal event; then what it
// came to is shown.

import { setTimeout as pause } from "node:timers/promises";
import { type Run, type TroupeClient, TroupeUnreachable } from "../../sdk/src/index.ts";
import type { JsonValue } from "../engine/json.ts";
import { type Call, CommandFailed, exitCodes, printAnswer, UsageError } from "./command.ts";
import {
  answerCommand,
  eventLine,
  type HistoryEvent,
  isQuestion,
  isWorthReading,
  readEvent,
} from "./event-text.ts";
import { applyEvent, newProgress } from "./progress.ts";
import { failureOf } from "./record-text.ts";
import { endLines } from "./result-text.ts";
import { filesOf, linkTo, placed, type RunFile, saveInto } from "./run-files.ts";
import { checkSaveFolder } from "./save.ts";
import { renderScreen } from "./screen.ts";
import type { ServerCall } from "./session.ts";
import type { Terminal } from "./terminal.ts";
import { cleanText, fit, wrap } from "./text.ts";

/** How often the screen is drawn: quick enough to feel live, slow enough to cost nothing. */
const FRAME_MS = 120;
/** How often a run that is prepared is asked what it waits for. */
const LABEL_MS = 500;
/** The name under which the gateway knows a run's dashboard. */
const WEB_UI_SERVICE = "blueprint-web-ui";

// ------------------------------------------------------------------------------------------ any API's run

/** What is watched: a run's events to their end, and the id that stands above them. */
export interface Watched {
  readonly id: string;
  readonly events: AsyncIterable<HistoryEvent>;
  /** A line that stays below the picture of a screen, once there is one; its address is not cut at the edge. */
  readonly footer?: () => string | null;
}

/** Shows a run's events until they end. Throws what the events throw, also when they are interrupted. */
export async function watch(watched: Watched, terminal: Terminal): Promise<void> {
  if (terminal.isScreen) return watchLive(watched, terminal);
  for await (const event of watched.events) {
    if (!isWorthReading(event)) continue;
    terminal.print(eventLine(event, terminal.paint));
    // Silence would follow, and nobody would know why.
    if (isQuestion(event)) terminal.print(`  Answer it: ${answerCommand(watched.id, event.payload)}`);
  }
}

async function watchLive({ id, events, footer }: Watched, terminal: Terminal): Promise<void> {
  const run = newProgress();
  const draw = () => {
    const { columns, rows } = terminal.size();
    const line = footer?.() ?? null;
    const below = line === null ? [] : wrap(line, Math.max(20, columns)).slice(0, Math.max(1, rows - 2));
    const size = { columns, rows: rows - below.length };
    terminal.redraw([...renderScreen(id, run, size, Date.now(), terminal.paint), ...below]);
  };
  const frames = setInterval(draw, FRAME_MS);
  try {
    for await (const event of events) applyEvent(run, event);
  } finally {
    clearInterval(frames);
    draw();
    terminal.settle();
  }
}

/**
 * Whether a command follows the run that it starts.
 *
 * @throws UsageError when it must, for --save, and was told not to; or when the folder of --save is not empty
 */
export function watchesAsked(call: Call, unlessSaid: boolean): boolean {
  if (call.flag("watch") === false && call.text("save") !== null) {
    throw new UsageError(
      "--save needs the end of the run: leave --no-watch out, or later use `troupe runs save`.",
    );
  }
  checkSaveFolder(call);
  return call.flag("watch") ?? unlessSaid;
}

/** Tells about a run that is not followed. @param document its JSON */
export function started(call: Call, id: string, document: object): number {
  const code = printAnswer(call, document, () => cleanText(id));
  if (!call.flag("json"))
    call.terminal.note(`Started. Follow it with: troupe events ${cleanText(id)} --follow`);
  return code;
}

/**
 * @returns false when the waiting was interrupted; what it means for the run has then been said
 * @throws CommandFailed that says how to go on, when the server has gone away for too long
 */
export async function isOver(call: ServerCall, runId: string, waiting: Promise<unknown>): Promise<boolean> {
  const { interrupt, terminal } = call;
  try {
    await waiting;
    return true;
  } catch (error) {
    const id = cleanText(runId);
    if (!interrupt.aborted && error instanceof TroupeUnreachable && error.status === null) {
      throw new CommandFailed(
        `${error.message}\nThe run continues when the server is back. Start it with \`troupe up\`, then: troupe events ${id} --follow`,
      );
    }
    if (!interrupt.aborted) throw error;
    terminal.note(
      call.isOwnServer
        ? "Stopped watching. The run is kept, and resumes at the next `troupe up` or `troupe run`."
        : `Stopped watching; the run goes on. Follow it: troupe events ${id} --follow. End it: troupe cancel ${id}`,
    );
    return false;
  }
}

/** What a command ends with that waited for a run. */
export function exitCodeOf(status: string): number {
  if (status === "completed") return exitCodes.success;
  return status === "cancelled" ? exitCodes.cancelled : exitCodes.failure;
}

// ------------------------------------------------------------------------------------------ the gateway's

/**
 * Shows a run as it goes, then how it ended; with --json only the end, and with --save copies of its files.
 *
 * @param also what else stands in the JSON document
 * @returns the exit code: of the run's end, or 130 when the watching was interrupted
 */
export async function watchRun(call: ServerCall, runId: string, also: object = {}): Promise<number> {
  return ending(call, runId, call.flag("json") ? call.client.runs.wait(runId) : showLive(call, runId), also);
}

/** The same for a run that was just asked for: it may have to be prepared first. */
export async function watchLaunch(call: ServerCall, runId: string): Promise<number> {
  const preparing = call.flag("json") ? Promise.resolve() : showPreparation(call, runId);
  return (await isOver(call, runId, preparing)) ? watchRun(call, runId) : exitCodes.interrupted;
}

/** Waits without a word, then shows how the run ended. */
export async function awaitRun(call: ServerCall, runId: string): Promise<number> {
  return ending(call, runId, call.client.runs.wait(runId));
}

async function ending(
  call: ServerCall,
  runId: string,
  waiting: Promise<unknown>,
  also: object = {},
): Promise<number> {
  if (!(await isOver(call, runId, waiting))) return exitCodes.interrupted;
  const run = await call.client.runs.get(runId);
  const folder = call.text("save");
  const files = await filesOf(call.client, runId);
  const places =
    folder === null ? new Map<string, string>() : await saveInto(call, call.client.runs, files, folder);
  const outputs = files.map((file) => placed(call.client, file, places));
  printAnswer(call, { ...also, ...run, outputs }, () => runEndLines(call, run, files, places));
  if (call.isOwnServer && files.length > places.size) {
    call.terminal.note(
      "The addresses answer while a gateway is up (`troupe up`); --save FOLDER copies the outputs at once.",
    );
  }
  return exitCodeOf(run.status);
}

/** What a run that is not launched yet is waiting for, as it changes. */
async function showPreparation({ terminal, client, interrupt }: ServerCall, runId: string): Promise<void> {
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
async function showLive({ terminal, client }: ServerCall, runId: string): Promise<void> {
  let page: string | null = null;
  const found = (line: string) => {
    if (!terminal.isScreen && line !== page) terminal.print(line);
    page = line;
  };
  await watch({ id: runId, events: historyOf(client, runId, found), footer: () => page }, terminal);
}

/** @param found told in a line where the run's page is: its own dashboard, and after the end the gateway's */
async function* historyOf(
  client: TroupeClient,
  runId: string,
  found: (line: string) => void,
): AsyncGenerator<HistoryEvent, undefined> {
  let hadDashboard = false;
  for await (const event of client.runs.follow(runId)) {
    const seen = readEvent(event.id, event);
    if (seen.payload.name === WEB_UI_SERVICE) {
      // A short run is over before its dashboard can be reached.
      hadDashboard ||= seen.type === "service_registered";
      const url = seen.type === "service_passing" ? await dashboardOf(client, runId) : null;
      if (url !== null) found(`Dashboard ${cleanText(url)}`);
    }
    yield seen;
  }
  if (hadDashboard) found(`Its page stays at ${linkTo(client, { url: `/api/v1/runs/${runId}/dashboard` })}`);
}

/** @returns null when the dashboard has gone, or nobody says where it is: what is watched is the run */
async function dashboardOf(client: TroupeClient, runId: string): Promise<string | null> {
  const query = { name: WEB_UI_SERVICE, run_id: runId, status: "passing" } as const;
  try {
    for await (const { public_url } of client.services.list(query)) return public_url;
  } catch {
    // Following the run fails the same way, and handles it.
  }
  return null;
}

/** How a run stands: status, failure, result, files. */
export function runEndLines(
  { client, terminal }: ServerCall,
  run: Run,
  files: readonly RunFile[],
  places: ReadonlyMap<string, string> = new Map(),
): readonly string[] {
  const failure = failureOf(run.failure);
  const ended = {
    id: run.run_id,
    status: run.status,
    // A failure of an unknown form is shown as it is.
    result: (failure === null && run.failure !== null ? run.failure : run.result) as JsonValue,
    failure,
    files,
    place: (file: RunFile) => places.get(file.artifact_id) ?? linkTo(client, file),
    address: (url: string) => linkTo(client, { url }),
  };
  return endLines(ended, terminal.paint);
}
