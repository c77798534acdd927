// errors.jsonl: the failure of each event that tells of one, svc.error.v1 (CONTRACTS §5).

import { boundedValue } from "../../engine/bounded-value.ts";
import type { JsonValue } from "../../engine/json.ts";
import { parseEvent } from "./line.ts";

/** Of a failure as JSON; what is longer in it is cut. */
export const FAILURE_BYTES_MAX = 16 * 1024;

/** What a line with a failure has in it, and few others. */
const FAILURE_MARK = ',"error":{"schema_version":"svc.error.v1"';

/** @returns the event's failure as a line of JSON; null without one */
export function failureLine(line: string): string | null {
  if (!line.includes(FAILURE_MARK)) return null;
  const { failure } = parseEvent(line);
  if (failure === null) return null;
  return JSON.stringify(boundedValue(failure as unknown as JsonValue, FAILURE_BYTES_MAX));
}
