// The program when it must not start: what it said, and its exit code.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { type ProgramOptions, programEnvironment, programWords, within } from "./program.ts";

/** How long a program that hangs can hold up a test run; no test asserts on it. */
const LIMIT_MS = 60_000;

export interface DomainError {
  readonly code: number | null;
  readonly text: string;
}

/** Starts the program and waits until it has ended; one that starts to serve is ended, and is an error. */
export async function refusedStart(
  options: ProgramOptions & { readonly home: string },
): Promise<DomainError> {
  const [file, ...args] = programWords(options);
  const child = spawn(file, args, {
    env: programEnvironment(options.home, options.env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("Ready.")) child.kill("SIGKILL");
    });
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const code = await within(LIMIT_MS, ended, () => {
    child.kill("SIGKILL");
    return `the program neither started nor ended within ${LIMIT_MS} ms; it printed:\n${text}`;
  });
  assert.ok(!text.includes("Ready."), `the program started:\n${text}`);
  assertRefusal(text);
  return { code, text };
}

/** A person reads this: a few lines, and nothing of the program's inside. */
export function assertRefusal(text: string): void {
  assert.ok(text.trim().split("\n").length <= 5, `too many lines:\n${text}`);
  assert.doesNotMatch(text, /\n\s+at /, "no stack");
}
