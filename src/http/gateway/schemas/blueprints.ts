// Blueprint: an entry of the catalog, with what was prepared of it (spec gateway-api "Blueprint", CONTRACTS §6).

import { blueprintStates } from "../../../blueprints/catalog-views.ts";
import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";

export const BlueprintState = Type.Union(
  blueprintStates.map((state) => Type.Literal(state)),
  {
    description:
      "available: only in the catalog. adding, removing: an operation is under way. added: runs start at once. failed: errors says why its addition did. broken: its folder has mistakes, which errors lists.",
  },
);

const Words = Type.Array(Type.String());

const compact = {
  blueprint_id: Type.String({ examples: ["document-digest"] }),
  name: Type.String(),
  description: Type.String(),
  version: nullable(Type.String()),
  category: nullable(Type.String()),
  tags: Words,
  state: BlueprintState,
  modified: Type.Boolean({
    description:
      "Whether its folder in the catalog is not what was added any more: warnings names files that have changed. Runs use what was added until it is added again. Edits show within a second; files of more than 64 MiB together are compared in the background, and count as unchanged until then.",
  }),
  web_ui: Type.Boolean({ description: "Whether its runs have a web interface, as it is configured." }),
  warning_count: Type.Integer({ description: "How many warnings the blueprint's own record has." }),
};

export const BlueprintSchema = answerObject(compact, { description: "A package of the catalog." });

/** Something in the files of a package. */
export const Finding = answerObject({
  path: Type.String({
    description:
      "JSON Pointer into manifest.json; behind /config/default.json# into the configuration; or / and a file's name. Empty for the whole.",
  }),
  code: Type.String(),
  message: Type.String({ description: "For people; stands by itself." }),
});

const Requirements = answerObject(
  {
    commands: Words,
    environment: Words,
    platforms: Words,
    cpu_cores: nullable(Type.Number()),
    memory_bytes: nullable(Type.Integer()),
    disk_bytes: nullable(Type.Integer()),
    pools: Type.Record(Type.String(), Type.Integer(), { description: "Slots, by the pool's name." }),
    models: Words,
    services: Type.Array(answerObject({ name: Type.String(), tags: Words, node: nullable(Type.String()) })),
  },
  { description: "What a machine must have before a run is accepted." },
);

const Resource = answerObject({
  name: Type.String({ description: "Workers find it in SVC_RESOURCES_DIR under this name." }),
  title: nullable(Type.String()),
  from: nullable(Type.String()),
  prepare: nullable(Words),
  timeout_seconds: Type.Number(),
});

const Model = answerObject({
  model_id: Type.String(),
  path: Type.String(),
  sha256: nullable(Type.String()),
});

const LocalInput = answerObject({
  config_path: Type.String({ description: "Dotted path in the configuration that holds the folder's path." }),
  payload_path: Type.String(),
  runtime_path: Type.String(),
  allowed_extensions: nullable(Words),
  linked_config_paths: Words,
});

const Owned = answerObject({
  kind: Type.Union([Type.Literal("package"), Type.Literal("resource"), Type.Literal("model")]),
  id: Type.String({ description: "The package's fingerprint, or the name that the manifest declares." }),
  bytes: Type.Integer(),
  ready: Type.Boolean({ description: "Whether it is whole." }),
});

const Links = answerObject({
  self: Type.String(),
  additions: Type.String(),
  removals: Type.String(),
  validate: Type.String(),
  runs: Type.String(),
  operation: nullable(Type.String({ description: "The latest addition or removal." })),
});

export const BlueprintDetailSchema = answerObject(
  {
    ...compact,
    place: nullable(
      Type.String({ description: "Its folder in the catalog, by name; null when that has gone." }),
    ),
    input_schema: nullable(JsonObjectSchema("JSON Schema of a run's inputs; null: anything.")),
    config_schema: nullable(JsonObjectSchema("JSON Schema of the configuration; null: anything.")),
    default_configuration: JsonObjectSchema(
      "The package's own; a run's config_overrides are laid over it. Secrets are shown as \"********\".",
    ),
    requirements: nullable(Requirements),
    resources: Type.Array(Resource),
    models: Type.Array(Model),
    local_inputs: Type.Array(LocalInput, {
      description: "Folders of the user's that a run takes, each given by its path in the configuration.",
    }),
    owns: Type.Array(Owned, { description: "What was prepared for it; a removal can delete it." }),
    errors: Type.Array(Finding),
    warnings: Type.Array(Finding),
    operation_id: nullable(Type.String({ description: "The latest addition or removal." })),
    jobs: Type.Integer({ description: "Jobs made from it." }),
    added_at: nullable(Time("When it was added.")),
    links: Links,
  },
  { description: "A package of the catalog, with everything that is known of it." },
);

export const BlueprintPageSchema = pageOf(BlueprintSchema, "blueprints, in the order of their ids");

export const BlueprintsQuery = strictObject({
  category: Type.Optional(Type.String({ description: "Only those of this category." })),
  q: Type.Optional(
    Type.String({
      maxLength: 200,
      description: "Only those with this text in their id, name, description or a tag, whatever its case.",
    }),
  ),
  state: Type.Optional(BlueprintState),
  ...pageQuery,
});
