// Which bundles are registered: a port, implemented in src/store.

export interface BundleRecord {
  readonly bundleId: string;
  /** SHA-256 over the bundle's files; names the snapshot that later submissions use. */
  readonly fingerprint: string;
  readonly graphId: string;
  /** For people: metadata.name, job_name or graph_id of the manifest. */
  readonly name: string;
  readonly source: BundleOrigin;
  /** Bytes of all files of the snapshot. */
  readonly sizeBytes: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export type BundleOrigin =
  /** `path` is absolute, as the caller named it: a reload follows a symlink that has been moved. */
  { readonly kind: "folder"; readonly path: string } | { readonly kind: "zip" };

export interface BundleRecords {
  /** Writes the record, in place of one of the same id (whose time of creation stays). On disk when it resolves. */
  save(record: BundleRecord): Promise<void>;
  get(bundleId: string): Promise<BundleRecord | null>;
  /** Deletes the record, unless a job that is not deleted was made from the bundle. On disk when it resolves. */
  deleteUnused(bundleId: string): Promise<"deleted" | "in_use" | "missing">;
  /** In the order of their ids, those after `after`; null begins with the first. */
  list(page: { readonly limit: number; readonly after: string | null }): Promise<readonly BundleRecord[]>;
  /** Whether a stored bundle, job, run or blueprint references the snapshot. */
  isSnapshotNamed(fingerprint: string): Promise<boolean>;
}
