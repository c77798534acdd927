// Faults of shared stores of files: bytes that are wrong, half there, gone, or shown to workers.

import type { Mutation } from "./mutation.ts";

const contract = "src/store/shared/blobs-everywhere.test.ts";
const bucket = "src/store/shared/s3-objects.test.ts";
const bundles = "src/bundles/shared-snapshots.test.ts";
const archives = "src/store/shared/archived-folders.test.ts";
const assets = "src/blueprints/shared-assets.test.ts";
const runs = "src/launch/preparation/shared-runs.test.ts";
const program = "test/integration/shared-files.test.ts";

export const filesMutations: readonly Mutation[] = [
  {
    fault: "a blob is given out though its bytes are not those of its hash",
    file: "src/store/shared/shared-blobs.ts",
    search: "read !== size || digest",
    replacement: "read !== size && digest",
    tests: [bucket],
  },
  {
    fault: "the end of a blob with other bytes is given out before they are checked",
    file: "src/store/shared/shared-blobs.ts",
    search: "if (held !== null) yield held;\n    held = chunk;",
    replacement: "yield chunk;\n    held = null;",
    tests: [bucket],
  },
  {
    fault: "a part of a blob of another size is given out",
    file: "src/store/shared/s3-objects.ts",
    search: "if (Number(total) === size && isAsked) return opened;",
    replacement: "if (isAsked) return opened;",
    tests: [contract],
  },
  {
    fault: "a file that changed while it was uploaded is kept under its former hash",
    file: "src/store/shared/s3-objects.ts",
    search: 'if (digest.digest("hex") !== content.sha256) throw changed();',
    replacement: "",
    tests: [bucket],
  },
  {
    fault: "a download that was cut off begins again at its first byte",
    file: "src/store/shared/s3-objects.ts",
    search: "await this.#open(key, size, at, last);",
    replacement: "await this.#open(key, size, first, last);",
    tests: [bucket],
  },
  {
    fault: "the parts of an upload that failed stay in the bucket",
    file: "src/store/shared/s3-objects.ts",
    search: 'method: "DELETE", key, query: { uploadId }',
    replacement: 'method: "HEAD", key',
    tests: [bucket],
  },
  {
    fault: "only the first page of a bucket is listed",
    file: "src/store/shared/s3-objects.ts",
    search: "if (token === null) return;",
    replacement: "return;",
    tests: [contract],
  },
  {
    fault: "a busy store is not asked again",
    file: "src/store/shared/s3-requests.ts",
    search: "response.status >= 500 || ",
    replacement: "",
    tests: [bucket],
  },
  {
    fault: "a request that the store refuses is sent again and again",
    file: "src/store/shared/s3-requests.ts",
    search: "if (!answer.mayPass || attempt",
    replacement: "if (attempt",
    tests: [bucket],
  },
  {
    fault: "a put does not look whether its object is still there",
    file: "src/store/shared/removals.ts",
    search:
      "if (found !== null && !marks.some((mark) => found.putAtMs - mark.putAtMs < MARK_MS_MAX)) return;",
    replacement: "if (!marks.some((mark) => (found?.putAtMs ?? 0) - mark.putAtMs < MARK_MS_MAX)) return;",
    tests: ["src/store/shared/removals.test.ts"],
  },
  {
    fault: "a put does not look for marks of removals",
    file: "src/store/shared/removals.ts",
    search: "found !== null && !marks.some(",
    replacement: "found !== null || !marks.some(",
    tests: ["src/store/shared/removals.test.ts"],
  },
  {
    fault: "a removal does not look again behind its mark",
    file: "src/store/shared/removals.ts",
    search: "const found = await this.#removable(key, sinceMs);",
    replacement: "const found = before;",
    tests: ["src/store/shared/removals.test.ts"],
  },
  {
    fault: "the folder of a mount that is missing is made",
    file: "src/store/shared/folder-objects.ts",
    search: "await mkdir(path, { mode: 0o700 })",
    replacement: "await mkdir(path, { mode: 0o700, recursive: true })",
    tests: [program],
  },
  {
    fault: "workers are given the credentials of the program's bucket",
    file: "src/app/core.ts",
    search: "runtimeEnv: workersEnv,",
    replacement: "runtimeEnv: process.env,",
    tests: [program],
  },
  {
    fault: "a bundle is registered before other machines can fetch it",
    file: "src/bundles/snapshots.ts",
    search: "if (kept.fetched === undefined) await this.#share(fingerprint);",
    replacement: "",
    tests: [bundles],
  },
  {
    fault: "several needs of one bundle fetch it several times",
    file: "src/bundles/snapshots.ts",
    search: "if (await exists(this.folder(fingerprint))) return;\n      await this.withTemporary",
    replacement: "await this.withTemporary",
    tests: [bundles],
  },
  {
    fault: "another bundle is taken for the one that was asked for",
    file: "src/bundles/snapshots.ts",
    search: "if (fetched !== fingerprint)",
    replacement: "if (fetched === null)",
    tests: [bundles],
  },
  {
    fault: "archives of bundles that nothing names stay for ever",
    file: "src/bundles/snapshots.ts",
    search: "await this.#options.shared?.removeUnused(SHARED, request);",
    replacement: "undefined as { count: number; bytes: number } | undefined;",
    tests: [bundles],
  },
  {
    fault: "the archive that was stored first under a name is fetched, not the last one",
    file: "src/store/shared/archived-folders.ts",
    search: "newest === null || found.putAtMs > newest.putAtMs",
    replacement: "newest === null || found.putAtMs < newest.putAtMs",
    tests: [archives, runs],
  },
  {
    fault: "an archive that is in use is removed",
    file: "src/store/shared/archived-folders.ts",
    search: "if (putAtMs >= beforeMs || (await isNamed(name))) continue;",
    replacement: "if (putAtMs >= beforeMs) continue;",
    tests: [archives, runs],
  },
  {
    fault: "a link of an archive leads out of it",
    file: "src/store/shared/folder-archive.ts",
    search: "if (!isRight)",
    replacement: "if (isRight === null)",
    tests: [archives],
  },
  {
    fault: "a link into a home leads into the home of the machine that stored it",
    file: "src/store/shared/folder-archive.ts",
    search: "const isOwn = isAbsolute(target) && isInside(home, target);",
    replacement: "const isOwn = false;",
    tests: [archives],
  },
  {
    fault: "what a killed fetch has left becomes part of the next one",
    file: "src/launch/preparation/shared-runs.ts",
    search: "await removeTree(fetched);",
    replacement: "",
    tests: [runs],
  },
  {
    fault: "a run's own payload is not shared",
    file: "src/launch/preparation/run-folders.ts",
    search: "await this.#parts.sharedRuns.share(runId);",
    replacement: "",
    tests: ["test/integration/two-homes.test.ts"],
  },
  {
    fault: "an older version of a resource is kept although the store has a newer one",
    file: "src/blueprints/shared-assets.ts",
    search: "stored.findLast(",
    replacement: "stored.find(",
    tests: [assets],
  },
  {
    fault: "a resource that a run may read is removed from the store",
    file: "src/blueprints/shared-assets.ts",
    search: "inUse.add(folderName(blueprintId));",
    replacement: "",
    tests: [assets],
  },
  {
    fault: "a run that another machine continues lacks its resources",
    file: "src/launch/preparation/shared-runs.ts",
    search: "await this.#ensureTargets(shared, join(fetched, name));",
    replacement: "{}",
    tests: [runs],
  },
  {
    fault: "a single file comes back as a folder",
    file: "src/store/shared/folder-archive.ts",
    search: "(await exists(alone)) ? alone : folder",
    replacement: "folder",
    tests: [archives],
  },
];
