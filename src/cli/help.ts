// `troupe help`, `troupe version`, and the text of every --help.

import { nearestName } from "../nearest-name.ts";
import { programVersion } from "../version.ts";
import { commands } from "./catalogue.ts";
import { type Call, type CommandSpec, exitCodes, UsageError } from "./command.ts";
import { table } from "./text.ts";

/** The version in package.json. */
export async function version(call: Call): Promise<number> {
  const text = programVersion();
  call.terminal.print(
    call.flag("json") ? JSON.stringify({ version: text, node: process.versions.node }) : text,
  );
  return exitCodes.success;
}

export async function help(call: Call): Promise<number> {
  const [name] = call.words;
  for (const line of name === undefined ? overview() : commandHelp(findCommand(name)))
    call.terminal.print(line);
  return exitCodes.success;
}

/** @throws UsageError that names the nearest command */
export function findCommand(name: string): CommandSpec {
  const found = commands.find((command) => command.name === name);
  if (found !== undefined) return found;
  const nearest = nearestName(
    name,
    commands.map((command) => command.name),
  );
  const hint = nearest === null ? "`troupe help` lists all." : `Did you mean ${nearest}?`;
  throw new UsageError(`There is no command ${JSON.stringify(name)}. ${hint}`);
}

/** What `troupe` alone shows. */
export function overview(): readonly string[] {
  const rows = commands.map((command) => [[command.name, ...command.words].join(" "), command.summary]);
  const [, ...lines] = table(["", ""], rows);
  return [
    "Troupe runs graphs of agents durably.",
    "",
    "Usage: troupe <command> [options]",
    "",
    ...lines.map((line) => `  ${line}`),
    "",
    "`troupe <command> --help` explains one. `troupe config` lists the settings.",
  ];
}

export function commandHelp(spec: CommandSpec): readonly string[] {
  const rows = spec.options.map((option) => [
    `--${option.name}${option.value === null ? "" : ` ${option.value}`}`,
    option.help,
  ]);
  const [, ...lines] = table(["", ""], rows);
  return [
    spec.summary,
    "",
    `Usage: troupe ${[spec.name, ...spec.words].join(" ")} [options]`,
    ...(spec.details === undefined ? [] : ["", ...spec.details]),
    "",
    ...lines.map((line) => `  ${line}`),
  ];
}
