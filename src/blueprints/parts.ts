// What additions and removals of blueprints work with.

import type { Bundles } from "../bundles/bundles.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import type { ModelFiles } from "../models/model-files.ts";
import type { ModelRecords } from "../models/records.ts";
import type { Catalog } from "./catalog.ts";
import type { AdditionWrites, BlueprintRecords } from "./records.ts";
import type { Resources } from "./resources.ts";
import type { SharedAssets } from "./shared-assets.ts";

export interface BlueprintsParts {
  readonly catalog: Catalog;
  readonly bundles: Bundles;
  readonly records: BlueprintRecords;
  readonly write: <T>(work: (writes: AdditionWrites) => Promise<T>) => Promise<T>;
  readonly resources: Resources;
  readonly models: ModelFiles;
  readonly modelRecords: Pick<ModelRecords, "allInstallations">;
  readonly sharedAssets: SharedAssets;
  /**
   * A package's own configuration as its commands get it, with the texts in it that must not be shown.
   *
   * @throws Error of the name ConfigurationUnreadable, whose message names the variables that are not set
   */
  readonly openConfiguration: (configuration: JsonObject) => Promise<{
    readonly json: string;
    readonly secrets: readonly string[];
  }>;
  /** Bytes that the disk of SVC_HOME has for what is written now. */
  readonly freeBytes: () => Promise<number>;
  readonly clock: Clock;
}
