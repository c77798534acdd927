// Where a running program keeps the bytes of artifacts: in its home, or in the store that SVC_BLOB_URL names.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import type { SharedFolders } from "../bundles/shared-folders.ts";
import type { Finding } from "../execution/machine.ts";
import { type Blobs, FileBlobs } from "../store/blobs.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";

export interface Bytes {
  readonly blobs: Blobs;
  /** Null when everything is in the home. */
  readonly folders: SharedFolders | null;
}

/** Only programs that use a shared store load what it takes. */
const sharedCode = () => import("../store/shared/shared-store.ts");

/** What a check of the place of files finds; null: nothing is worth saying. Throws nothing. */
export async function checkFiles(
  config: Pick<Config, "blobUrl" | "blobCredentials" | "databaseUrl">,
): Promise<Finding | null> {
  const name = "files";
  if (config.blobUrl === null) {
    if (config.databaseUrl === null) return null;
    const text = "artifacts and bundles are in SVC_HOME of this machine alone";
    return { name, state: "warn", text, fix: "Set SVC_BLOB_URL before another machine uses the database." };
  }
  const credentials = config.blobCredentials;
  if (config.blobUrl.kind === "s3" && credentials === null) {
    const text = "SVC_BLOB_URL names a bucket, and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set";
    return { name, state: "fail", text, fix: "Set the credentials of the bucket." };
  }
  const parts = { credentials, clock: systemClock, randomness: systemRandomness };
  const { openSharedStore, probe } = await sharedCode();
  const { objects } = await openSharedStore(config.blobUrl, parts);
  return probe(objects, systemRandomness.id());
}

/** @param home SVC_HOME */
export async function openBytes(config: Config, home: string, log: Logger): Promise<Bytes> {
  const folder = join(home, "blobs");
  if (config.blobUrl === null) {
    if (config.databaseUrl !== null) {
      log.warn(
        "artifacts and bundles are in SVC_HOME alone: set SVC_BLOB_URL before another machine uses the database",
      );
    }
    const blobs = new FileBlobs(folder);
    await blobs.sweep();
    return { blobs, folders: null };
  }
  const credentials = config.blobCredentials;
  const parts = { credentials, clock: systemClock, randomness: systemRandomness };
  const { ArchivedFolders, openSharedStore, SharedBlobs } = await sharedCode();
  const shared = await openSharedStore(config.blobUrl, parts);
  // The start does not wait for it: jobs run meanwhile, and may need nothing of it.
  shared.objects
    .check()
    .catch((error: unknown) => log.warn({ error: String(error) }, "the store of files cannot be used yet"));
  if (existsSync(folder)) {
    log.warn(
      { folder },
      "artifacts in SVC_HOME are not read while SVC_BLOB_URL is set: copy the folder into the store, then remove it (docs/operating.md)",
    );
  }
  const folders = new ArchivedFolders({
    ...shared,
    home,
    clock: systemClock,
    newId: systemRandomness.id,
  });
  return { blobs: new SharedBlobs(shared.objects, shared.removals), folders };
}
