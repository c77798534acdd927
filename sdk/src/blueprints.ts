// Blueprints: packages of the catalog, which are added, run and removed.

import { type Pages, pagesOf } from "./pages.ts";
import type {
  Blueprint,
  BlueprintAddition,
  BlueprintCheck,
  BlueprintDetail,
  BlueprintLaunch,
  BlueprintRemoval,
  BlueprintsQuery,
  BlueprintToCheck,
  LaunchedBlueprint,
  Operation,
  Run,
} from "./records.ts";
import { FIRST_WAIT_SECONDS, type RunsResource } from "./runs.ts";
import { type CallOptions, type KeyedOptions, type Transport, waitHeaders } from "./transport.ts";

export class BlueprintsResource {
  readonly #transport: Transport;
  readonly #runs: RunsResource;

  constructor(transport: Transport, runs: RunsResource) {
    this.#transport = transport;
    this.#runs = runs;
  }

  /** In the order of their ids; a broken one is listed as broken. */
  list(query: BlueprintsQuery = {}, options: CallOptions = {}): Pages<Blueprint> {
    return pagesOf(this.#transport, "listBlueprints", { query }, options);
  }

  /** What it takes, what it needs, and what was prepared for it. @throws TroupeProblem `blueprint_not_found` */
  get(blueprintId: string, options: CallOptions = {}): Promise<BlueprintDetail> {
    return this.#transport.value("getBlueprint", pathOf(blueprintId), options);
  }

  /**
   * Starts to prepare a blueprint for runs. The operation runs in the background: `client.operations.wait` for its end,
   * or `follow` its progress.
   *
   * @param addition.force prepares everything again
   * @throws TroupeProblem `blueprint_not_found`, `blueprint_broken`; `blueprint_busy` while another operation is open
   *
   * @example await client.operations.wait((await client.blueprints.add("document-digest")).operation_id);
   */
  add(blueprintId: string, addition: BlueprintAddition = {}, options: KeyedOptions = {}): Promise<Operation> {
    const request = { ...pathOf(blueprintId), body: addition };
    return this.#transport.value("addBlueprint", request, options);
  }

  /**
   * Starts to delete what was prepared for a blueprint; with `dry_run` the operation only lists what would be removed.
   *
   * @throws TroupeProblem `blueprint_in_use` while runs of it are open; `blueprint_busy`, `blueprint_not_found`
   */
  remove(
    blueprintId: string,
    removal: BlueprintRemoval = {},
    options: KeyedOptions = {},
  ): Promise<Operation> {
    const request = { ...pathOf(blueprintId), body: removal };
    return this.#transport.value("removeBlueprint", request, options);
  }

  /** Whether a launch would be accepted now, and every reason why not; starts nothing. */
  validate(
    blueprintId: string,
    launch: BlueprintToCheck = {},
    options: CallOptions = {},
  ): Promise<BlueprintCheck> {
    const request = { ...pathOf(blueprintId), body: launch };
    return this.#transport.value("validateBlueprint", request, { ...options, repeat: "always" });
  }

  /**
   * Makes a job of a blueprint and starts a run of it; one that is not added is added first. Acceptance is not
   * completion: `client.runs.wait` for the end, or `follow` its events.
   *
   * @throws TroupeProblem `validation_failed`, `requirements_not_met`, `no_free_port`, `blueprint_broken`
   */
  async run(
    blueprintId: string,
    launch: BlueprintLaunch = {},
    options: KeyedOptions = {},
  ): Promise<LaunchedBlueprint> {
    const request = { ...pathOf(blueprintId), body: launch };
    // Without a wait the answer is never the ended run.
    return (await this.#transport.json("launchBlueprint", request, options)).value as LaunchedBlueprint;
  }

  /**
   * The same, and waits for the end of the run, as `client.runs.startAndWait` does.
   *
   * @throws TroupeProblem as `run`
   *
   * @example const { status } = await client.blueprints.runAndWait("document-digest");
   */
  async runAndWait(
    blueprintId: string,
    launch: BlueprintLaunch = {},
    options: KeyedOptions = {},
  ): Promise<Run> {
    const request = { ...pathOf(blueprintId), ...waitHeaders(FIRST_WAIT_SECONDS), body: launch };
    const { value } = await this.#transport.json("launchBlueprint", request, options);
    return "finished_at" in value ? value : this.#runs.wait(value.run_id, options);
  }
}

const pathOf = (blueprintId: string) => ({ path: { blueprint_id: blueprintId } });
