// `troupe blueprint new`, `validate` and `pack`: a blueprint is written, checked and packed here, without a server.

import { createWriteStream, existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { FolderInUse, NAME_CHARS_MAX, templateNames, writeBlueprint } from "../blueprints/new-blueprint.ts";
import { nearestName } from "../lib/text.ts";
import { inspectBlueprint } from "./blueprint-checks.ts";
import { type Call, CommandFailed, exitCodes, UsageError } from "./command.ts";
import { configFor, defaultGatewayUrl } from "./connection.ts";
import { zipFolder } from "./folder-zip.ts";
import { bytes, cleanText, plural, writeFailure } from "./text.ts";
import { problemTable } from "./validate.ts";

const DEFAULT_GATEWAY = "http://127.0.0.1:54001/api/v1";

export async function create(call: Call): Promise<number> {
  const { terminal } = call;
  const [word = ""] = call.words;
  const folder = resolve(word);
  const gateway = defaultGatewayUrl(configFor(call, "client")) ?? DEFAULT_GATEWAY;
  const wanted = { folder, template: templateOf(call), name: nameOf(call), schemasUrl: schemasOf(gateway) };
  const written = await writeBlueprint(wanted).catch((error: unknown) => {
    if (error instanceof FolderInUse) throw new UsageError(error.message);
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined
      ? error
      : new CommandFailed(`${word} could not be written: ${writeFailure(error)}`);
  });
  const { blueprintId, name, files } = written;
  if (call.flag("json")) {
    terminal.print(JSON.stringify({ blueprint_id: blueprintId, name, folder, files }));
    return exitCodes.success;
  }
  terminal.print(`${blueprintId}: ${plural(files.length, "file")} in ${cleanText(word)}`);
  for (const file of files) terminal.print(`  ${file}`);
  terminal.print(`Next: troupe blueprint validate ${shellWord(word)}, then troupe run ${shellWord(word)}.`);
  return exitCodes.success;
}

/** As it is typed into a shell. */
function shellWord(word: string): string {
  const clean = cleanText(word);
  return /^[\w@%+=:,./-]+$/.test(clean) ? clean : `'${clean.replaceAll("'", "'\\''")}'`;
}

const schemasOf = (gatewayUrl: string) => `${new URL(gatewayUrl).origin}/schemas`;

function templateOf(call: Call) {
  const given = call.text("template") ?? "hello";
  const template = templateNames.find((one) => one === given);
  if (template !== undefined) return template;
  const nearest = nearestName(given, templateNames);
  const hint = nearest === null ? `There are ${templateNames.join(", ")}.` : `Did you mean ${nearest}?`;
  throw new UsageError(`There is no template ${JSON.stringify(cleanText(given))}. ${hint}`);
}

function nameOf(call: Call): string | null {
  const name = call.text("name");
  if (name === null) return null;
  if (name.trim() !== "" && name.length <= NAME_CHARS_MAX && cleanText(name) === name) return name;
  throw new UsageError(`--name needs 1 to ${NAME_CHARS_MAX} characters, without line breaks.`);
}

export async function validate(call: Call): Promise<number> {
  const { terminal } = call;
  const [word = ""] = call.words;
  const { blueprintId, problems, warnings, summary } = await inspectBlueprint(
    folderOf(call),
    configFor(call, "client"),
  );
  const isValid = problems.length === 0;
  if (call.flag("json")) {
    terminal.print(JSON.stringify({ valid: isValid, blueprint_id: blueprintId, problems, warnings }));
  } else {
    if (!isValid) for (const line of problemTable(problems, "PROBLEM")) terminal.print(line);
    if (warnings.length > 0) for (const line of problemTable(warnings, "WARNING")) terminal.print(line);
    if (isValid) terminal.print(cleanText(`${blueprintId} is valid: ${summary}.`));
    const counts = [plural(problems.length, "problem"), plural(warnings.length, "warning")].join(", ");
    if (!isValid) terminal.note(`${cleanText(word)}: ${counts}.`);
  }
  return isValid ? exitCodes.success : exitCodes.failure;
}

export async function pack(call: Call): Promise<number> {
  const folder = folderOf(call);
  const config = configFor(call, "client");
  const { blueprintId, problems } = await inspectBlueprint(folder, config);
  if (problems.length > 0) {
    const lines = problems.map(({ path, message }) => `  ${cleanText(path) || "/"}: ${cleanText(message)}`);
    throw new CommandFailed([`${call.words[0]} is not valid, and was not packed:`, ...lines].join("\n"));
  }
  const target = resolve(call.text("output") ?? `${blueprintId}.zip`);
  if (statSync(target, { throwIfNoEntry: false }) !== undefined) {
    throw new UsageError(`${target} exists already; give another file with --output.`);
  }
  if (realPlace(target).startsWith(folder + sep)) {
    throw new UsageError(
      `${target} lies in the folder that is packed, and would be in its next zip; give a file outside with --output.`,
    );
  }
  const zip = await zipFolder(folder, config);
  await writeZip(zip, target);
  const sizeBytes = statSync(target).size;
  call.terminal.print(
    call.flag("json")
      ? JSON.stringify({ blueprint_id: blueprintId, file: target, size: sizeBytes })
      : cleanText(`${target}: ${bytes(sizeBytes)}`),
  );
  return exitCodes.success;
}

/** Where a file will be, without symlinks. */
function realPlace(file: string): string {
  const folder = dirname(file);
  return existsSync(folder) ? join(realpathSync(folder), basename(file)) : file;
}

/** A zip that could not be finished is taken away again. */
async function writeZip(zip: Awaited<ReturnType<typeof zipFolder>>, target: string): Promise<void> {
  const out = createWriteStream(target, { flags: "wx" });
  let isOpen = false;
  out.once("open", () => {
    isOpen = true;
  });
  try {
    await pipeline(zip.bytes, out);
  } catch (error) {
    if (isOpen) rmSync(target, { force: true });
    const reason = zip.failure()?.message ?? writeFailure(error);
    throw new CommandFailed(`${target} could not be written: ${reason}`);
  }
}

/** The first word, as a folder. */
function folderOf(call: Call): string {
  const [word = ""] = call.words;
  const found = statSync(word, { throwIfNoEntry: false });
  if (found?.isDirectory()) return realpathSync(word);
  const said = found === undefined ? "does not exist" : "is no folder";
  throw new UsageError(`${word} ${said}; give the folder of a blueprint, with manifest.json in it.`);
}
