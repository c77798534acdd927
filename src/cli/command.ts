// What a command is, and how its words become options.
//
// - An unknown option, a missing value or too many words is refused with the nearest right thing.
// - A command returns an exit code; it never exits the process.
// - A command's name is one word, or two, of which the first is its group's: `up`, `runs start`.

import { parseArgs } from "node:util";
import { nearestName } from "../lib/text.ts";
import type { Terminal } from "./terminal.ts";

export const exitCodes = {
  success: 0,
  /** Something failed; also a job that failed. */
  failure: 1,
  /** Wrong usage or configuration. */
  usage: 2,
  /** The program's node has left its cluster, or was removed from it: the program is not to be started again by itself. */
  left: 3,
  /** The watched run was cancelled. */
  cancelled: 13,
  /** Ctrl-C while watching; the job continues. */
  interrupted: 130,
} as const;

export interface OptionSpec {
  readonly name: string;
  /** The placeholder of the value in the help, such as FILE; null for a switch. */
  readonly value: string | null;
  readonly help: string;
}

export interface CommandSpec {
  readonly name: string;
  /** The words it takes, as the help shows them: `<job-id>`; one in square brackets may be left out. */
  readonly words: readonly string[];
  readonly summary: string;
  /** Further lines of help. */
  readonly details?: readonly string[];
  readonly options: readonly OptionSpec[];
  /** Loads the code; only the command that runs is loaded. */
  load(): Promise<(call: Call) => Promise<number>>;
}

/** Commands about one kind of thing, under one word, such as `troupe runs`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  /** Their names begin with the group's. The first one is also run by the group's word alone. */
  readonly commands: readonly [CommandSpec, ...CommandSpec[]];
  /** Whether the first one also takes words that are none of these names. */
  readonly isFirstImplied?: boolean;
}

export type CatalogueEntry = CommandSpec | CommandGroup;

/** A part of the overview. */
export interface CatalogueSection {
  readonly title: string;
  readonly entries: readonly CatalogueEntry[];
}

/** One use of a command. */
export interface Call {
  readonly words: readonly string[];
  readonly terminal: Terminal;
  readonly env: NodeJS.ProcessEnv;
  /** The value of an option, the last of several; or null. */
  text(name: string): string | null;
  /** The values of an option that may be given several times, in their order. */
  texts(name: string): readonly string[];
  /** Whether a switch is on; null when it was not given. */
  flag(name: string): boolean | null;
}

/** Wrong use of the command line, or a file named there that cannot be used: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed for a reason that the user should read. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Prints a command's answer: with --json the value as one document, else the lines.
 *
 * @returns the exit code for success
 */
export function printAnswer(
  { terminal, flag }: Call,
  value: unknown,
  lines: () => string | readonly string[],
): number {
  if (flag("json")) terminal.print(JSON.stringify(value));
  else for (const line of [lines()].flat()) terminal.print(line);
  return exitCodes.success;
}

export interface ParsedWords {
  readonly words: readonly string[];
  /** The values of each option that was given, in their order; of a switch whether it is on. */
  readonly options: ReadonlyMap<string, readonly (string | boolean)[]>;
}

/**
 * Splits the arguments of a command into words and options.
 *
 * @throws UsageError that names the wrong word and the nearest right one
 */
export function parseWords(spec: CommandSpec, args: readonly string[]): ParsedWords {
  const options = new Map<string, readonly (string | boolean)[]>();
  const words: string[] = [];
  for (const token of tokens(spec, args)) {
    if (token.kind === "positional") words.push(token.value);
    if (token.kind !== "option") continue;
    const option = spec.options.find((known) => known.name === token.name);
    const negated = token.rawName.startsWith("--no-");
    if (option === undefined) throw unknownOption(spec, token.rawName);
    const value = optionValue(spec, option, { ...token, negated });
    options.set(option.name, [...(options.get(option.name) ?? []), value]);
  }
  checkWords(spec, words);
  return { words, options };
}

function tokens(spec: CommandSpec, args: readonly string[]) {
  const known = spec.options.map(({ name, value }) => [
    name,
    {
      type: value === null ? ("boolean" as const) : ("string" as const),
      ...(name === "help" && { short: "h" }),
    },
  ]);
  return parseArgs({
    args: [...args],
    options: Object.fromEntries(known),
    strict: false,
    tokens: true,
    allowPositionals: true,
    allowNegative: true,
  }).tokens;
}

interface GivenOption {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
  readonly negated: boolean;
}

function optionValue(spec: CommandSpec, option: OptionSpec, given: GivenOption): string | boolean {
  const { value } = given;
  if (option.value === null) {
    if (value !== undefined) throw new UsageError(`--${option.name} is a switch and takes no value.`);
    return !given.negated;
  }
  if (given.negated) throw unknownOption(spec, given.rawName);
  const looksLikeOption = value?.startsWith("-") === true && value !== "-" && given.inlineValue !== true;
  if (value === undefined || value === "" || looksLikeOption) {
    throw new UsageError(`--${option.name} needs a value: --${option.name} ${option.value}`);
  }
  return value;
}

function unknownOption(spec: CommandSpec, rawName: string): UsageError {
  const names = spec.options.map((option) => option.name);
  const nearest = nearestName(rawName.replace(/^-+/, ""), names);
  return new UsageError(
    `troupe ${spec.name} has no option ${rawName}.` +
      (nearest === null ? ` See troupe ${spec.name} --help.` : ` Did you mean --${nearest}?`),
  );
}

function checkWords(spec: CommandSpec, words: readonly string[]): void {
  const required = spec.words.filter((word) => !word.startsWith("["));
  const missing = required[words.length];
  const usage = `Usage: troupe ${[spec.name, ...spec.words].join(" ")}`;
  if (missing !== undefined) throw new UsageError(`${missing} is missing. ${usage}`);
  const extra = words[spec.words.length];
  if (extra !== undefined) throw new UsageError(`${JSON.stringify(extra)} is one word too many. ${usage}`);
}
