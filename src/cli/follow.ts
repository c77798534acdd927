// Watching a run: its events go to a live screen, or to plain lines, until the terminal event.

import { answerCommand, eventLine, isQuestion, isWorthReading } from "./event-text.ts";
import { applyEvent, newProgress } from "./progress.ts";
import { renderScreen } from "./screen.ts";
import type { Terminal } from "./terminal.ts";
import { wrap } from "./text.ts";
import type { HistoryEvent } from "./wire.ts";

/** How often the screen is drawn: quick enough to feel live, slow enough to cost nothing. */
const FRAME_MS = 120;

export type WatchStyle = "live" | "lines" | "silent";

/** A live view on a screen, plain lines anywhere else. */
export function watchStyleFor(terminal: Terminal): WatchStyle {
  return terminal.isScreen ? "live" : "lines";
}

/** What is watched: a run's events to their end, and the id that stands above them. */
export interface Watched {
  readonly id: string;
  readonly events: AsyncIterable<HistoryEvent>;
  /** A line that stays below the picture of a screen, once there is one; its address is not cut at the edge. */
  readonly footer?: () => string | null;
}

/** Shows a run's events until they end. Throws what the events throw, also when they are interrupted. */
export async function watch(watched: Watched, terminal: Terminal, style: WatchStyle): Promise<void> {
  if (style === "live") return watchLive(watched, terminal);
  for await (const event of watched.events) {
    if (style !== "lines" || !isWorthReading(event)) continue;
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
