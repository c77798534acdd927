// The ids that people give to commands: checked before they are sent, so that a mix-up fails immediately.

import { type Call, UsageError } from "./command.ts";
import { cleanText } from "./text.ts";

export type IdKind = "bundle" | "job" | "run";

const ID_CHARS_MAX = 128;
const kinds: readonly IdKind[] = ["bundle", "job", "run"];

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
  const other = kinds.find((known) => known !== kind && id.startsWith(`${known}_`));
  if (other !== undefined) {
    throw new UsageError(
      `${cleanText(id)} is the id of a ${other}, and this takes that of a ${kind}. \`troupe ${kind}s\` lists them.`,
    );
  }
  if (/^[\w-]+$/.test(id) && id.length <= ID_CHARS_MAX) return id;
  throw new UsageError(
    `${JSON.stringify(cleanText(id))} is no id of a ${kind}. \`troupe ${kind}s\` lists them.`,
  );
}

/** The blueprint that a command was given as its first word. @throws UsageError when it cannot be one's id */
export function blueprintIdOf(call: Call): string {
  const id = call.words[0] ?? "";
  if (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(id)) return id;
  throw new UsageError(
    `${JSON.stringify(cleanText(id))} is no id of a blueprint. \`troupe blueprint list\` lists them.`,
  );
}

/** What an id names: one of the gateway's things, or a job of the runtime, whose ids have a dash. */
export function idKind(id: string): "job" | "run" | "runtime" {
  const found = /^(job|run)_[0-9a-z]+$/.exec(id)?.[1];
  return found === "job" || found === "run" ? found : "runtime";
}
