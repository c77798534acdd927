// Which tools a job offers to those who ask it (spec gateway-api, rules 2 and 3), and of which features that depends.

import { COLLABORATION, RESPONSE, withExtensions } from "../bundles/definition.ts";
import type { JsonObject } from "../engine/json.ts";
import type { JobDefinition } from "../launch/records.ts";

export const toolNames = ["get_job_profile", "get_latest_run", "get_job_context", "ask_job"] as const;
export type ToolName = (typeof toolNames)[number];

type Extended = Pick<JobDefinition, "extensions" | "configurationJson">;

/** Most configurations have neither member, and need no parsing then. */
const mayExtend = /"(extensions|collaboration)"/;

/** What its package switches on, and what its own configuration does. */
export function extensionsOfJob({ extensions, configurationJson }: Extended): readonly string[] {
  if (!mayExtend.test(configurationJson)) return extensions;
  return withExtensions(extensions, JSON.parse(configurationJson) as JsonObject);
}

/** None without the extension; of older packages that collaborate, all but ask_job. */
export function toolsOfJob(job: Extended): readonly ToolName[] {
  const extensions = extensionsOfJob(job);
  if (extensions.includes(RESPONSE)) return toolNames;
  return extensions.includes(COLLABORATION) ? toolNames.slice(0, 3) : [];
}
