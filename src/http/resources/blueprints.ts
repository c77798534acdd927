// The catalog of blueprints: GET /blueprints and /blueprints/{blueprint_id}.

import type { FastifyInstance } from "fastify";
import type { Catalog } from "../../blueprints/catalog.ts";
import {
  type BlueprintDetail,
  type BlueprintView,
  BlueprintViews,
  blueprintStates,
} from "../../blueprints/catalog-views.ts";
import { readLocalFolders, readWebUi } from "../../blueprints/describe-configuration.ts";
import type { Requirements } from "../../blueprints/package-description.ts";
import type { BlueprintRecords } from "../../blueprints/records.ts";
import type { Bundles } from "../../bundles/bundles.ts";
import { isoTime } from "../../engine/event.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { secretPathsIn } from "../../security/secret-detection.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type PageParts, sendPage } from "./lists.ts";
import { pageOf, pageQuery } from "./schemas.ts";

const BlueprintState = Type.OneOf(
  blueprintStates,
  "available: only in the catalog. adding, removing: an operation is under way. added: runs start at once. failed: errors says why its addition did. broken: its folder has mistakes, which errors lists.",
);

const Words = Type.Array(Type.String());

const compact = {
  blueprint_id: Type.String({ examples: ["document-digest"] }),
  name: Type.String(),
  description: Type.String(),
  version: Type.Nullable(Type.String()),
  category: Type.Nullable(Type.String()),
  tags: Words,
  state: BlueprintState,
  modified: Type.Boolean(
    "Whether its folder in the catalog is not what was added any more: warnings names files that have changed. Runs use what was added until it is added again. Edits show within a second; files of more than 64 MiB together are compared in the background, and count as unchanged until then.",
  ),
  web_ui: Type.Boolean("Whether its runs have a web interface, as it is configured."),
  warning_count: Type.Integer("How many warnings the blueprint's own record has."),
};

const BlueprintSchema = Type.Object(compact, "A package of the catalog.");

/** Something in the files of a package. */
export const Finding = Type.Object({
  path: Type.String(
    "JSON Pointer into manifest.json; behind /config/default.json# into the configuration; or / and a file's name. Empty for the whole.",
  ),
  code: Type.String(),
  message: Type.String("For people; stands by itself."),
});

const RequirementsSchema = Type.Object(
  {
    commands: Words,
    environment: Words,
    platforms: Words,
    cpu_cores: Type.Nullable(Type.Number()),
    memory_bytes: Type.Nullable(Type.Integer()),
    disk_bytes: Type.Nullable(Type.Integer()),
    pools: Type.Record(Type.Integer(), "Slots, by the pool's name."),
    models: Words,
    services: Type.Array(
      Type.Object({ name: Type.String(), tags: Words, node: Type.Nullable(Type.String()) }),
    ),
  },
  "What a machine must have before a run is accepted.",
);

const Resource = Type.Object({
  name: Type.String("Workers find it in SVC_RESOURCES_DIR under this name."),
  title: Type.Nullable(Type.String()),
  from: Type.Nullable(Type.String()),
  prepare: Type.Nullable(Words),
  timeout_seconds: Type.Number(),
});

const Model = Type.Object({
  model_id: Type.String(),
  path: Type.String(),
  sha256: Type.Nullable(Type.String()),
});

const LocalInput = Type.Object({
  config_path: Type.String("Dotted path in the configuration that holds the folder's path."),
  payload_path: Type.String(),
  runtime_path: Type.String(),
  allowed_extensions: Type.Nullable(Words),
  linked_config_paths: Words,
});

const Owned = Type.Object({
  kind: Type.OneOf(["package", "resource", "model"]),
  id: Type.String("The package's fingerprint, or the name that the manifest declares."),
  bytes: Type.Integer(),
  ready: Type.Boolean("Whether it is whole."),
});

const Links = Type.Object({
  self: Type.String(),
  additions: Type.String(),
  removals: Type.String(),
  validate: Type.String(),
  runs: Type.String(),
  operation: Type.Nullable(Type.String("The latest addition or removal.")),
});

const BlueprintDetailSchema = Type.Object(
  {
    ...compact,
    place: Type.Nullable(Type.String("Its folder in the catalog, by name; null when that has gone.")),
    input_schema: Type.Nullable(Type.JsonObject("JSON Schema of a run's inputs; null: anything.")),
    config_schema: Type.Nullable(Type.JsonObject("JSON Schema of the configuration; null: anything.")),
    default_configuration: Type.JsonObject(
      "The package's own; a run's config_overrides are laid over it. Secrets are shown as \"********\".",
    ),
    requirements: Type.Nullable(RequirementsSchema),
    resources: Type.Array(Resource),
    models: Type.Array(Model),
    local_inputs: Type.Array(
      LocalInput,
      "Folders of the user's that a run takes, each given by its path in the configuration.",
    ),
    owns: Type.Array(Owned, "What was prepared for it; a removal can delete it."),
    errors: Type.Array(Finding),
    warnings: Type.Array(Finding),
    operation_id: Type.Nullable(Type.String("The latest addition or removal.")),
    jobs: Type.Integer("Jobs made from it."),
    added_at: Type.Nullable(Type.Time("When it was added.")),
    links: Links,
  },
  "A package of the catalog, with everything that is known of it.",
);

const BlueprintPageSchema = pageOf(BlueprintSchema, "blueprints, in the order of their ids");

