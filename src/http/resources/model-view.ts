// A model as the API takes and shows it (CONTRACTS section 10).

import { isoTime } from "../../engine/event.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { ModelPatch, NewModel } from "../../models/models.ts";
import { installationStates, type ModelInstallation, type ModelView } from "../../models/records.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { type Static, Type } from "../core/type.ts";

const modelStates = ["registered", ...installationStates] as const;
const Sha256 = { pattern: "^[0-9a-f]{64}$" };
const EXAMPLE_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

export const ModelId = Type.String(
  "1 to 200 characters without control characters; in paths percent-encoded.",
  {
    minLength: 1,
    maxLength: 200,
    examples: ["qwen3-4b"],
  },
);

const sourceText =
  'One of {"file": "/path"}, {"url": "https://…", "sha256": "…", "token"?: "…"}, {"payload": "path", "blueprint_id": "…"}, {"folder": "/path"}, {"ollama": {"base_url", "model"}}, {"openai": {"base_url", "model", "api_key"?}}. Paths are of the machine of the gateway.';
const sourceExample = { url: "https://models.example.com/qwen3-4b-q4_k_m.gguf", sha256: EXAMPLE_SHA256 };

const Requirements = Type.Input({
  memory_bytes: Type.Integer("To answer with.", { minimum: 0 }),
  disk_bytes: Type.Integer("To be installed.", { minimum: 0 }),
});

const said = {
  name: Type.String("For people.", { minLength: 1, maxLength: 200, examples: ["Qwen3 4B"] }),
  family: Type.Nullable(Type.String("Such as qwen3.", { maxLength: 200 })),
  source: Type.JsonObject(sourceText, sourceExample),
  sha256: Type.Nullable(
    Type.String(
      "What the content has to be; of a folder the SHA-256 of its list, as sha256sum prints it.",
      Sha256,
    ),
  ),
  license: Type.Nullable(Type.String("Such as apache-2.0.", { maxLength: 200 })),
  parameters: Type.Nullable(Type.Integer("How many numbers it has.", { minimum: 0 })),
  quantisation: Type.Nullable(Type.String("Such as Q4_K_M.", { maxLength: 100 })),
  context: Type.Nullable(Type.Integer("Tokens that it was made for.", { minimum: 1 })),
  requirements: Type.Nullable(Requirements),
};

const example = { model_id: "qwen3-4b", source: sourceExample };
export const RegisterModelBody = Type.Input(
  { model_id: ModelId, ...said },
  { required: ["source"], examples: [example] },
);
export const UpdateModelBody = Type.Input(said, { examples: [{ name: "Qwen3 4B" }] });

const OperationErrorSchema = Type.Object({
  code: Type.String({ examples: ["model_failed"] }),
  detail: Type.String("What happened and what to do next, for people."),
  retryable: Type.Boolean(),
});

