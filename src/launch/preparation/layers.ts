// The configuration of a launch in its layers: the package's (config/default.json, config/overwrite.json), the job's,
// the run's.
//
// L1. Layers meet in clear, so that a secret is replaced whole and never mixed with what is below it.
// L2. A path that names a folder of the user's is never blanked: what a form sends for an untouched field does not
//     hide what a lower layer says.

import { merged } from "../../bundles/merge.ts";
import type { JsonObject } from "../../engine/json.ts";
import { isBlank, valueAt, withValueAt } from "./config-paths.ts";

/** From the lowest to the highest. */
export type Layers = readonly JsonObject[];

/** Lays the layers on one another. */
export function mergedLayers(layers: Layers): JsonObject {
  return layers.reduce((base, layer) => merged(base, layer), {});
}

/**
 * Gives paths that a higher layer has blanked the value of the highest layer that says something.
 *
 * @param resolved the merged layers
 * @param paths dotted
 */
export function withoutBlanks(layers: Layers, resolved: JsonObject, paths: readonly string[]): JsonObject {
  let filled = resolved;
  for (const path of paths) {
    if (!isBlank(valueAt(filled, path))) continue;
    const said = layers.map((layer) => valueAt(layer, path)).findLast((value) => !isBlank(value));
    if (said !== undefined) filled = withValueAt(filled, path, said);
  }
  return filled;
}
