// `troupe help`, `troupe version`, and the text of every --help.

import { nearestName } from "../lib/text.ts";
import { programVersion } from "../lib/version.ts";
import {
  type Call,
  type CatalogueEntry,
  type CatalogueSection,
  type CommandGroup,
  type CommandSpec,
  exitCodes,
  printAnswer,
  UsageError,
} from "./command.ts";
import { cleanText, columns } from "./text.ts";

type Sections = readonly CatalogueSection[];

/** The version in package.json. */
export async function version(call: Call): Promise<number> {
  const text = programVersion();
  return printAnswer(call, { version: text, node: process.versions.node }, () => text);
}

export async function help(call: Call, sections: Sections): Promise<number> {
  const lines = call.words.length === 0 ? overview(sections) : helpFor(findExactly(sections, call.words));
  for (const line of lines) call.terminal.print(line);
  return exitCodes.success;
}

/** `troupe help up now` names a command that does not exist; for `troupe up now` parseWords reports it. */
function findExactly(sections: Sections, words: readonly string[]): Found {
  const found = findCommand(sections, words);
  const [extra] = found.rest;
  if (extra === undefined) return found;
  throw new UsageError(`\`troupe ${found.spec.name}\` has no further commands, so not ${shown(extra)}.`);
}

export interface Found {
  readonly spec: CommandSpec;
  /** The group, when its word was alone. */
  readonly group: CommandGroup | null;
  /** What is left of the words. */
  readonly rest: readonly string[];
}

/**
 * The command that words begin with.
 *
 * @throws UsageError that names the nearest command
 */
export function findCommand(sections: Sections, words: readonly string[]): Found {
  const [first = "", ...rest] = words;
  const entries = sections.flatMap((section) => section.entries);
  const entry = entries.find(({ name }) => name === first);
  if (entry === undefined) throw unknown("", first, entries, "`troupe help` lists all.");
  if (!isGroup(entry)) return { spec: entry, group: null, rest };
  const [second, ...more] = rest;
  if (second === undefined || second.startsWith("-")) return { spec: entry.commands[0], group: entry, rest };
  const prefix = `${entry.name} `;
  const spec = entry.commands.find(({ name }) => name === prefix + second);
  if (spec !== undefined) return { spec, group: null, rest: more };
  if (entry.isFirstImplied) return { spec: entry.commands[0], group: null, rest };
  throw unknown(prefix, second, entry.commands, elsewhere(entry, second));
}

/** @param prefix the group's word and a space; empty outside groups */
function unknown(
  prefix: string,
  word: string,
  among: readonly CatalogueEntry[],
  otherwise: string,
): UsageError {
  const nearest = nearestName(
    word,
    among.map(({ name }) => name.slice(prefix.length)),
  );
  const hint = nearest === null ? otherwise : `Did you mean ${prefix}${nearest}?`;
  return new UsageError(`There is no command ${shown(prefix + word)}. ${hint}`);
}

/** A hint for an unknown word after a group's. */
function elsewhere(group: CommandGroup, word: string): string {
  const isId = word.startsWith(`${group.name.slice(0, -1)}_`);
  if (isId && group.commands.some(({ name }) => name === `${group.name} show`)) {
    return `Did you mean ${group.name} show ${cleanText(word)}?`;
  }
  return `\`troupe help ${group.name}\` lists what there is.`;
}

const shown = (word: string) => JSON.stringify(cleanText(word));

export function isGroup(entry: CatalogueEntry): entry is CommandGroup {
  return "commands" in entry;
}

/** What `troupe` alone shows. */
export function overview(sections: Sections): readonly string[] {
  const rows = sections.flatMap(({ entries }) =>
    entries.map((entry) => [isGroup(entry) ? `${entry.name} …` : usage(entry), entry.summary]),
  );
  const lines = [...columns(rows)];
  const all: string[] = [];
  for (const { title, entries } of sections) {
    all.push("", title, ...lines.splice(0, entries.length).map((line) => `  ${line}`));
  }
  return [
    "Troupe runs graphs of agents durably.",
    "",
    "Usage: troupe <command> [options]",
    ...all,
    "",
    "`troupe <command> --help` explains one. `troupe config` lists the settings.",
  ];
}

/** The text of --help: of the group, when its word was alone, else of the command. */
export function helpFor({ spec, group }: Found): readonly string[] {
  return group === null ? commandHelp(spec) : groupHelp(group);
}

function groupHelp({ name, summary, commands }: CommandGroup): readonly string[] {
  const lines = columns(commands.map((command) => [usage(command), command.summary]));
  return [
    summary,
    "",
    `Usage: troupe ${name} <command> [options]`,
    "",
    ...lines.map((line) => `  ${line}`),
    "",
    `\`troupe ${name}\` alone is \`troupe ${commands[0].name}\`. \`troupe ${commands[0].name} --help\` explains one.`,
  ];
}

export function commandHelp(spec: CommandSpec): readonly string[] {
  const rows = spec.options.map((option) => [
    `--${option.name}${option.value === null ? "" : ` ${option.value}`}`,
    option.help,
  ]);
  const lines = columns(rows);
  return [
    spec.summary,
    "",
    `Usage: troupe ${usage(spec)} [options]`,
    ...(spec.details === undefined ? [] : ["", ...spec.details]),
    "",
    ...lines.map((line) => `  ${line}`),
  ];
}

const usage = ({ name, words }: CommandSpec) => [name, ...words].join(" ");
