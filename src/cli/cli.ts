// The `troupe` command: finds the command, runs it, turns what it threw into lines and an exit code.

import { sections } from "./catalogue.ts";
import { type Call, CommandFailed, type CommandSpec, exitCodes, parseWords, UsageError } from "./command.ts";
import { findCommand, helpFor, overview } from "./help.ts";
import { openTerminal } from "./terminal.ts";
import { cleanLines } from "./text.ts";

/**
 * Runs one command and sets the process's exit code.
 *
 * @param args the words after `troupe`
 */
export async function runCli(args: readonly string[]): Promise<void> {
  const { env } = process;
  process.exitCode = await runCommand(args, { env, terminal: openTerminal(env) });
}

/** Where a command finds its variables, and where it writes. */
export type Surroundings = Pick<Call, "env" | "terminal">;

/** Runs one command. @returns its exit code; why it failed was written as a notice */
export async function runCommand(args: readonly string[], surroundings: Surroundings): Promise<number> {
  try {
    return await dispatch(args, surroundings);
  } catch (error) {
    const { code, lines } = explain(error);
    for (const line of lines) surroundings.terminal.note(line);
    return code;
  }
}

async function dispatch(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { terminal } = surroundings;
  const [first, ...rest] = args;
  if (first === undefined || first === "--help" || first === "-h") {
    for (const line of overview(sections)) terminal.print(line);
    return first === undefined ? exitCodes.usage : exitCodes.success;
  }
  const found = findCommand(sections, [first === "--version" || first === "-v" ? "version" : first, ...rest]);
  if (rest.some((word) => word === "--help" || word === "-h")) {
    for (const line of helpFor(found)) terminal.print(line);
    return exitCodes.success;
  }
  const run = await found.spec.load();
  return run(callOf(found.spec, found.rest, surroundings));
}

function callOf(spec: CommandSpec, args: readonly string[], surroundings: Surroundings): Call {
  const { words, options } = parseWords(spec, args);
  const texts = (name: string) => (options.get(name) ?? []).filter((value) => typeof value === "string");
  const flags = (name: string) => (options.get(name) ?? []).filter((value) => typeof value === "boolean");
  return {
    ...surroundings,
    words,
    text: (name) => texts(name).at(-1) ?? null,
    texts,
    flag: (name) => flags(name).at(-1) ?? null,
  };
}

/** The lines and the exit code for anything a command throws. */
export function explain(error: unknown): { readonly code: number; readonly lines: readonly string[] } {
  if (error instanceof UsageError) return { code: exitCodes.usage, lines: named(error.message) };
  if (error instanceof CommandFailed) return { code: error.exitCode, lines: named(error.message) };
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: exitCodes.failure, lines: named(`unexpected error, please report it:\n${text}`) };
}

function named(text: string): readonly string[] {
  return cleanLines(text).map((line, i) => (i === 0 ? `troupe: ${line}` : line));
}
