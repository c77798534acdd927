// What a look at a model has found, in words.

import { bytesText } from "../lib/text.ts";
import type { Inspection, Memory } from "./inspect-model.ts";
import type { MemoryNeed } from "./memory.ts";

/** Sentences: what it is, what it needs, whether that is here, and warnings. */
export function inWords(found: Inspection, memory: Memory): readonly string[] {
  const { details, need } = found;
  return [
    titleOf(found),
    ...contentText(details),
    memoryText(need),
    verdict(found, memory),
    ...details.warnings.map((warning) => `warning: ${warning}`),
  ];
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
    `${format}${version}, ${bytesText(size)}`,
  ]
    .filter((part) => part !== null)
    .join(", ");
}

function contentText({
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
  return `It needs about ${bytesText(all)}${at}: ${bytesText(weightBytes)} for the weights, ${bytesText(cacheBytes)} for the context, ${bytesText(workingBytes)} to work in.`;
}

function verdict({ need, fit, smallerContext }: Inspection, { totalBytes, freeBytes }: Memory): string {
  if (fit === "fits") return `It runs here: ${bytesText(freeBytes)} of ${bytesText(totalBytes)} are free.`;
  if (fit === "fits_when_free") {
    return `It runs here when other programs give back ${bytesText(need.bytes - freeBytes)}: ${bytesText(freeBytes)} of ${bytesText(totalBytes)} are free.`;
  }
  return smallerContext === null
    ? `It does not run here: this machine has ${bytesText(totalBytes)}. Take a smaller model, or one of a smaller quantisation.`
    : `It does not run here with that context: this machine has ${bytesText(totalBytes)}. A context of ${smallerContext} tokens fits.`;
}

/** 8.0 billion, 264 thousand. */
function count(value: number): string {
  const units = ["", " thousand", " million", " billion", " trillion"];
  const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return unit === 0 ? String(value) : `${(value / 1000 ** unit).toPrecision(3)}${units[unit]}`;
}
