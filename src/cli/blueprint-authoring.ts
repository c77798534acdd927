// `troupe blueprint new`, `validate` and `pack`: a blueprint is written, checked and packed here, without a server.

import { createWriteStream, existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { FolderInUse, NAME_CHARS_MAX, templateNames, writeBlueprint } from "../blueprints/new-blueprint.ts";
import { nearestName } from "../lib/text.ts";
import { inspectBlueprint } from "./blueprint-checks.ts";
import { type Call, CommandFailed, printAnswer, UsageError } from "./command.ts";
import { configFor, defaultGatewayUrl } from "./connection.ts";
import { zipFolder } from "./folder-zip.ts";
import { bytes, cleanText, plural, shellWord, writeFailure } from "./text.ts";
import { printCheckResult } from "./validate.ts";

const DEFAULT_GATEWAY = "http://127.0.0.1:54001/api/v1";

export async function create(call: Call): Promise<number> {
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
  return printAnswer(call, { blueprint_id: blueprintId, name, folder, files }, () => [
    `${blueprintId}: ${plural(files.length, "file")} in ${cleanText(word)}`,
    ...files.map((file) => `  ${file}`),
    `Next: troupe blueprint validate ${shellWord(word)}, then troupe run ${shellWord(word)}.`,
  ]);
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
  const { blueprintId, summary, ...result } = await inspectBlueprint(
    folderOf(call),
    configFor(call, "client"),
  );
  const validLine = cleanText(`${blueprintId} is valid: ${summary}.`);
  return printCheckResult(call, result, validLine, { blueprint_id: blueprintId });
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
      `${target} is in the folder that is packed, and would be in its next zip; give a file outside with --output.`,
    );
  }
  const zip = await zipFolder(folder, config);
  await writeZip(zip, target);
  const sizeBytes = statSync(target).size;
  return printAnswer(call, { blueprint_id: blueprintId, file: target, size: sizeBytes }, () =>
    cleanText(`${target}: ${bytes(sizeBytes)}`),
  );
}

/** Where a file will be, without symlinks. */
function realPlace(file: string): string {
  const folder = dirname(file);
  return existsSync(folder) ? join(realpathSync(folder), basename(file)) : file;
}

/** A zip that could not be finished is removed. */
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
  const text = found === undefined ? "does not exist" : "is not a folder";
  throw new UsageError(`${word} ${text}; give the folder of a blueprint, with manifest.json in it.`);
}
