// Faults of what is done with uploaded bundles: the limits of a hostile zip, and the room that all bundles have.

import type { Mutation } from "./mutation.ts";

const bombs = ["src/bundles/bombs.test.ts"];
const hostileZips = ["src/bundles/hostile-zips.test.ts"];

export const bundleMutations: readonly Mutation[] = [
  {
    fault: "a zip may hold any number of entries",
    file: "src/bundles/zip-entries.ts",
    search: "if (zip.entryCount > bundleLimits.entriesMax)",
    replacement: "if (zip.entryCount < 0)",
    tests: hostileZips,
  },
  {
    fault: "a zip's files may lie in any number of folders",
    file: "src/bundles/zip-entries.ts",
    search: "if (listing.folders.size > bundleLimits.foldersMax)",
    replacement: "if (listing.folders.size < 0)",
    tests: hostileZips,
  },
  {
    fault: "a zip may declare any size",
    file: "src/bundles/zip-entries.ts",
    search: 'if (listing.sizeBytes > bytesMax) listing.problems.add("", "too_large", tooLarge(bytesMax));',
    replacement: "",
    tests: hostileZips,
  },
  {
    fault: "an entry is unpacked beyond the size that it declares",
    file: "src/bundles/zip-source.ts",
    search: 'if (sizeBytes > file.sizeBytes) throw sizeMismatch(file, "more");',
    replacement: "",
    tests: hostileZips,
  },
  {
    fault: "one entry may unpack to any number of times its packed size",
    file: "src/bundles/zip-entries.ts",
    search: "if (isInflated({ sizeBytes: uncompressedSize, packedBytes: compressedSize }))",
    replacement: "if (compressedSize < 0)",
    tests: bombs,
  },
  {
    fault: "all entries together may unpack to any number of times their packed size",
    file: "src/bundles/zip-entries.ts",
    search: "if (isInflated(listing))",
    replacement: "if (listing.sizeBytes < 0)",
    tests: bombs,
  },
  {
    fault: "entries may share bytes of the zip",
    file: "src/bundles/zip-entries.ts",
    search: "if (file.offset < end)",
    replacement: "if (file.offset < 0)",
    tests: hostileZips,
  },
  {
    fault: "an upload is received whole, however large it is",
    file: "src/bundles/snapshots.ts",
    search: "if (sizeBytes > bytesMax) throw uploadTooLarge(bytesMax);",
    replacement: "",
    tests: hostileZips,
  },
  {
    fault: "uploads that arrive together each get the whole quota",
    file: "src/bundles/disk-quota.ts",
    search: "this.#reservedBytes += bytes;",
    replacement: "",
    tests: bombs,
  },
  {
    fault: "bundles from before the start do not count towards the quota",
    file: "src/bundles/disk-quota.ts",
    search: "await this.#measured();",
    replacement: "",
    tests: bombs,
  },
  {
    fault: "a quota that could not be measured once refuses every later bundle",
    file: "src/lib/async.ts",
    search: "      made = null;\n",
    replacement: "",
    tests: bombs,
  },
  {
    fault: "an upload is unpacked though the disk has less room than it declares",
    file: "src/bundles/disk-quota.ts",
    search: "if (bavail * bsize < bytes)",
    replacement: "if (bavail * bsize < 0)",
    tests: bombs,
  },
  {
    fault: "an upload over the quota is answered with 500",
    file: "src/http/core/domain-errors.ts",
    search:
      'if (error instanceof BundlesFull) return new DomainError("insufficient_storage", error.message);',
    replacement: "",
    tests: ["test/integration/gateway-fire-uploads.test.ts"],
  },
];
