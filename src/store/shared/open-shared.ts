// Opens the store that SVC_BLOB_URL names.

import type { Clock, Randomness } from "../../engine/ports.ts";
import { FolderObjects } from "./folder-objects.ts";
import type { ObjectStore } from "./object-store.ts";
import { Removals } from "./removals.ts";
import type { S3Credentials, S3Place } from "./s3-requests.ts";

export type SharedPlace =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "s3"; readonly place: S3Place };

export interface SharedStoreParts {
  /** Null for a folder. */
  readonly credentials: S3Credentials | null;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

export interface SharedStore {
  readonly objects: ObjectStore;
  readonly removals: Removals;
}

export async function openSharedStore(shared: SharedPlace, parts: SharedStoreParts): Promise<SharedStore> {
  const { clock, randomness } = parts;
  const program = randomness.id();
  const objects = await openObjects(shared, program, parts);
  return { objects, removals: new Removals(objects, program, clock) };
}

async function openObjects(
  shared: SharedPlace,
  program: string,
  { credentials, clock, randomness }: SharedStoreParts,
): Promise<ObjectStore> {
  if (shared.kind === "folder") return new FolderObjects(shared.path, program, clock.nowMs);
  if (credentials === null) throw new Error("A bucket needs credentials.");
  // Only programs that use a bucket pay for its client.
  const [{ S3Requests }, { S3Objects }] = await Promise.all([
    import("./s3-requests.ts"),
    import("./s3-objects.ts"),
  ]);
  const requests = new S3Requests({ place: shared.place, credentials, clock, fraction: randomness.fraction });
  return new S3Objects(requests, shared.place.prefix);
}
