// The features that a package switches on for its jobs.

import { isStringList, type JsonObject } from "../engine/json.ts";

export function extensionsOf(manifest: JsonObject): readonly string[] {
  return isStringList(manifest.extensions) ? manifest.extensions : [];
}
