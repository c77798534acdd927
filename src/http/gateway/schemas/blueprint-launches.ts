// Launch and validation of a blueprint (CONTRACTS §6 "Blueprints").

import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, strictObject } from "./common.ts";
import { runInputs } from "./runs.ts";

export const LaunchBlueprintBody = strictObject(
  {
    inputs: Type.Optional(runInputs),
    config_overrides: Type.Optional(
      JsonObjectSchema("Laid over the blueprint's configuration, for this run.", {
        documents: { folder: "/home/mia/letters" },
      }),
    ),
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "Of the job; the blueprint's when absent." }),
    ),
  },
  { examples: [{ config_overrides: { documents: { folder: "/home/mia/letters" } } }] },
);

const Finding = answerObject({
  path: Type.String({
    description: "JSON Pointer into the request's body; of a broken blueprint into its files. May be empty.",
    examples: ["/config/documents/folder"],
  }),
  code: Type.String(),
  message: Type.String({ description: "For people." }),
});

export const LaunchedBlueprintSchema = answerObject(
  {
    run_id: Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    job_id: Type.String({ description: "The job that was made for the run." }),
    status: Type.Literal("pending"),
    warnings: Type.Array(Finding, {
      description: "That the blueprint's folder in the catalog is not what was added and runs now.",
    }),
  },
  { description: "A run that was accepted, of a job that was made for it." },
);

export const ValidateBlueprintBody = strictObject(
  {
    inputs: Type.Optional(runInputs),
    config: Type.Optional(
      JsonObjectSchema("What would be a launch's config_overrides.", {
        documents: { folder: "/home/mia/letters" },
      }),
    ),
  },
  { examples: [{ config: { documents: { folder: "/home/mia/letters" } } }] },
);

export const BlueprintValidationSchema = answerObject(
  {
    valid: Type.Boolean({ description: "Whether a launch as asked would be accepted now." }),
    errors: Type.Array(Finding, { description: "Everything that stands against it." }),
    warnings: Type.Array(Finding),
  },
  { description: "What a launch would come to." },
);
