// What a run of a job is launched with: the graph of its package, and its configuration in layers; and whether that is
// all a run needs. Both are made once for each revision of a job, because thousands of runs ask for the same.

import { scheduler } from "node:timers/promises";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { PackageDescription } from "../blueprints/package-description.ts";
import type { Bundles } from "../bundles/bundles.ts";
import type { Definition } from "../bundles/definition.ts";
import { merged } from "../bundles/merge.ts";
import type { Graph } from "../engine/graph.ts";
import type { JsonObject } from "../engine/json.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { type SecretPaths, secretPathsIn } from "../security/secret-detection.ts";
import type { Preparation } from "./preparation/preparation.ts";
import type { JobDefinition } from "./records.ts";

export interface LaunchPlan {
  readonly definition: Definition;
  /** The definition's, with the secrets of its first messages encrypted. */
  readonly graph: Graph;
  readonly bundleFingerprint: string;
  /** The job's configuration over the package's, secrets encrypted; null when neither has any. */
  readonly configurationJson: string | null;
  /** What a run is checked against and prepared from; null when it needs nothing beyond this plan. */
  readonly preparation: PackageDescription | null;
}

type Made = Pick<LaunchPlan, "graph" | "configurationJson" | "preparation">;

const PLANS_KEPT = 256;
const CONFIGURATION_CHARS_KEPT = 8 * 1024 * 1024;

export interface LaunchPlansParts {
  readonly bundles: Bundles;
  readonly secrets: ConfigurationSecrets;
  readonly preparation: Pick<Preparation, "isNeeded">;
}

export class LaunchPlans {
  readonly #parts: LaunchPlansParts;
  readonly #made = new Map<string, Made>();
  #chars = 0;

  constructor(parts: LaunchPlansParts) {
    this.#parts = parts;
  }

  /**
   * @param job one that is ready
   * @throws BundleProblem when the snapshot has been removed or damaged from outside; ConfigurationUnreadable when a
   *   secret was encrypted with another key
   */
  async of(job: JobDefinition): Promise<LaunchPlan> {
    return this.#planOf(job);
  }

  /** What runs of a job are checked against before they are accepted; null: nothing. @throws as `of` */
  async preparationOf(job: JobDefinition): Promise<PackageDescription | null> {
    return (await this.#planOf(job)).preparation;
  }

  async #planOf(job: JobDefinition): Promise<LaunchPlan> {
    const { bundleFingerprint } = job;
    if (bundleFingerprint === null) throw new Error(`Job ${job.jobId} is not ready, and has no plan.`);
    const definition = await this.#parts.bundles.definition(bundleFingerprint);
    const key = `${job.jobId} ${job.revision}`;
    let made = this.#made.get(key);
    if (made === undefined) {
      made = await this.#make(job, bundleFingerprint, definition);
      this.#keep(key, made);
    }
    return { definition, bundleFingerprint, ...made };
  }

  async #make(job: JobDefinition, fingerprint: string, definition: Definition): Promise<Made> {
    // A package that an older version accepted, and this one would not, keeps working as it did.
    const { description } = await descriptionOf(definition);
    const jobConfiguration = JSON.parse(job.configurationJson) as JsonObject;
    const paths = secretPathsIn(definition.manifest);
    const configurationJson = await this.#resolved(definition.configuration, jobConfiguration, paths);
    const graph = this.#parts.secrets.withEncryptedInputs(definition.graph, paths);
    if (description === null) return { graph, configurationJson, preparation: null };
    const isNeeded = await this.#parts.preparation.isNeeded({
      blueprintId: blueprintOf(job),
      fingerprint,
      definition,
      description,
      jobConfiguration,
      configOverrides: null,
      inputs: {},
    });
    return { graph, configurationJson, preparation: isNeeded ? description : null };
  }

  async #resolved(
    ofPackage: JsonObject | null,
    ofJob: JsonObject,
    paths: SecretPaths,
  ): Promise<string | null> {
    if (ofPackage === null && Object.keys(ofJob).length === 0) return null;
    const { secrets } = this.#parts;
    // Layers are merged as plaintext, so that a secret is replaced whole and never mixed with what is below it.
    const plaintext = merged(ofPackage ?? {}, await secrets.decrypt(ofJob));
    // Hundreds of secrets take milliseconds to encrypt.
    await scheduler.yield();
    return JSON.stringify(secrets.encrypt(plaintext, paths));
  }

  #keep(key: string, made: Made): void {
    const chars = made.configurationJson?.length ?? 0;
    if (this.#made.size >= PLANS_KEPT || this.#chars + chars > CONFIGURATION_CHARS_KEPT) {
      this.#made.clear();
      this.#chars = 0;
    }
    // Of those who made it at the same moment, the last one's stays; its characters are counted as often.
    this.#made.set(key, made);
    this.#chars += chars;
  }
}

export function blueprintOf({ source }: JobDefinition): string | null {
  return source.kind === "blueprint" ? source.blueprintId : null;
}
