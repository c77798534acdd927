// Following a run to its end: its events go to a live screen, or to plain lines, until the terminal event; then its
// result is shown.

import { setTimeout as pause } from "node:timers/promises";
import { TroupeUnreachable } from "../../sdk/src/index.ts";
import { type Call, CommandFailed, exitCodes, printAnswer, UsageError } from "./command.ts";
import {
  answerCommand,
  eventLine,
  type HistoryEvent,
  isQuestion,
  isWorthReading,
  readEvent,
} from "./event-text.ts";
import { DASHBOARD_SERVICE, type NamedRun, placed } from "./named-run.ts";
import { applyEvent, newProgress } from "./progress.ts";
import { endLines } from "./result-text.ts";
import { checkSaveFolder, saveRunFiles } from "./save.ts";
import { renderScreen } from "./screen.ts";
import type { ServerCall } from "./session.ts";
import type { Terminal } from "./terminal.ts";
import { cleanText, fit, wrap } from "./text.ts";

/** How often the screen is drawn: quick enough to feel live, slow enough to cost nothing. */
const FRAME_MS = 120;
/** How often a run that is prepared is asked what it waits for. */
const LABEL_MS = 500;

/** What is watched: a run's events to their end, and the id in the head line. */
export interface Watched {
  readonly id: string;
  readonly events: AsyncIterable<HistoryEvent>;
  /** A line below a live screen, once there is one; it is wrapped, so that its address is complete. */
  readonly footer?: () => string | null;
}

/** Shows a run's events until they end. Throws what the events throw, also when they are interrupted. */
export async function watch(watched: Watched, terminal: Terminal): Promise<void> {
  if (terminal.isScreen) return watchLive(watched, terminal);
  for await (const event of watched.events) {
    if (!isWorthReading(event)) continue;
    terminal.print(eventLine(event, terminal.paint));
    // Otherwise nothing more would be printed, without a reason.
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
 * @throws UsageError for --save with --no-watch, or when the folder of --save is not empty
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

/** Prints the id of a run that is not followed. @param document its JSON */
export function started(call: Call, id: string, document: object): number {
  const code = printAnswer(call, document, () => cleanText(id));
  if (!call.flag("json"))
    call.terminal.note(`Started. Follow it with: troupe events ${cleanText(id)} --follow`);
  return code;
}

/**
 * @returns false when the waiting was interrupted, after a note about what that means for the run
 * @throws CommandFailed that tells how to continue, when the server is unreachable for too long
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
        : `Stopped watching; the run continues. Follow it: troupe events ${id} --follow. End it: troupe cancel ${id}`,
    );
    return false;
  }
}

/** What a command ends with that waited for a run. */
export function exitCodeOf(status: string): number {
  if (status === "completed") return exitCodes.success;
  return status === "cancelled" ? exitCodes.cancelled : exitCodes.failure;
}

/**
 * Shows a run as it goes, then how it ended; with --json only the end, and with --save copies of its files.
 *
 * @param also further fields of the JSON document
 * @returns the exit code: of the run's end, or 130 when the watching was interrupted
 */
export async function watchRun(call: ServerCall, run: NamedRun, also: object = {}): Promise<number> {
  return ending(call, run, call.flag("json") ? run.wait() : showLive(call, run), also);
}

/** The same for a run of the gateway that was just created: it may have to be prepared first. */
export async function watchLaunch(call: ServerCall, run: NamedRun): Promise<number> {
  const preparing = call.flag("json") ? Promise.resolve() : showPreparation(call, run.id);
  return (await isOver(call, run.id, preparing)) ? watchRun(call, run) : exitCodes.interrupted;
}

/** Waits without output, then shows how the run ended. */
export async function awaitRun(call: ServerCall, run: NamedRun): Promise<number> {
  return ending(call, run, run.wait());
}

async function ending(
  call: ServerCall,
  run: NamedRun,
  waiting: Promise<unknown>,
  also: object = {},
): Promise<number> {
  if (!(await isOver(call, run.id, waiting))) return exitCodes.interrupted;
  const outcome = await run.outcome();
  const found = await run.files();
  const saved = await saveRunFiles(call, run, found);
  const files = placed(run, found, saved);
  if (call.text("save") !== null && found.length === 0)
    call.terminal.note("Nothing was saved: the run has left no files.");
  printAnswer(call, { ...also, ...outcome.document(files) }, () =>
    endLines(run, outcome, files, call.terminal.paint),
  );
  if (call.isOwnServer && files.length > saved.size) {
    call.terminal.note(
      "The addresses work while a gateway is running (`troupe up`); --save FOLDER copies the outputs now.",
    );
  }
  return exitCodeOf(outcome.status);
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
async function showLive({ terminal }: ServerCall, run: NamedRun): Promise<void> {
  let page: string | null = null;
  const found = (line: string) => {
    if (!terminal.isScreen && line !== page) terminal.print(line);
    page = line;
  };
  await watch({ id: run.id, events: historyOf(run, found), footer: () => page }, terminal);
}

/** @param found called with a line about the run's page: its own dashboard, and after the end the gateway's */
async function* historyOf(
  run: NamedRun,
  found: (line: string) => void,
): AsyncGenerator<HistoryEvent, undefined> {
  let hadDashboard = false;
  for await (const event of run.follow()) {
    const seen = readEvent(event.id, event);
    if (seen.payload.name === DASHBOARD_SERVICE) {
      // A short run is over before its dashboard can be reached.
      hadDashboard ||= seen.type === "service_registered";
      // When that fails, following the run fails the same way, and handles it.
      const url = seen.type === "service_passing" ? await run.dashboard().catch(() => null) : null;
      if (url !== null) found(`Dashboard ${cleanText(url)}`);
    }
    yield seen;
  }
  if (hadDashboard && run.page !== null) found(`Its page stays at ${run.page}`);
}
