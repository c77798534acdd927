// `troupe models validate`: what a model's file is, and whether this machine can run it, without a server.

import { memoryTotal } from "../execution/machine-resources.ts";
import { type Inspection, inspectModel, type Memory } from "../models/inspect-model.ts";
import { inWords } from "../models/model-words.ts";
import { type Call, CommandFailed, exitCodes, printAnswer, UsageError } from "./command.ts";
import { cleanText } from "./text.ts";

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
  const { fit } = found;
  printAnswer(call, documentOf(file, found, memory), () =>
    inWords(found, memory)
      .map((line, i) => (i === 0 ? `${file}: ${line}` : line))
      .map(cleanText),
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
