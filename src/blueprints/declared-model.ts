// The file of a model that a package declares.

import { realpath, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { isInside, joinInside } from "../lib/paths.ts";
import { modelFailed } from "../models/model-files.ts";
import type { DeclaredModel } from "./package-description.ts";

/** @param payload the package's payloads/ folder. @throws OperationFailed `model_failed` when it is not there, or outside */
export async function fileOfModel({ modelId, path }: DeclaredModel, payload: string): Promise<string> {
  const named = isAbsolute(path) ? path : joinInside(payload, path);
  const where = isAbsolute(path) ? "the path that the manifest names" : `payloads/${path}`;
  const file = named === null ? null : await realpath(named).catch(() => null);
  const isOutside = file !== null && !isAbsolute(path) && !isInside(await realpath(payload), file);
  if (file === null || isOutside || !(await stat(file)).isFile()) {
    throw modelFailed(modelId, `There is no file at ${where}. Put it there, or fix "path" in the manifest.`);
  }
  return file;
}

/** Its bytes, for progress; 0 when it cannot be read. */
export async function bytesOfModel({ path }: DeclaredModel, payload: string): Promise<number> {
  const file = isAbsolute(path) ? path : joinInside(payload, path);
  return file === null ? 0 : ((await stat(file).catch(() => null))?.size ?? 0);
}
