// POST /system/gc: removes what is not kept, or tells what would go; the same as the gateway's.

import type { FastifyInstance } from "fastify";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import type { JsonBody } from "../core/json-body.ts";
import { renderRetention } from "../core/retention-report.ts";
import { ApiError, invalidPayload } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

const DAYS_MAX = 36_500;

export function retentionRoutes(api: FastifyInstance, { retention }: RuntimeServices): void {
  api.post<{ Body?: JsonBody }>("/system/gc", async (request) => {
    const body = request.body === undefined ? {} : request.body.object;
    if (body === null) throw invalidPayload();
    refuseUnknown(body);
    const isPreview = body.dry_run ?? false;
    if (typeof isPreview !== "boolean") throw new ApiError(400, "dry_run must be true or false");
    const isConfirmed = body.confirm ?? false;
    if (typeof isConfirmed !== "boolean") throw new ApiError(400, "confirm must be true or false");
    const { olderThanDays, bytesMax } = retention.limits;
    const limits = {
      olderThanDays: number(body.older_than_days, olderThanDays, {
        isRight: (days) => days <= DAYS_MAX,
        said: `older_than_days must be a number from 0 to ${DAYS_MAX}`,
      }),
      bytesMax: number(body.max_bytes, bytesMax, {
        isRight: Number.isSafeInteger,
        said: "max_bytes must be a whole number, 0 or more",
      }),
    };
    return renderRetention(await retention.collect({ limits, isPreview, isConfirmed }));
  });
}

/** A misspelt bound would remove what was to be kept. */
function refuseUnknown(body: JsonObject): void {
  const unknown = Object.keys(body).find(
    (name) => !["dry_run", "confirm", "older_than_days", "max_bytes"].includes(name),
  );
  if (unknown !== undefined) throw new ApiError(400, `${unknown} is not a field of this request`);
}

function number(
  value: JsonValue | undefined,
  fallback: number,
  rule: { readonly isRight: (value: number) => boolean; readonly said: string },
): number {
  if (value === undefined) return fallback;
  if (typeof value !== "number" || value < 0 || !rule.isRight(value)) throw new ApiError(400, rule.said);
  return value;
}
