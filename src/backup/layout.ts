// A backup is a zip, its files stored as they are:
//
//   backup.json    what it is: the format, the version that made it, whether the key is in it
//   blobs/ …       what rows of the database name, under the paths that it has in SVC_HOME
//   secret.key     only when it was asked for
//   troupe.db      the database
//   SHA256SUMS     a line for each entry before it, in their order: the last entry, so that its presence says that nothing
//                  is missing; `sha256sum --check` reads it
//
// A name is stored with "%" and "\" as %25 and %5C, because no zip can hold a backslash. A symlink's bytes are its
// target; a folder is an entry only when it is empty. Their lines in SHA256SUMS are comments, because sha256sum would
// follow the one and not read the other.

export const FORMAT = "troupe-backup-1";
export const ABOUT_FILE = "backup.json";
export const DATABASE_FILE = "troupe.db";
export const KEY_FILE = "secret.key";
export const SUMS_FILE = "SHA256SUMS";

/** What an entry is, as the file types of POSIX, with which zips say it. */
export const fileTypes = { file: 0o100000, link: 0o120000, folder: 0o040000 } as const;
export const FILE_TYPE_MASK = 0o170000;
export type EntryKind = keyof typeof fileTypes;

export interface About {
  readonly format: typeof FORMAT;
  readonly troupe_version: string;
  readonly created_at: string;
  readonly has_key: boolean;
}

export interface Entry {
  /** As in SVC_HOME. */
  readonly path: string;
  readonly kind: EntryKind;
  /** Hex, of its bytes. */
  readonly sha256: string;
}

/** The entry's line in SHA256SUMS. */
export function sumLine({ path, kind, sha256 }: Entry): string {
  return `${kind === "file" ? "" : "# "}${sha256}  ${storedName(path)}\n`;
}

export function storedName(path: string): string {
  return path.replace(/[%\\]/g, (one) => (one === "%" ? "%25" : "%5C"));
}

/** @returns the path that `storedName` was given */
export function pathOfName(name: string): string {
  return name.replaceAll("%5C", "\\").replaceAll("%25", "%");
}
