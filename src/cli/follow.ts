// Watching a run: its events go to a live screen, or to plain lines, until the terminal event.

import type { RuntimeClient } from "./client.ts";
import { eventLine, isWorthReading } from "./event-text.ts";
import { applyEvent, newProgress } from "./progress.ts";
import { renderScreen } from "./screen.ts";
import type { Terminal } from "./terminal.ts";

/** How often the screen is drawn: quick enough to feel live, slow enough to cost nothing. */
const FRAME_MS = 120;

export type WatchStyle = "live" | "lines" | "silent";

/** A live view on a screen, plain lines anywhere else. */
export function watchStyleFor(terminal: Terminal): WatchStyle {
  return terminal.isScreen ? "live" : "lines";
}

/** Shows a job's events until its terminal one. Ends with the client's errors, also when it is interrupted. */
export async function watch(
  client: RuntimeClient,
  jobId: string,
  terminal: Terminal,
  style: WatchStyle,
): Promise<void> {
  if (style === "live") return watchLive(client, jobId, terminal);
  for await (const event of client.follow(jobId)) {
    if (style === "lines" && isWorthReading(event)) terminal.print(eventLine(event, terminal.paint));
  }
}

async function watchLive(client: RuntimeClient, jobId: string, terminal: Terminal): Promise<void> {
  const run = newProgress();
  const draw = () => terminal.redraw(renderScreen(jobId, run, terminal.size(), Date.now(), terminal.paint));
  const frames = setInterval(draw, FRAME_MS);
  try {
    for await (const event of client.follow(jobId)) applyEvent(run, event);
  } finally {
    clearInterval(frames);
    draw();
    terminal.settle();
  }
}
