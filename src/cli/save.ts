// `troupe run --save`: copies a run's files into a folder.
//
// S1. A name from a worker never leads out of the folder.
// S2. A file appears under its name only when it is whole.

import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, normalize, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import type { RuntimeClient } from "./client.ts";
import { CommandFailed } from "./command.ts";
import type { RunArtifact } from "./wire.ts";

/**
 * Downloads artifacts into a folder, which is made if needed.
 *
 * @returns where each one is now, by artifact id
 */
export async function saveArtifacts(
  client: RuntimeClient,
  artifacts: readonly RunArtifact[],
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  const places = new Map<string, string>();
  const taken = new Set<string>();
  for (const artifact of artifacts) {
    const name = savedName(artifact, taken);
    const place = resolve(folder, name);
    await mkdir(dirname(place), { recursive: true });
    const partial = `${place}.part`;
    try {
      await pipeline(await client.download(artifact.url), createWriteStream(partial));
      await rename(partial, place);
    } catch (error) {
      await rm(partial, { force: true });
      if (error instanceof Error && "code" in error)
        throw new CommandFailed(`Saving ${place} failed: ${error.message}`);
      throw error;
    }
    places.set(artifact.artifact_id, place);
  }
  return places;
}

/** A relative name inside the folder that no earlier file has; without regard to case, as some disks have none. */
export function savedName(artifact: Pick<RunArtifact, "artifact_id" | "name">, taken: Set<string>): string {
  const relative = normalize(join(sep, artifact.name.replace(/\p{Cc}/gu, "_"))).slice(1);
  const name = relative === "" ? artifact.artifact_id : relative;
  const free = taken.has(name.toLowerCase()) ? join(artifact.artifact_id, name) : name;
  taken.add(free.toLowerCase());
  return free;
}
