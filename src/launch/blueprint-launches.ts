// Launches of blueprints: a job and its run in one request; and the check of a launch, which makes nothing.

import type { BlueprintForJob, Blueprints } from "../blueprints/blueprints.ts";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Priority } from "../engine/share.ts";
import type { TraceContext } from "../engine/trace.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { secretPathsIn } from "../security/secret-detection.ts";
import type { WebUiPorts } from "../web/ports.ts";
import { inputsRefused } from "./acceptance.ts";
import type { CreatedJob, Definitions } from "./definitions.ts";
import { withInputs } from "./inputs.ts";
import { blueprintSource } from "./job-sources.ts";
import { entriesOf, refuseUnchecked } from "./preparation/findings.ts";
import type { Preparation } from "./preparation/preparation.ts";
import type { GatewayWrites, NewRun } from "./records.ts";
import type { Runs } from "./runs.ts";

export interface BlueprintLaunchesParts {
  readonly blueprints: Blueprints;
  readonly definitions: Definitions;
  readonly runs: Runs;
  readonly preparation: Pick<Preparation, "check">;
  readonly webUiPorts: Pick<WebUiPorts, "candidates" | "refusal">;
  readonly secrets: ConfigurationSecrets;
}

export interface LaunchRequest {
  /** Null: those of the run that it repeats, or none. */
  readonly inputs: JsonObject | null;
  /** The same. */
  readonly configOverrides: JsonObject | null;
  /** The run that it repeats, of the same blueprint. */
  readonly rerunOf?: string;
  /** Normal when absent. */
  readonly priority?: Priority;
  /** The job's; null: the blueprint's own. */
  readonly name: string | null;
  /** The caller's trace; null: the run has one of its own. */
  readonly trace: TraceContext | null;
}

export interface LaunchedBlueprint {
  readonly created: CreatedJob;
  readonly run: NewRun;
  /** That its folder is not what the run is made of. */
  readonly warnings: readonly DomainErrorEntry[];
}

/** What is still to be done of a checked request, in a transaction; `launched` is to be called after its commit. */
export type InsertLaunch = (writes: GatewayWrites) => Promise<LaunchedBlueprint>;

export interface Validation {
  readonly errors: readonly DomainErrorEntry[];
  readonly warnings: readonly DomainErrorEntry[];
}

export class BlueprintLaunches {
  readonly #parts: BlueprintLaunchesParts;

  constructor(parts: BlueprintLaunchesParts) {
    this.#parts = parts;
  }

  /**
   * Checks a launch; writes nothing.
   *
   * @throws DomainError what Blueprints.forJob and Acceptance.check throw
   */
  async prepare(blueprintId: string, request: LaunchRequest): Promise<InsertLaunch> {
    const { blueprints, definitions, runs } = this.#parts;
    const found = await blueprints.forJob(blueprintId);
    const source = blueprintSource(blueprints, found);
    const draft = definitions.draft(source, { name: request.name, configuration: {} });
    const insertRun = await runs.prepareOf(draft.job, {
      inputs: request.inputs,
      configOverrides: request.configOverrides,
      ...(request.rerunOf !== undefined && { rerunOf: request.rerunOf }),
      ...(request.priority !== undefined && { priority: request.priority }),
      trigger: { kind: "blueprint", id: blueprintId },
      trace: request.trace,
    });
    const warnings = await blueprints.folderWarnings(found);
    return async (writes) => {
      const created = await draft.insert(writes);
      return { created, run: await insertRun(writes), warnings };
    };
  }

  /** To be called when the job and its run are on disk. */
  launched({ created, run }: LaunchedBlueprint): void {
    this.#parts.definitions.created(created);
    this.#parts.runs.accepted(run);
  }

  /**
   * Finds every problem of a launch with these inputs and this configuration. Makes nothing.
   *
   * @param asked.config in the place of a run's config_overrides
   * @throws DomainError `blueprint_not_found`; `blueprint_busy` while it is being removed; `unavailable` on a busy machine
   */
  async validate(
    blueprintId: string,
    asked: { readonly inputs: JsonObject; readonly config: JsonObject },
  ): Promise<Validation> {
    const found = await this.#find(blueprintId);
    if (found instanceof DomainError) return { errors: entriesOfRefusal(found), warnings: [] };
    const { secrets } = this.#parts;
    const paths = secretPathsIn(found.definition.manifest);
    const encrypted = await secrets.encryptGiven(asked.config, {}, { at: "/config", paths });
    const encryptedInputs = await secrets.encryptInputs(asked.inputs, { paths });
    // A mask that stands for nothing is a mistake of its own, and hides no other one.
    const config = encrypted.kind === "encrypted" ? encrypted.value : secrets.encrypt(asked.config, paths);
    const answer = withInputs(found.definition.graph, asked.inputs);
    const checked = await this.#check(found, asked.inputs, config);
    return {
      errors: [
        ...(encrypted.kind === "invalid" ? encrypted.errors : []),
        ...(encryptedInputs.kind === "invalid" ? encryptedInputs.errors : []),
        ...(answer.kind === "invalid" ? inputsRefused(answer.problems).errors : []),
        ...checked.errors,
      ],
      warnings: checked.warnings,
    };
  }

  /** @returns the refusal of a blueprint that is broken */
  async #find(blueprintId: string): Promise<BlueprintForJob | DomainError> {
    try {
      return await this.#parts.blueprints.forJob(blueprintId);
    } catch (error) {
      if (error instanceof DomainError && error.code === "validation_failed") return error;
      throw error;
    }
  }

  async #check(found: BlueprintForJob, inputs: JsonObject, configOverrides: JsonObject): Promise<Validation> {
    const { blueprints, preparation, webUiPorts } = this.#parts;
    const subject = { ...found, jobConfiguration: {}, configOverrides, inputs };
    const { errors, unmet, warnings, webUi } = await preparation.check(subject);
    refuseUnchecked({ errors });
    const described = await descriptionOf(found.definition);
    const hasPort = webUi === null || (await webUiPorts.candidates()).length > 0;
    return {
      errors: entriesOf([...errors, ...unmet], "/config"),
      warnings: [
        ...described.warnings,
        ...entriesOf(warnings, "/config"),
        ...(hasPort ? [] : entriesOfRefusal(webUiPorts.refusal())),
        ...(found.fingerprint === null ? [notAdded] : await blueprints.folderWarnings(found)),
      ],
    };
  }
}

const notAdded: DomainErrorEntry = {
  path: "",
  code: "not_added",
  message:
    "the blueprint is not added yet: its own validators, and what its addition prepares, were not looked at; the first launch adds it",
};

function entriesOfRefusal({ code, message, errors }: DomainError): readonly DomainErrorEntry[] {
  return errors.length > 0 ? errors : [{ path: "", code, message }];
}
