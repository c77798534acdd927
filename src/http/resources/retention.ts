// POST /system/gc, in both APIs: removes what is not kept, or tells what would go.

import type { FastifyInstance } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import type { Retention, RetentionReport } from "../../runs/retention.ts";
import type { JsonBody } from "../core/json-body.ts";
import { addRoutes, post } from "../core/route.ts";
import { ApiError } from "../core/runtime-errors.ts";
import { readBody } from "../core/runtime-query.ts";
import { type Static, Type } from "../core/type.ts";

export interface Parts {
  readonly retention: Retention;
}

const DAYS_MAX = 36_500;

const CollectBody = Type.Input(
  {
    dry_run: Type.Boolean("Remove nothing; tell what would go.", { default: false }),
    confirm: Type.Boolean(
      "Remove blobs, bundles and leftovers even if they are most of what SVC_HOME holds; see needs_confirmation.",
      { default: false },
    ),
    older_than_days: Type.Number(
      "Ended runs that are older go; a fraction is one of a day. 0: none goes for its age. The program's SVC_RETENTION_DAYS when absent.",
      { minimum: 0, maximum: DAYS_MAX, examples: [7] },
    ),
    max_bytes: Type.Integer(
      "What ended runs may have together in histories and artifacts: those that ended first go until it is no more. 0: no bound. The program's SVC_RETENTION_MAX_BYTES when absent.",
      { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, examples: [10_737_418_240] },
    ),
  },
  { examples: [{ dry_run: true, older_than_days: 7 }] },
);

const Counted = (description: string) =>
  Type.Object({ count: Type.Integer({ minimum: 0 }), bytes: Type.Integer({ minimum: 0 }) }, description);

const CollectReportSchema = Type.Object(
  {
    dry_run: Type.Boolean("Whether all of this is still there."),
    older_than_days: Type.Number("The bound that was applied; 0: none by age."),
    max_bytes: Type.Integer("The bound that was applied; 0: none by size."),
    runs: Counted(
      "Ended runs of both APIs, with what they had in histories and artifacts; an artifact's content that several have counts for each.",
    ),
    blobs: Counted(
      "Contents of artifacts that no run has any more. What was stored within the last hour stays.",
    ),
    bundles: Counted(
      "Contents of bundles that no bundle, job or run has any more. What lost its last user within the last day stays.",
    ),
    leftovers: Counted("Files and folders in SVC_HOME that belong to nothing."),
    needs_confirmation: Type.Boolean(
      "Whether blobs, bundles and leftovers were left alone (in a dry run: would be), because they are most of what SVC_HOME holds: the database may not be the one that belongs to it. `confirm` removes them.",
    ),
    bytes_freed: Type.Integer(
      "Of files: blobs, bundles and leftovers. The database uses its free pages again.",
      { minimum: 0 },
    ),
  },
  "What was removed, or would be.",
);

/** By the names that clients see. */
export const schemas = { CollectGarbage: CollectBody, CollectReport: CollectReportSchema };

export function gatewayRoutes(api: FastifyInstance, { retention }: Parts): void {
  addRoutes(api, "system", [
    post("/system/gc", {
      operationId: "collectGarbage",
      summary: "Remove what is not kept any more",
      description:
        "Ended runs that are older than they are kept, or more than fit, with everything of theirs; and what lies in SVC_HOME without belonging to anything. The same happens by itself every hour. Answers when it is done, after others that are under way; it goes on when the caller leaves.",
      body: CollectBody,
      answers: { 200: CollectReportSchema },
      handle: (request) => collect(retention, (request.body as Asked | null) ?? {}),
    }),
  ]);
}

export function runtimeRoutes(api: FastifyInstance, { retention }: Parts): void {
  api.post<{ Body?: JsonBody }>("/system/gc", ({ body }) =>
    collect(retention, body === undefined ? {} : readAsked(readBody(body))),
  );
}

type Asked = Static<typeof CollectBody>;

async function collect(retention: Retention, asked: Asked) {
  const { dry_run: isPreview = false, confirm: isConfirmed = false } = asked;
  const { olderThanDays, bytesMax } = retention.limits;
  const limits = {
    olderThanDays: asked.older_than_days ?? olderThanDays,
    bytesMax: asked.max_bytes ?? bytesMax,
  };
  return rendered(await retention.collect({ limits, isPreview, isConfirmed }));
}

/** The fields of the runtime API's body, each with its rule. */
const rules: Readonly<Record<keyof Required<Asked>, readonly [(value: unknown) => boolean, string]>> = {
  dry_run: [(value) => typeof value === "boolean", "must be true or false"],
  confirm: [(value) => typeof value === "boolean", "must be true or false"],
  older_than_days: [
    (value) => typeof value === "number" && value >= 0 && value <= DAYS_MAX,
    `must be a number from 0 to ${DAYS_MAX}`,
  ],
  max_bytes: [
    (value) => Number.isSafeInteger(value) && (value as number) >= 0,
    "must be a whole number, 0 or more",
  ],
};

/** Strict: a misspelt limit would remove too much. @throws ApiError 400 */
function readAsked(body: JsonObject): Asked {
  for (const [name, value] of Object.entries(body)) {
    if (!Object.hasOwn(rules, name)) throw new ApiError(400, `${name} is not a field of this request`);
    const [isRight, expected] = rules[name as keyof Asked];
    if (!isRight(value)) throw new ApiError(400, `${name} ${expected}`);
  }
  return body as Asked;
}

function rendered(report: RetentionReport) {
  const { limits, isPreview, runs, blobs, bundles, leftovers, needsConfirmation } = report;
  return {
    dry_run: isPreview,
    older_than_days: limits.olderThanDays,
    max_bytes: limits.bytesMax,
    runs,
    blobs,
    bundles,
    leftovers,
    needs_confirmation: needsConfirmation,
    bytes_freed: blobs.bytes + bundles.bytes + leftovers.bytes,
  };
}
