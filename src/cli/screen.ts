// A run as a screen: a head line and one line per agent, never more lines than the screen has, never wider. Pure.

import { answerCommand, questionText } from "./event-text.ts";
import { type AgentProgress, type AgentState, isActive, type RunProgress } from "./progress.ts";
import type { Paint, Style } from "./terminal.ts";
import { cleanText, displayWidth, duration, fit, pad, plural, wrapCommand } from "./text.ts";

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** Which agents are shown when not all fit: those that do something first. */
const importance: Readonly<Record<AgentState, number>> = {
  failed: 0,
  running: 1,
  retrying: 2,
  queued: 3,
  stopped: 4,
  ready: 5,
  done: 6,
};

const styles: Readonly<Record<AgentState, Style | null>> = {
  failed: "red",
  running: "cyan",
  retrying: "yellow",
  queued: "blue",
  stopped: "yellow",
  ready: null,
  done: "green",
};

const AGENT_COLUMNS_MAX = 32;
const STATE_COLUMNS = 9;
const COUNT_COLUMNS = 8;
const TIME_COLUMNS = 12;
const QUESTIONS_SHOWN = 3;
/** Head, titles, the line for the rest, and the cursor's own line. */
const FRAME_ROWS = 4;

/**
 * Draws a run.
 *
 * @param nowMs wall time, for what is still going on
 * @returns at most `rows - 1` lines of at most `columns` columns
 */
export function renderScreen(
  jobId: string,
  run: RunProgress,
  size: ScreenSize,
  nowMs: number,
  paint: Paint,
): readonly string[] {
  const columns = Math.max(20, size.columns);
  const rowsMax = Math.max(1, size.rows - 1);
  const questions = questionLines(jobId, run, { columns, rows: rowsMax - 1 }, paint);
  const room = Math.max(0, size.rows - FRAME_ROWS - questions.length);
  const all = [...run.agents.values()];
  const shown = choose(all, room);
  const agentColumns = Math.min(
    AGENT_COLUMNS_MAX,
    Math.max(5, ...shown.map((a) => displayWidth(cleanText(a.agentId)))),
  );
  const lines = [headLine(jobId, run, columns, nowMs, paint)];
  if (shown.length > 0) {
    const titles = ["AGENT", "STATE", "MESSAGES", "TIME", "LAST"];
    lines.push(paint("dim", fit(row(titles, agentColumns), columns)));
  }
  for (const agent of shown) lines.push(agentLine(agent, agentColumns, columns, nowMs, paint));
  if (shown.length < all.length) lines.push(paint("dim", fit(restLine(all, shown), columns)));
  return [...lines.slice(0, Math.max(0, rowsMax - questions.length)), ...questions].slice(0, rowsMax);
}

/** What a person has to answer; a command is never cut, so that it can be copied. */
function questionLines(
  jobId: string,
  { questions }: RunProgress,
  { columns, rows }: ScreenSize,
  paint: Paint,
): readonly string[] {
  const lines: string[] = [];
  let shown = 0;
  for (const question of questions.values()) {
    const added = [
      paint("yellow", fit(`Waits for a person: ${questionText(question)}`, columns)),
      ...wrapCommand(`  ${answerCommand(jobId, question)}`, columns),
    ];
    // One line is kept for the number of the others.
    if (shown === QUESTIONS_SHOWN || (shown > 0 && lines.length + added.length >= rows)) break;
    lines.push(...added);
    shown++;
  }
  const more = questions.size - shown;
  if (more > 0) {
    lines.push(fit(`… and ${plural(more, "more question")}:`, columns));
    lines.push(...wrapCommand(`  troupe human ${cleanText(jobId)}`, columns));
  }
  return lines;
}

function headLine(jobId: string, run: RunProgress, columns: number, nowMs: number, paint: Paint): string {
  const elapsed = run.startedAtMs === null ? 0 : (run.endedAtMs ?? nowMs) - run.startedAtMs;
  const counts = [plural(run.agents.size, "agent"), plural(run.messages, "message")];
  if (run.artifacts > 0) counts.push(plural(run.artifacts, "file"));
  const text = `${cleanText(jobId)}  ${run.jobState}  ${duration(elapsed)}  ${counts.join(", ")}`;
  return paint("bold", fit(text, columns));
}

function agentLine(
  agent: AgentProgress,
  agentColumns: number,
  columns: number,
  nowMs: number,
  paint: Paint,
): string {
  const retries = agent.attempt > 1 && agent.state !== "ready" ? `attempt ${agent.attempt}  ` : "";
  const bar = agent.percent !== null && agent.state === "running" ? `${progressBar(agent.percent)} ` : "";
  const cells = [
    cleanText(agent.agentId),
    agent.state,
    String(agent.messages),
    isActive(agent) ? duration(nowMs - agent.sinceMs) : "",
    `${bar}${retries}${agent.text}`,
  ];
  const text = fit(row(cells, agentColumns), columns);
  const style = styles[agent.state];
  const before = row(cells.slice(0, 1), agentColumns).trimEnd();
  return style === null ? text : paintState(text, before.length, agent.state, (word) => paint(style, word));
}

/** Colours only the state; not when a narrow line has cut it. */
function paintState(text: string, from: number, state: string, colour: (word: string) => string): string {
  const start = text.indexOf(state, from);
  if (start === -1) return text;
  return text.slice(0, start) + colour(state) + text.slice(start + state.length);
}

function row(cells: readonly string[], agentColumns: number): string {
  const [agent = "", state = "", count = "", time = "", last = ""] = cells;
  return [
    pad(fit(agent, agentColumns), agentColumns),
    pad(state, STATE_COLUMNS),
    count.padStart(COUNT_COLUMNS),
    pad(time, TIME_COLUMNS),
    last,
  ].join("  ");
}

const BAR_CELLS = 10;

function progressBar(percent: number): string {
  const full = Math.round((percent / 100) * BAR_CELLS);
  return "█".repeat(full) + "░".repeat(BAR_CELLS - full);
}

/** All agents in their order of appearance if they fit, else the most important of them in that order. */
function choose(all: readonly AgentProgress[], room: number): readonly AgentProgress[] {
  if (all.length <= room) return all;
  const ranked = all.map((agent, index) => ({ agent, index }));
  ranked.sort(
    (a, b) =>
      importance[a.agent.state] - importance[b.agent.state] ||
      b.agent.sinceMs - a.agent.sinceMs ||
      a.index - b.index,
  );
  return ranked
    .slice(0, room)
    .sort((a, b) => a.index - b.index)
    .map(({ agent }) => agent);
}

function restLine(all: readonly AgentProgress[], shown: readonly AgentProgress[]): string {
  const visible = new Set(shown);
  const counts = new Map<AgentState, number>();
  for (const agent of all) {
    if (!visible.has(agent)) counts.set(agent.state, (counts.get(agent.state) ?? 0) + 1);
  }
  const words = [...counts].map(([state, count]) => `${count} ${state}`);
  return `… and ${plural(all.length - shown.length, "more agent")}: ${words.join(", ")}`;
}
