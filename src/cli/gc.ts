// `troupe gc`: removes what is no longer kept, or lists what would be removed.

import type { CollectGarbage, CollectReport } from "../../sdk/src/index.ts";
import { type Call, printAnswer, UsageError } from "./command.ts";
import type { ServerCall } from "./session.ts";
import { bytes, plural } from "./text.ts";

export async function gc(call: ServerCall): Promise<number> {
  const request = requestOf(call);
  const report = await (call.flag("runtime") ? call.runtime : call.client.system).collectGarbage(request);
  if (report.needs_confirmation) {
    call.terminal.note(
      "warning: most of SVC_HOME is not referenced by its database: is it the right one? Only --confirm removes that.",
    );
  }
  return printAnswer(call, report, () => linesOf(report));
}

function requestOf(call: Call): CollectGarbage {
  const olderThan = call.text("older-than");
  const maxBytes = call.text("max-bytes");
  return {
    dry_run: call.flag("dry-run") === true,
    ...(call.flag("confirm") === true && { confirm: true }),
    ...(olderThan !== null && { older_than_days: daysOf(olderThan) }),
    ...(maxBytes !== null && { max_bytes: bytesOf(maxBytes) }),
  };
}

const DAYS: Readonly<Record<string, number>> = { d: 1, h: 1 / 24, m: 1 / 24 / 60 };

/** @throws UsageError when it is no age */
export function daysOf(text: string): number {
  const [, number, unit = ""] = /^(\d{1,7}(?:\.\d{1,6})?)([dhm])$/.exec(text) ?? [];
  if (number === undefined)
    throw new UsageError(`--older-than needs a number of days, hours or minutes: --older-than 7d`);
  return Number(number) * (DAYS[unit] ?? 1);
}

const UNITS = ["", "K", "M", "G", "T"];

/** @throws UsageError when it is no size */
export function bytesOf(text: string): number {
  const [, number, unit = ""] = /^(\d{1,15})([KMGT]?)$/.exec(text) ?? [];
  const size = Number(number) * 1024 ** UNITS.indexOf(unit);
  if (Number.isSafeInteger(size)) return size;
  throw new UsageError(
    "--max-bytes needs a whole number of bytes, with K, M, G or T for more: --max-bytes 20G",
  );
}

function linesOf(report: CollectReport): readonly string[] {
  const found = [
    ["run", report.runs],
    ["artifact content", report.blobs],
    ["bundle content", report.bundles],
    ["leftover", report.leftovers],
  ] as const;
  const lines = found
    .filter(([, { count }]) => count > 0)
    .map(([what, { count, bytes: size }]) => `  ${plural(count, what)}, ${bytes(size)}`);
  const isPreview = report.dry_run;
  if (lines.length === 0) return [isPreview ? "Nothing would be removed." : "There was nothing to remove."];
  const freed = `${bytes(report.bytes_freed)} of files ${isPreview ? "would be" : "were"} freed.`;
  return [isPreview ? "Would be removed:" : "Removed:", ...lines, freed];
}
