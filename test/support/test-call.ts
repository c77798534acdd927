// One use of a command for tests, and what it printed.

import type { Call } from "../../src/cli/command.ts";
import { plainPaint } from "../../src/cli/terminal.ts";

export interface TestCall extends Call {
  /** What stands on stdout and stderr so far, line by line. */
  readonly out: string[];
  readonly err: string[];
}

export function testCall(
  options: Readonly<Record<string, string | boolean | readonly string[]>> = {},
  words: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): TestCall {
  const out: string[] = [];
  const err: string[] = [];
  return {
    out,
    err,
    words,
    env,
    terminal: {
      isScreen: false,
      paint: plainPaint,
      print: (line = "") => void out.push(line),
      note: (line) => void err.push(line),
      size: () => ({ columns: 80, rows: 24 }),
      redraw: () => {},
      settle: () => {},
    },
    text: (name) => (typeof options[name] === "string" ? options[name] : null),
    texts: (name) => (Array.isArray(options[name]) ? options[name] : []),
    flag: (name) => (typeof options[name] === "boolean" ? options[name] : null),
  };
}