const BlueprintsQuery = Type.Input({
  category: Type.String("Only those of this category."),
  q: Type.String("Only those with this text in their id, name, description or a tag, whatever its case.", {
    maxLength: 200,
  }),
  state: BlueprintState,
  ...pageQuery,
});

/** By the names that clients see. */
export const schemas = {
  Blueprint: BlueprintSchema,
  BlueprintState,
  BlueprintDetail: BlueprintDetailSchema,
  BlueprintPage: BlueprintPageSchema,
};

export interface Parts extends PageParts {
  /** The folders of SVC_BLUEPRINT_CATALOG. */
  readonly catalog: Catalog;
  /** What was prepared of them. */
  readonly blueprintRecords: BlueprintRecords;
  /** Between the two. */
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const views = new BlueprintViews({
    catalog: parts.catalog,
    records: parts.blueprintRecords,
    packages: parts.bundles,
  });

  addRoutes(api, "blueprints", [
    get("/blueprints", {
      operationId: "listBlueprints",
      summary: "List blueprints",
      description:
        "What the folders of SVC_BLUEPRINT_CATALOG hold. A broken one is listed as broken, and hides no other.",
      query: BlueprintsQuery,
      answers: { 200: BlueprintPageSchema },
      handle: (request, reply) => {
        const { category = null, q: text = null, state = null } = request.query;
        return sendPage(parts, request, reply, {
          rows: (limit, after) =>
            views.list({ category, text, state }, { limit, after: after === null ? null : String(after[0]) }),
          positionOf: ({ blueprintId }) => [blueprintId],
          render: (view) => JSON.stringify(shortView(view)),
        });
      },
    }),

    get("/blueprints/:blueprint_id", {
      operationId: "getBlueprint",
      summary: "Get a blueprint",
      answers: { 200: BlueprintDetailSchema },
      handle: async (request) => {
        const { blueprint_id: blueprintId } = request.params;
        const detail = await views.get(blueprintId);
        return { ...shortView(detail), ...rest(detail, parts.secrets) };
      },
    }),
  ]);
}

function shortView({ blueprintId, identity, state, definition, warnings, isModified }: BlueprintView) {
  return {
    blueprint_id: blueprintId,
    name: identity.name,
    description: identity.description,
    version: identity.version,
    category: identity.category,
    tags: identity.tags,
    state,
    modified: isModified,
    web_ui: readWebUi(definition?.configuration ?? {}, identity).webUi !== null,
    warning_count: warnings.length,
  };
}

function rest(detail: BlueprintDetail, secrets: ConfigurationSecrets) {
  const { blueprintId, definition, description, prepared } = detail;
  const configuration = definition?.configuration ?? {};
  const operationId = prepared?.operationId ?? null;
  const addedAtMs = prepared?.addedAtMs ?? null;
  return {
    place: detail.place,
    input_schema: description?.inputSchema ?? null,
    config_schema: description?.configSchema ?? null,
    default_configuration: secrets.mask(configuration, secretPathsIn(definition?.manifest ?? {})),
    requirements: description === null ? null : renderRequirements(description.requirements),
    resources: (description?.resources ?? []).map(({ timeoutSeconds, ...resource }) => ({
      ...resource,
      timeout_seconds: timeoutSeconds,
    })),
    models: (description?.models ?? []).map(({ modelId, path, sha256 }) => ({
      model_id: modelId,
      path,
      sha256,
    })),
    local_inputs: definition === null ? [] : renderFolders(definition),
    owns: owned(detail),
    errors: detail.errors,
    warnings: detail.warnings,
    operation_id: operationId,
    jobs: detail.jobs,
    added_at: addedAtMs === null ? null : isoTime(addedAtMs),
    links: links(blueprintId, operationId),
  };
}

function renderRequirements(needs: Requirements) {
  return {
    commands: needs.commands,
    environment: needs.environment,
    platforms: needs.platforms,
    cpu_cores: needs.cpuCores,
    memory_bytes: needs.memoryBytes,
    disk_bytes: needs.diskBytes,
    pools: needs.pools,
    models: needs.models,
    services: needs.services,
  };
}

function renderFolders({ configuration, graph }: NonNullable<BlueprintDetail["definition"]>) {
  return readLocalFolders(configuration ?? {}, graph).folders.map((folder) => ({
    config_path: folder.configPath,
    payload_path: folder.payloadPath,
    runtime_path: folder.runtimePath,
    allowed_extensions: folder.allowedExtensions,
    linked_config_paths: folder.linkedConfigPaths,
  }));
}

/** Its package, when it has one, and its assets. */
function owned({ prepared, assets }: BlueprintDetail) {
  const fingerprint = prepared?.fingerprint ?? null;
  const packages =
    fingerprint === null
      ? []
      : [{ kind: "package", id: fingerprint, bytes: prepared?.sizeBytes ?? 0, ready: true }];
  return [
    ...packages,
    ...assets.map(({ kind, assetId, bytes, ready }) => ({ kind, id: assetId, bytes, ready })),
  ];
}

function links(blueprintId: string, operationId: string | null) {
  const self = `/api/v1/blueprints/${encodeURIComponent(blueprintId)}`;
  return {
    self,
    additions: `${self}/additions`,
    removals: `${self}/removals`,
    validate: `${self}/validate`,
    runs: `${self}/runs`,
    operation: operationId === null ? null : `/api/v1/operations/${operationId}`,
  };
}
