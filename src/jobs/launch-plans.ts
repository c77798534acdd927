// What a run of a job is launched with: the graph of its bundle, and its configuration in layers. The configuration
// is made once for each revision of a job, because thousands of runs ask for the same.

import type { Bundles } from "../bundles/bundles.ts";
import { merged } from "../bundles/merge.ts";
import type { Graph } from "../engine/graph.ts";
import type { JsonObject } from "../engine/json.ts";
import type { ConfigurationSecrets } from "../secrets/configuration.ts";
import type { JobDefinition } from "./records.ts";

export interface LaunchPlan {
  readonly graph: Graph;
  readonly manifestJson: string;
  readonly bundleFingerprint: string;
  /** The job's configuration over the bundle's, secrets sealed; null when neither has any. */
  readonly configurationJson: string | null;
}

const CONFIGURATIONS_KEPT = 256;
const CONFIGURATION_CHARS_KEPT = 8 * 1024 * 1024;

export class LaunchPlans {
  readonly #bundles: Bundles;
  readonly #secrets: ConfigurationSecrets;
  readonly #configurations = new Map<string, string | null>();
  #chars = 0;

  constructor({ bundles, secrets }: { readonly bundles: Bundles; readonly secrets: ConfigurationSecrets }) {
    this.#bundles = bundles;
    this.#secrets = secrets;
  }

  /**
   * @throws BundleProblem when the snapshot has been removed or damaged from outside; ConfigurationUnreadable when a
   *   secret was sealed with another key
   */
  async of(job: JobDefinition): Promise<LaunchPlan> {
    const { graph, manifestJson, configuration } = await this.#bundles.definition(job.bundleFingerprint);
    return {
      graph,
      manifestJson,
      bundleFingerprint: job.bundleFingerprint,
      configurationJson: this.#configurationOf(job, configuration),
    };
  }

  #configurationOf(job: JobDefinition, ofBundle: JsonObject | null): string | null {
    const key = `${job.jobId} ${job.revision}`;
    const known = this.#configurations.get(key);
    if (known !== undefined) return known;
    const ofJob = JSON.parse(job.configurationJson) as JsonObject;
    const isEmpty = ofBundle === null && Object.keys(ofJob).length === 0;
    // Layers meet in clear, so that a secret is replaced whole and never mixed with what is below it.
    const configurationJson = isEmpty
      ? null
      : JSON.stringify(this.#secrets.seal(merged(ofBundle ?? {}, this.#secrets.unseal(ofJob))));
    this.#keep(key, configurationJson);
    return configurationJson;
  }

  #keep(key: string, configurationJson: string | null): void {
    const chars = configurationJson?.length ?? 0;
    if (this.#configurations.size >= CONFIGURATIONS_KEPT || this.#chars + chars > CONFIGURATION_CHARS_KEPT) {
      this.#configurations.clear();
      this.#chars = 0;
    }
    this.#configurations.set(key, configurationJson);
    this.#chars += chars;
  }
}
