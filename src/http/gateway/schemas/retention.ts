// Removal of what is not kept (CONTRACTS §6 "Evidence": retention).

import { Type } from "../../core/type.ts";
import { answerObject, strictObject } from "./common.ts";

export const CollectBody = strictObject(
  {
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: "Remove nothing; tell what would go." }),
    ),
    confirm: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          "Remove blobs, bundles and leftovers even if they are most of what SVC_HOME holds; see needs_confirmation.",
      }),
    ),
    older_than_days: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 36_500,
        description:
          "Ended runs that are older go; a fraction is one of a day. 0: none goes for its age. The program's SVC_RETENTION_DAYS when absent.",
        examples: [7],
      }),
    ),
    max_bytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          "What ended runs may have together in histories and artifacts: those that ended first go until it is no more. 0: no bound. The program's SVC_RETENTION_MAX_BYTES when absent.",
        examples: [10_737_418_240],
      }),
    ),
  },
  { examples: [{ dry_run: true, older_than_days: 7 }] },
);

const Counted = (description: string) =>
  answerObject({ count: Type.Integer({ minimum: 0 }), bytes: Type.Integer({ minimum: 0 }) }, { description });

export const CollectReportSchema = answerObject(
  {
    dry_run: Type.Boolean({ description: "Whether all of this is still there." }),
    older_than_days: Type.Number({ description: "The bound that was applied; 0: none by age." }),
    max_bytes: Type.Integer({ description: "The bound that was applied; 0: none by size." }),
    runs: Counted(
      "Ended runs of both APIs, with what they had in histories and artifacts; an artifact's content that several have counts for each.",
    ),
    blobs: Counted(
      "Contents of artifacts that no run has any more. What was stored within the last hour stays.",
    ),
    bundles: Counted(
      "Contents of bundles that no bundle, job or run has any more. What was let go within the last day stays.",
    ),
    leftovers: Counted("Files and folders in SVC_HOME that belong to nothing."),
    needs_confirmation: Type.Boolean({
      description:
        "Whether blobs, bundles and leftovers were left alone (in a dry run: would be), because they are most of what SVC_HOME holds: the database may not be the one that belongs to it. `confirm` removes them.",
    }),
    bytes_freed: Type.Integer({
      minimum: 0,
      description: "Of files: blobs, bundles and leftovers. The database uses its free pages again.",
    }),
  },
  { description: "What was removed, or would be." },
);
