// What is done with a blueprint: POST /blueprints/{blueprint_id}/additions and …/removals begin an operation, which goes
// on by itself; …/runs makes a job of it and starts a run, and …/validate says what would stand against that.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Blueprints, WriteOperation } from "../../blueprints/blueprints.ts";
import { defaultTerms } from "../../engine/share.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { BlueprintLaunches, LaunchedBlueprint } from "../../launch/blueprint-launches.ts";
import type { Operation } from "../../operations/records.ts";
import { addRoutes, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type IdempotencyParts, sendStarted } from "./idempotent.ts";
import { OperationSchema, renderOperation } from "./operations.ts";
import {
  rerunOf,
  runInputs,
  sendStartedRun,
  startRunHeaders,
  startRunProblems,
  type WaitParts,
} from "./run-starts.ts";
import { RunSchema } from "./run-view.ts";
import { idempotencyKeyHeader, Priority } from "./schemas.ts";

const AddBlueprintBody = Type.Input(
  {
    force: Type.Boolean(
      "Makes everything anew, and puts it in the place of what there is once it is whole.",
      { default: false },
    ),
  },
  { examples: [{}] },
);

const RemoveBlueprintBody = Type.Input(
  {
    dry_run: Type.Boolean("Removes nothing: the result says what would go.", { default: false }),
    keep_resources: Type.Boolean("Keeps its resources for the next addition.", { default: false }),
    keep_models: Type.Boolean("Keeps its models for the next addition.", { default: false }),
  },
  { examples: [{ dry_run: true }] },
);

const LaunchBlueprintBody = Type.Input(
  {
    inputs: runInputs,
    config_overrides: Type.JsonObject("Laid over the blueprint's configuration, for this run.", {
      documents: { folder: "/home/mia/letters" },
    }),
    priority: Priority,
    rerun_of: rerunOf,
    name: Type.String("Of the job; the blueprint's when absent.", { minLength: 1, maxLength: 200 }),
  },
  { examples: [{ config_overrides: { documents: { folder: "/home/mia/letters" } } }] },
);

const Finding = Type.Object({
  path: Type.String(
    "JSON Pointer into the request's body; of a broken blueprint into its files. May be empty.",
    { examples: ["/config/documents/folder"] },
  ),
  code: Type.String(),
  message: Type.String("For people."),
});

const LaunchedBlueprintSchema = Type.Object(
  {
    run_id: Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    job_id: Type.String("The job that was made for the run."),
    status: Type.Literal("pending"),
    warnings: Type.Array(
      Finding,
      "That the blueprint's folder in the catalog is not what was added and runs now.",
    ),
  },
  "A run that was accepted, of a job that was made for it.",
);

const ValidateBlueprintBody = Type.Input(
  {
    inputs: runInputs,
    config: Type.JsonObject("What would be a launch's config_overrides.", {
      documents: { folder: "/home/mia/letters" },
    }),
  },
  { examples: [{ config: { documents: { folder: "/home/mia/letters" } } }] },
);

const BlueprintValidationSchema = Type.Object(
  {
    valid: Type.Boolean("Whether a launch as asked would be accepted now."),
    errors: Type.Array(Finding, "Everything that stands against it."),
    warnings: Type.Array(Finding),
  },
  "What a launch would come to.",
);

/** By the names that clients see. */
export const schemas = {
  AddBlueprint: AddBlueprintBody,
  RemoveBlueprint: RemoveBlueprintBody,
  LaunchBlueprint: LaunchBlueprintBody,
  LaunchedBlueprint: LaunchedBlueprintSchema,
  ValidateBlueprint: ValidateBlueprintBody,
  BlueprintValidation: BlueprintValidationSchema,
};

export interface Parts extends WaitParts, IdempotencyParts {
  readonly blueprints: Blueprints;
  readonly launches: BlueprintLaunches;
}

