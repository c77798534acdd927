// Operation (spec gateway-api "Operation", CONTRACTS §3), and what starts one.

import { operationFailures } from "../../../operations/failures.ts";
import { operationStatuses } from "../../../operations/records.ts";
import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { oneOf } from "./evidence.ts";

export const OperationStatus = oneOf(operationStatuses, { description: "The last two are final." });

const StepSchema = answerObject({
  name: Type.String({ examples: ["package"] }),
  label: Type.String({ description: "For people.", examples: ["Copying the package"] }),
  status: oneOf(["pending", "running", "completed", "failed", "skipped"], {
    description: "skipped: there was nothing to do.",
  }),
});

const ErrorSchema = answerObject({
  code: oneOf(Object.keys(operationFailures), { description: "Stable, for programs." }),
  detail: Type.String({ description: "What happened and what to do next, for people." }),
  retryable: Type.Boolean({
    description: "Whether the same request may succeed when it is made again, with a new Idempotency-Key.",
  }),
});

export const OperationSchema = answerObject(
  {
    operation_id: Type.String({ examples: ["op_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    kind: oneOf(["blueprint_addition", "blueprint_removal"], { description: "What it does." }),
    target: Type.String({ description: "The blueprint's id." }),
    status: OperationStatus,
    progress: answerObject({
      percent: Type.Integer({ minimum: 0, maximum: 100 }),
      label: Type.String({ description: "What is being done, for people." }),
      step: nullable(Type.String({ description: "The step under way; null before the first." })),
      steps: Type.Array(StepSchema),
    }),
    result: nullable(
      JsonObjectSchema(
        "What it has come to. Of an addition blueprint_id, version, fingerprint and size; of a removal removed, or preview after a dry run: {resources: [{kind, id, bytes, action}], jobs_affected, bytes_freed}. Null until it has completed.",
        { blueprint_id: "document-digest" },
      ),
    ),
    error: nullable(ErrorSchema),
    created_at: Time("When it was asked for."),
    updated_at: Time("When it last changed."),
    finished_at: nullable(Time("When it ended; null while it goes on.")),
  },
  { description: "Long work that goes on by itself, whatever becomes of the request that has begun it." },
);

export const OperationPageSchema = pageOf(OperationSchema, "operations, newest first");

export const OperationsQuery = strictObject({
  target: Type.Optional(Type.String({ description: "Only those about this blueprint." })),
  status: Type.Optional(OperationStatus),
  ...pageQuery,
});

export const AddBlueprintBody = strictObject(
  {
    force: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Makes everything anew, and puts it in the place of what there is once it is whole.",
      }),
    ),
  },
  { examples: [{}] },
);

export const RemoveBlueprintBody = strictObject(
  {
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: "Removes nothing: the result says what would go." }),
    ),
    keep_resources: Type.Optional(
      Type.Boolean({ default: false, description: "Keeps its resources for the next addition." }),
    ),
    keep_models: Type.Optional(
      Type.Boolean({ default: false, description: "Keeps its models for the next addition." }),
    ),
  },
  { examples: [{ dry_run: true }] },
);
