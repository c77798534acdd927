// Brief jobs: those that began and ended within one batch, with little to keep. Their rows have the history, the agents and
// the manifest, which are never written again: one row instead of five, in one tree instead of six.

import { isTerminal, type JobChanges } from "../../engine/journal.ts";
import { agentsJson } from "./agents.ts";
import type { Stored } from "./columns.ts";
import { packLines } from "./packed-lines.ts";

/** Characters of all three: with them a row has its place in one page, and lists of jobs are read as fast as without. */
const CHARS_MAX = 2_500;

/** In the order in which their checksum is made. */
export const briefColumns = ["brief_lines", "brief_agents_json", "brief_manifest_json"] as const;

/** The values of `briefColumns`; null for a job that is not brief. */
export function briefValues(changes: JobChanges): Stored[] | null {
  const { insert, progress, eventLines } = changes;
  const isBrief =
    insert !== null &&
    isTerminal(progress.status) &&
    insert.definitionId === null &&
    insert.configurationJson === null &&
    eventLines.length > 0 &&
    changes.deadLetters.length + changes.humanRequests.length + changes.artifacts.length === 0 &&
    insert.manifestJson.length + changes.agents.length <= CHARS_MAX;
  if (!isBrief) return null;
  // Packed lines have half the characters.
  const chars = eventLines.reduce((sum, line) => sum + line.length, 0);
  if (chars > 3 * CHARS_MAX) return null;
  const values = [packLines(eventLines.join("\n")), agentsJson(changes.agents), insert.manifestJson];
  return values.reduce((sum, text) => sum + text.length, 0) <= CHARS_MAX ? values : null;
}
