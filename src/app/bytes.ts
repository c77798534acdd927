// Where a running program keeps the bytes of artifacts: in its home, from where other nodes fetch them, or in the store that
// SVC_BLOB_URL names.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import type { SharedFolders } from "../bundles/shared-folders.ts";
import type { ByteSource, BytesElsewhere } from "../cluster/bytes.ts";
import type { Finding } from "../execution/machine.ts";
import { type Blobs, FileBlobs } from "../store/blobs.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";

/** The files of nodes that share no store. */
export interface FilesOfNodes {
  /** What this node has for the others. */
  readonly source: ByteSource;
  /** From now on the others are asked for what is not here. */
  askAlso(others: BytesElsewhere): void;
}

export interface Bytes {
  readonly blobs: Blobs;
  /** Null when everything is in the home, and nobody else's. */
  readonly folders: SharedFolders | null;
  /** Null when there are no other nodes, or they share a store. */
  readonly ofNodes: FilesOfNodes | null;
}

/** Only programs that share files load what it takes. */
const sharedCode = () => import("../store/shared/shared-store.ts");

/** What a check of the place of files finds; null: nothing is worth saying. Throws nothing. */
export async function checkFiles(
  config: Pick<Config, "blobUrl" | "blobCredentials" | "databaseUrl">,
): Promise<Finding | null> {
  const name = "files";
  if (config.blobUrl === null) {
    if (config.databaseUrl === null) return null;
    const text =
      "artifacts and bundles are in SVC_HOME of the node that made them: other nodes fetch them from there, and they go with it";
    const fix =
      "Set SVC_BLOB_URL on all nodes to keep them in a bucket, or in a folder that all machines have.";
    return { name, state: "warn", text, fix };
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
    const blobs = new FileBlobs(folder);
    await blobs.sweep();
    if (config.databaseUrl === null) return { blobs, folders: null, ofNodes: null };
    log.warn("files go with the node that made them: set SVC_BLOB_URL to keep them (docs/operating.md)");
    return filesOfNodes(home, blobs);
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
  return { blobs: new SharedBlobs(shared.objects, shared.removals), folders, ofNodes: null };
}

async function filesOfNodes(home: string, local: FileBlobs): Promise<Bytes> {
  const [{ HomeBytes }, { FetchedBlobs }, { FetchedFolders }] = await Promise.all([
    import("../store/homes/home-bytes.ts"),
    import("../store/homes/fetched-blobs.ts"),
    import("../store/homes/fetched-folders.ts"),
  ]);
  let others: BytesElsewhere | null = null;
  const elsewhere = () => others;
  const source = new HomeBytes(home, local);
  return {
    blobs: new FetchedBlobs(local, elsewhere),
    folders: new FetchedFolders({ home, here: source, elsewhere, newId: systemRandomness.id }),
    ofNodes: {
      source,
      askAlso(found) {
        others = found;
      },
    },
  };
}
