// The ids that people give to commands: checked before they are sent, so that a mix-up fails immediately.

import { type Call, UsageError } from "./command.ts";
import { cleanText } from "./text.ts";

/** How the ids of each kind look, and the command that lists them. */
const kinds = {
  bundle: { pattern: /^[\w-]{1,128}$/, list: "troupe bundles" },
  job: { pattern: /^[\w-]{1,128}$/, list: "troupe jobs" },
  run: { pattern: /^[\w-]{1,128}$/, list: "troupe runs" },
  blueprint: { pattern: /^[a-z0-9][a-z0-9_-]{0,63}$/, list: "troupe blueprint list" },
  schedule: { pattern: /^[\w-]{1,128}$/, list: "troupe schedules" },
  deployment: { pattern: /^[\w-]{1,128}$/, list: "troupe deployments" },
  volume: { pattern: /^[a-z0-9][a-z0-9._-]{0,63}$/, list: "troupe resource show" },
  model: { pattern: /^[^\p{Cc}]{1,200}$/u, list: "troupe models list" },
  operation: { pattern: /^op_[0-9a-z]+$/, list: "troupe operations" },
} as const;

export type IdKind = keyof typeof kinds;

/** A blueprint may be called job_…, but these may not be mixed up. */
const mixedUp = ["bundle", "job", "run", "schedule", "deployment"] as const;

/**
 * The id that a command was given as its first word.
 *
 * @throws UsageError when it is that of something else, or cannot be an id
 */
export function idOf(call: Call, kind: IdKind): string {
  return checkedId(call.words[0] ?? "", kind);
}

/** @throws UsageError when it is the id of something else, or cannot be one */
export function checkedId(id: string, kind: IdKind): string {
  const { pattern, list } = kinds[kind];
  const other = mixedUp.find((known) => known !== kind && id.startsWith(`${known}_`));
  if (other !== undefined && mixedUp.some((known) => known === kind)) {
    throw new UsageError(
      `${cleanText(id)} is the id of a ${other}, and this takes that of a ${kind}. \`${list}\` lists them.`,
    );
  }
  if (pattern.test(id)) return id;
  const a = kind === "operation" ? "an" : "a";
  throw new UsageError(
    `${JSON.stringify(cleanText(id))} is not the id of ${a} ${kind}. \`${list}\` lists them.`,
  );
}

/** What an id names: one of the gateway's things, or a job of the runtime, whose ids have a dash. */
export function idKind(id: string): "job" | "run" | "runtime" {
  const found = /^(job|run)_[0-9a-z]+$/.exec(id)?.[1];
  return found === "job" || found === "run" ? found : "runtime";
}
