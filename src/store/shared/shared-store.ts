// All that a program with a shared store loads, and others do not.

export { ArchivedFolders } from "./archived-folders.ts";
export { openSharedStore } from "./open-shared.ts";
export { probe } from "./probe.ts";
export { SharedBlobs } from "./shared-blobs.ts";
