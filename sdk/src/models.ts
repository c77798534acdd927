// Models: registered, installed on nodes, looked at and removed.

import { type Pages, pagesOf } from "./pages.ts";
import type {
  Model,
  ModelInstallation,
  ModelInstallationTag,
  ModelPatch,
  ModelRemoval,
  ModelServeSettings,
  ModelServing,
  ModelValidation,
  ModelVersionTag,
  NewModel,
  Operation,
  TaggedModel,
  TaggedModelInstallation,
} from "./records.ts";
import { tagged } from "./tagged.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

export class ModelsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Says where a model comes from; nothing is fetched before it is installed. Keep what comes back: changes need it.
   *
   * @throws TroupeProblem `conflict` when the id is taken
   *
   * @example await client.models.register({ source: { url: "https://…/tiny.gguf", sha256 } });
   */
  async register(model: NewModel, options: KeyedOptions = {}): Promise<TaggedModel> {
    return tagged(await this.#transport.json("registerModel", { body: model }, options));
  }

  /** By their ids. */
  list(query: { readonly page_size?: number } = {}, options: CallOptions = {}): Pages<Model> {
    return pagesOf(this.#transport, "listModels", { query }, options);
  }

  async get(modelId: string, options: CallOptions = {}): Promise<TaggedModel> {
    return tagged(await this.#transport.json("getModel", pathOf(modelId), options));
  }

  /**
   * Changes a registration: a JSON merge patch, whose source is a whole one.
   *
   * @throws TroupeProblem `precondition_failed` when it has changed: get it again, then decide
   */
  async update(model: ModelVersionTag, patch: ModelPatch, options: CallOptions = {}): Promise<TaggedModel> {
    const request = { ...pathOf(model.model_id), headers: { "if-match": model.etag }, body: patch };
    return tagged(await this.#transport.json("updateModel", request, options));
  }

  /** Deletes a registration. @throws TroupeProblem `model_in_use` while it is installed */
  async delete(model: ModelVersionTag, options: CallOptions = {}): Promise<void> {
    const request = { ...pathOf(model.model_id), headers: { "if-match": model.etag } };
    await this.#transport.json("deleteModel", request, options);
  }

  /** Begins an operation, to be followed or waited for with `client.operations`. @param force fetches it also when it is there */
  install(modelId: string, force = false, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("installModel", { ...pathOf(modelId), body: { force } }, options);
  }

  /** Brings what its source has now; an operation. */
  refresh(modelId: string, force = false, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("refreshModel", { ...pathOf(modelId), body: { force } }, options);
  }

  /** Removes what is installed on the node that is asked; an operation. The registration stays. */
  uninstall(modelId: string, removal: ModelRemoval = {}, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("uninstallModel", { ...pathOf(modelId), body: removal }, options);
  }

  /** Looks at it. @param context tokens that are to be kept */
  validate(modelId: string, context?: number, options: CallOptions = {}): Promise<ModelValidation> {
    const body = context === undefined ? {} : { context };
    return this.#transport.value("validateModel", { ...pathOf(modelId), body }, options);
  }

  /** Serves it in the OpenAI protocol until it is stopped; an operation, whose result has base_url. */
  serve(modelId: string, settings: ModelServeSettings = {}, options: KeyedOptions = {}): Promise<Operation> {
    return this.#transport.value("serveModel", { ...pathOf(modelId), body: settings }, options);
  }

  /** How it is served. */
  serving(modelId: string, options: CallOptions = {}): Promise<ModelServing> {
    return this.#transport.value("getModelServing", pathOf(modelId), options);
  }

  /** Serves it no more; requests under way fail. @throws TroupeProblem `invalid_transition` when it was not served */
  stop(modelId: string, options: KeyedOptions = {}): Promise<ModelServing> {
    return this.#transport.value("stopModel", pathOf(modelId), options);
  }

  installations(modelId: string, options: CallOptions = {}): Pages<ModelInstallation> {
    return pagesOf(this.#transport, "listModelInstallations", { ...pathOf(modelId), query: {} }, options);
  }

  async installation(
    modelId: string,
    installationId: string,
    options: CallOptions = {},
  ): Promise<TaggedModelInstallation> {
    return tagged(
      await this.#transport.json("getModelInstallation", placeOf(modelId, installationId), options),
    );
  }

  /** Keeps an installation as it is, or lets it be changed again. @throws TroupeProblem `precondition_failed` */
  async pin(
    installation: ModelInstallationTag,
    pinned: boolean,
    options: CallOptions = {},
  ): Promise<TaggedModelInstallation> {
    const { model_id, installation_id, etag } = installation;
    const request = {
      ...placeOf(model_id, installation_id),
      headers: { "if-match": etag },
      body: { pinned },
    };
    return tagged(await this.#transport.json("updateModelInstallation", request, options));
  }

  /** Removes an installation that nothing needs, at once. @throws TroupeProblem `model_in_use`, `precondition_failed` */
  async deleteInstallation(installation: ModelInstallationTag, options: CallOptions = {}): Promise<void> {
    const { model_id, installation_id, etag } = installation;
    const request = { ...placeOf(model_id, installation_id), headers: { "if-match": etag } };
    await this.#transport.json("deleteModelInstallation", request, options);
  }
}

const pathOf = (modelId: string) => ({ path: { model_id: modelId } });
const placeOf = (modelId: string, installationId: string) => ({
  path: { model_id: modelId, installation_id: installationId },
});