export const InstallationSchema = Type.Object(
  {
    installation_id: Type.String({ examples: ["installation_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    model_id: ModelId,
    node_id: Type.String("The node that it is on.", { examples: ["node_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    state: Type.OneOf(installationStates, "What was installed before stays usable while it is updated."),
    operation_id: Type.String("The operation that has changed it last.", {
      examples: ["op_01k9z1v7m3e8q2x4c6t8b0n5dh"],
    }),
    bytes: Type.Integer("Of the content; 0 while there is none.", { minimum: 0 }),
    sha256: Type.Nullable(
      Type.String("Of the content in SVC_HOME; null while there is none, and of a model that a server has."),
    ),
    pinned: Type.Boolean("Whether it stays as it is: it is not updated, and removed only by force."),
    error: Type.Nullable(OperationErrorSchema),
    revision: Type.Integer({ minimum: 1 }),
    created_at: Type.Time("When it was first asked for."),
    updated_at: Type.Time("When it last changed."),
  },
  "A model on one node.",
);

export const ModelSchema = Type.Object(
  {
    model_id: ModelId,
    name: said.name,
    family: said.family,
    source: Type.JsonObject("Where it comes from; secrets are masked.", sourceExample),
    sha256: Type.Nullable(Type.String("Of the content that was installed last, else as declared.")),
    size: Type.Nullable(Type.Integer("Bytes; null before it was installed.")),
    format: Type.Nullable(Type.String("gguf, safetensors, or what a server says.", { examples: ["gguf"] })),
    license: said.license,
    parameters: said.parameters,
    quantisation: said.quantisation,
    context: said.context,
    requirements: Type.Nullable(
      Type.Object({
        memory_bytes: Type.Optional(Type.Integer("To answer with.")),
        disk_bytes: Type.Optional(Type.Integer("To be installed.")),
      }),
    ),
    details: Type.Nullable(
      Type.Object(
        {
          architecture: Type.Nullable(Type.String({ examples: ["qwen3"] })),
          parameters: said.parameters,
          quantisation: said.quantisation,
          context: said.context,
          tokenizer: Type.Nullable(Type.String()),
          vocabulary: Type.Nullable(Type.Integer("Tokens.")),
          chat_template: Type.Nullable(Type.Boolean("Whether it has one.")),
        },
        "What the content says of itself; null before it was installed.",
      ),
    ),
    state: Type.OneOf(modelStates, "Over all nodes. An endpoint stays registered: it is served as it is."),
    used_by: Type.Array(
      Type.String({ examples: ["blueprint:document-digest"] }),
      "The blueprints that brought it.",
    ),
    installations: Type.Array(InstallationSchema),
    revision: Type.Integer({ minimum: 1 }),
    created_at: Type.Time("When it was registered."),
    updated_at: Type.Time("When it last changed."),
  },
  "A model that was registered.",
);

/** As JSON text. */
export function renderModel(model: ModelView, secrets: ConfigurationSecrets): string {
  const { modelId, name, family, content, blueprints, installations } = model;
  const own = content ?? null;
  return JSON.stringify({
    model_id: modelId,
    name,
    family,
    source: secrets.mask(model.source),
    sha256: own?.sha256 ?? model.sha256,
    size: own?.bytes ?? null,
    format: own?.format ?? null,
    license: model.license ?? own?.license ?? null,
    parameters: model.parameters ?? own?.parameters ?? null,
    quantisation: model.quantisation ?? own?.quantisation ?? null,
    context: model.context ?? own?.context ?? null,
    requirements: model.requirements,
    details: own === null ? null : detailsOf(own),
    state: stateOf(model),
    used_by: blueprints.map((blueprintId) => `blueprint:${blueprintId}`),
    installations: installations.map(installationJson),
    revision: model.revision,
    created_at: isoTime(model.createdAtMs),
    updated_at: isoTime(model.updatedAtMs),
  });
}

function detailsOf(content: NonNullable<ModelView["content"]>): JsonObject {
  const { architecture, parameters, quantisation, context, tokenizer, vocabulary, hasChatTemplate } = content;
  const said = { architecture, parameters, quantisation, context, tokenizer, vocabulary };
  return { ...said, chat_template: hasChatTemplate };
}

function stateOf({ installations, blueprints }: ModelView): (typeof modelStates)[number] {
  const states = new Set(installations.map(({ state }) => state));
  if (states.has("installed") || blueprints.length > 0) return "installed";
  return states.has("installing") ? "installing" : states.has("failed") ? "failed" : "registered";
}

export function installationJson(one: ModelInstallation): JsonObject {
  const { installationId, modelId, nodeId, state, operationId, sha256, bytes, pinned, error, revision } = one;
  return {
    installation_id: installationId,
    model_id: modelId,
    node_id: nodeId,
    state,
    operation_id: operationId,
    bytes,
    sha256,
    pinned,
    error: error === null ? null : { ...error },
    revision,
    created_at: isoTime(one.createdAtMs),
    updated_at: isoTime(one.updatedAtMs),
  };
}

export function newModel(body: Static<typeof RegisterModelBody>): NewModel {
  const { model_id: modelId = null, name = null, source } = body;
  const { family = null, sha256 = null, license = null, parameters = null } = body;
  const { quantisation = null, context = null, requirements = null } = body;
  return { modelId, name, source, family, sha256, license, parameters, quantisation, context, requirements };
}

/** A JSON merge patch (RFC 7396) on what the owner says; a source of another kind replaces the stored one. */
export function modelPatch(body: Static<typeof UpdateModelBody>, before: ModelView): ModelPatch {
  const { source, requirements, ...others } = body;
  return {
    ...others,
    ...(requirements !== undefined && {
      requirements: requirements === null ? null : { ...before.requirements, ...requirements },
    }),
    ...(source !== undefined && { source }),
  };
}
