// GET /blueprints, GET /blueprints/{blueprint_id}: the catalog.

import type { FastifyInstance } from "fastify";
import { type BlueprintDetail, type BlueprintView, BlueprintViews } from "../../blueprints/catalog-views.ts";
import { readLocalFolders, readWebUi } from "../../blueprints/describe-configuration.ts";
import type { Requirements } from "../../blueprints/package-description.ts";
import { isoTime } from "../../engine/event.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { secretPathsIn } from "../../security/secret-paths.ts";
import { addRoutes, get } from "../core/route.ts";
import { sendPage } from "./page.ts";
import { BlueprintDetailSchema, BlueprintPageSchema, BlueprintsQuery } from "./schemas/blueprints.ts";
import type { GatewayServices } from "./services.ts";

export function blueprintRoutes(api: FastifyInstance, services: GatewayServices): void {
  const views = new BlueprintViews({
    catalog: services.catalog,
    records: services.blueprintRecords,
    packages: services.bundles,
    differences: services.folderDifferences,
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
        return sendPage(services, request, reply, {
          rows: (limit, after) =>
            views.list({ category, text, state }, { limit, after: after === null ? null : String(after[0]) }),
          positionOf: ({ blueprintId }) => [blueprintId],
          render: (view) => JSON.stringify(compact(view)),
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
        return { ...compact(detail), ...rest(detail, services.secrets) };
      },
    }),
  ]);
}

function compact({ blueprintId, identity, state, definition, warnings, isModified }: BlueprintView) {
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