// In the order of the document, where the key's problem comes before an operation's own.
const problems = ["blueprint_busy", "idempotency_key_reused"] as const;

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { blueprints, launches } = parts;
  addRoutes(api, "blueprints", [
    post("/blueprints/:blueprint_id/additions", {
      operationId: "addBlueprint",
      summary: "Add a blueprint",
      description:
        "Prepares it for runs: its package is copied, its resources are made, its models installed. Follow the operation at Location; it goes on whatever becomes of this request. A blueprint that is added and has not changed is through at once.",
      headers: idempotencyKeyHeader,
      body: AddBlueprintBody,
      answers: { 202: OperationSchema },
      problems: [...problems, "blueprint_broken"],
      handle: (request, reply) => {
        const { force = false } = request.body;
        return sendOperation(parts, request, reply, () =>
          blueprints.prepareAddition(request.params.blueprint_id, { force }),
        );
      },
    }),

    post("/blueprints/:blueprint_id/removals", {
      operationId: "removeBlueprint",
      summary: "Remove a blueprint",
      description:
        "Deletes what was prepared for it, which adding it again makes anew; the catalog's folder stays. Look at a dry_run first: it ends with just what the removal would then remove. Its package stays while jobs have it, a model while another blueprint has it.",
      headers: idempotencyKeyHeader,
      body: RemoveBlueprintBody,
      answers: { 202: OperationSchema },
      problems: [...problems, "blueprint_in_use"],
      handle: (request, reply) => {
        const { dry_run = false, keep_resources = false, keep_models = false } = request.body;
        return sendOperation(parts, request, reply, () =>
          blueprints.prepareRemoval(request.params.blueprint_id, { dry_run, keep_resources, keep_models }),
        );
      },
    }),
    post("/blueprints/:blueprint_id/runs", {
      operationId: "launchBlueprint",
      summary: "Launch a blueprint",
      description:
        "Makes a job of the blueprint and starts a run of it. A blueprint that is not added is added first; the run waits for that. One whose folder has changed since it was added runs as it was added, and warnings says so. With `Prefer: wait=N` the answer is the ended run, with 200.",
      headers: startRunHeaders,
      body: LaunchBlueprintBody,
      answers: { 200: RunSchema, 202: LaunchedBlueprintSchema },
      problems: startRunProblems,
      handle: (request, reply) => {
        const { inputs = null, config_overrides: configOverrides = null, name = null } = request.body;
        const { priority = defaultTerms.priority, rerun_of: original } = request.body;
        return sendStartedRun<LaunchedBlueprint>(parts, request, reply, {
          prepare: () =>
            launches.prepare(request.params.blueprint_id, {
              inputs,
              configOverrides,
              ...(original !== undefined && { rerunOf: original }),
              priority,
              name,
              trace: parseTraceparent(request.headers.traceparent),
            }),
          answer: ({ run: { runId, jobId }, warnings }) => ({
            location: `/api/v1/runs/${runId}`,
            body: JSON.stringify({ run_id: runId, job_id: jobId, status: "pending", warnings }),
          }),
          started: (launched) => launches.launched(launched),
          runOf: ({ run }) => run,
        });
      },
    }),

    post("/blueprints/:blueprint_id/validate", {
      operationId: "validateBlueprint",
      summary: "Say what would stand against a launch",
      description:
        "Makes nothing. Checks what a launch checks before it is accepted, and says everything at once; validators of the package are run.",
      body: ValidateBlueprintBody,
      answers: { 200: BlueprintValidationSchema },
      problems: ["blueprint_busy"],
      handle: async (request) => {
        const { inputs = {}, config = {} } = request.body;
        const { errors, warnings } = await launches.validate(request.params.blueprint_id, { inputs, config });
        return { valid: errors.length === 0, errors, warnings };
      },
    }),
  ]);
}
function sendOperation(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  prepare: () => Promise<WriteOperation>,
): Promise<FastifyReply> {
  return sendStarted<Operation>(parts, request, reply, {
    prepare,
    answer: (operation) => ({
      location: `/api/v1/operations/${operation.operationId}`,
      body: renderOperation(operation),
    }),
    started: (operation) => parts.blueprints.begin(operation),
  });
}
