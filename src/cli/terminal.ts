// Where the command writes: results to stdout, notices and errors to stderr, and a part of the screen that is
// drawn again in place.
//
// - Escape codes are written only to a terminal, colours only without NO_COLOR and TERM=dumb.
// - When the reader has closed the pipe (`troupe events … | head`), the program ends quietly.

import type { Writable } from "node:stream";
import type { WriteStream } from "node:tty";
import { styleText } from "node:util";
import { withoutHidden } from "./text.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "cyan";

/** Puts colour around a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string;

export const plainPaint: Paint = (_style, text) => text;
export const colourPaint: Paint = (style, text) => styleText(style, text, { validateStream: false });

export interface Terminal {
  /** Whether stdout is a screen that can be drawn on. */
  readonly isScreen: boolean;
  readonly paint: Paint;
  /** One line of result. */
  print(line?: string): void;
  /** One line of notice or error. */
  note(line: string): void;
  /** The size of the screen; 80 × 24 when unknown. */
  size(): { readonly columns: number; readonly rows: number };
  /**
   * Shows lines in place of the ones it showed before; the last call's lines stay. Only on a screen, and only
   * with fewer lines than the screen has rows, each of at most `columns` columns.
   */
  redraw(lines: readonly string[]): void;
  /** Keeps what is drawn: the next lines go below it. */
  settle(): void;
}

/** The terminal of this process. */
export function openTerminal(env: NodeJS.ProcessEnv): Terminal {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  // A server keeps running, and shuts down gracefully, when its stderr is closed.
  process.stderr.on("error", () => {});
  return terminalOn(process.stdout, process.stderr, env);
}

/** A terminal that writes to two streams; the first is a screen if it is a TTY. */
export function terminalOn(
  out: Writable & Partial<Pick<WriteStream, "isTTY" | "columns" | "rows">>,
  err: Writable,
  env: NodeJS.ProcessEnv,
): Terminal {
  const isScreen = out.isTTY === true && env.TERM !== "dumb";
  let drawn = 0;
  return {
    isScreen,
    paint: isScreen && !env.NO_COLOR ? colourPaint : plainPaint,
    print: (line = "") => void out.write(`${withoutHidden(line)}\n`),
    note: (line) => void err.write(`${line}\n`),
    size: () => ({ columns: out.columns || 80, rows: out.rows || 24 }),
    redraw(lines) {
      if (!isScreen) return;
      // Each line is cleared after its text rather than before it, so that nothing flickers.
      const up = drawn > 0 ? `\x1b[${drawn}A` : "";
      out.write(`${up}\r${lines.map((line) => `${line}\x1b[K\n`).join("")}\x1b[J`);
      drawn = lines.length;
    },
    settle: () => {
      drawn = 0;
    },
  };
}
