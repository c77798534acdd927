// `troupe models validate`: what a model's file is, and whether this machine can run it, without a server.

import { memoryTotal } from "../execution/machine-resources.ts";
import { type Inspection, inspectModel, type Memory } from "../models/inspect-model.ts";
import type { MemoryNeed } from "../models/memory.ts";
import { type Call, CommandFailed, exitCodes, printAnswer, UsageError } from "./command.ts";
import { bytes, cleanText } from "./text.ts";

/** @returns the exit code: 1 when the model is too large. @throws CommandFailed when the file is none, or not a whole one */
export async function validate(call: Call): Promise<number> {
  const [file = ""] = call.words;
  const totalBytes = memoryTotal();
  const memory = { totalBytes, freeBytes: Math.min(totalBytes, process.availableMemory()) };
  let found: Inspection;
  try {
    found = await inspectModel(file, contextOf(call), memory);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (error.name !== "ModelInvalid" && code === undefined) throw error;
    throw new CommandFailed(cleanText(`${file} cannot be used as a model. ${reasonOf(error)}`));
  }
  const { details, need, fit } = found;
  printAnswer(call, documentOf(file, found, memory), () =>
    [
      `${file}: ${titleOf(found)}`,
      ...inWords(details),
      memoryText(need),
      verdict(found, memory),
      ...details.warnings.map((warning) => `warning: ${warning}`),
    ].map(cleanText),
  );
  return fit === "too_large" ? exitCodes.failure : exitCodes.success;
}

function contextOf(call: Call): number | null {
  const text = call.text("context");
  if (text === null) return null;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError("--context needs a number of tokens: --context 8192");
}

function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "There is no such file.";
  return error.code === "EACCES" ? "This user may not read it." : error.message;
}

function documentOf(
  file: string,
  { bytes: size, details, need, fit, smallerContext }: Inspection,
  memory: Memory,
) {
  const { format, formatVersion, hasChatTemplate, weightBytes, shape: _, warnings, ...said } = details;
  return {
    file,
    size,
    format,
    ...(formatVersion !== null && { format_version: formatVersion }),
    ...said,
    chat_template: hasChatTemplate,
    memory: {
      context: need.context,
      weight_bytes: weightBytes,
      cache_bytes: need.cacheBytes,
      working_bytes: need.workingBytes,
      bytes: need.bytes,
      total_bytes: memory.totalBytes,
      free_bytes: memory.freeBytes,
    },
    fit,
    smaller_context: smallerContext,
    warnings,
  };
}

type Details = Inspection["details"];

function titleOf({ bytes: size, details }: Inspection): string {
  const { format, formatVersion, name, architecture, parameters, quantisation } = details;
  const version = formatVersion === null ? "" : ` ${formatVersion}`;
  return [
    name === null ? null : JSON.stringify(name),
    architecture,
    `${count(parameters)} parameters`,
    quantisation,
    `${format}${version}, ${bytes(size)}`,
  ]
    .filter((part) => part !== null)
    .join(", ");
}

function inWords({
  format,
  context,
  tokenizer,
  vocabulary,
  hasChatTemplate,
  license,
}: Details): readonly string[] {
  if (format === "safetensors") return ["Its context and tokenizer are in other files, which lie beside it."];
  return [
    `${context === null ? "It does not say what context it was made for" : `Made for a context of ${context} tokens`}; ` +
      `${tokenizer === null ? "no tokenizer" : `tokenizer ${tokenizer}, ${vocabulary ?? "an unknown number of"} tokens`}; ` +
      `${hasChatTemplate ? "with" : "without"} a chat template${license === null ? "" : `; license ${license}`}.`,
  ];
}

function memoryText({ context, weightBytes, cacheBytes, workingBytes, bytes: all }: MemoryNeed): string {
  const at = context === null ? "" : ` with a context of ${context} tokens`;
  return `It needs about ${bytes(all)}${at}: ${bytes(weightBytes)} for the weights, ${bytes(cacheBytes)} for the context, ${bytes(workingBytes)} to work in.`;
}

function verdict({ need, fit, smallerContext }: Inspection, { totalBytes, freeBytes }: Memory): string {
  if (fit === "fits") return `It runs here: ${bytes(freeBytes)} of ${bytes(totalBytes)} are free.`;
  if (fit === "fits_when_free") {
    return `It runs here when other programs give back ${bytes(need.bytes - freeBytes)}: ${bytes(freeBytes)} of ${bytes(totalBytes)} are free.`;
  }
  return smallerContext === null
    ? `It does not run here: this machine has ${bytes(totalBytes)}. Take a smaller model, or one of a smaller quantisation.`
    : `It does not run here with that context: this machine has ${bytes(totalBytes)}. A context of ${smallerContext} tokens fits.`;
}

/** 8.0 billion, 264 thousand. */
function count(value: number): string {
  const units = ["", " thousand", " million", " billion", " trillion"];
  const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return unit === 0 ? String(value) : `${(value / 1000 ** unit).toPrecision(3)}${units[unit]}`;
}
