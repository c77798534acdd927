// Which span an event of the history is about (src/engine/trace.ts names them).

import type { JsonObject } from "../../engine/json.ts";
import type { AttemptName } from "../../engine/trace.ts";
import { wholeField } from "./line.ts";

/** The attempt that an engine's event is about; null for one that is about something else. */
export function attemptOf(fields: JsonObject): AttemptName | null {
  const task = wholeField(fields, "task");
  const attempt = wholeField(fields, "attempt");
  return task === null || attempt === null ? null : { task, attempt };
}
