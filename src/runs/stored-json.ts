// JSON that was checked before it was stored. A manifest may be large.

import { scheduler } from "node:timers/promises";
import type { JsonObject } from "../engine/json.ts";
import { jsonSteps, LARGE_JSON_CHARS } from "../engine/large-json.ts";
import { inSlices } from "../lib/slices.ts";

/** Parses the text of an object, in slices if it is large. */
export async function storedObject(text: string): Promise<JsonObject> {
  if (text.length < LARGE_JSON_CHARS) return JSON.parse(text) as JsonObject;
  // Reading it from the database took its time.
  await scheduler.yield();
  const parsed = await inSlices(jsonSteps(text, Number.POSITIVE_INFINITY));
  return parsed!.value as JsonObject;
}
