// What a bundle may consist of, whether it comes from a folder or from a zip.
//
// - Left out: everything named .git or __pycache__; and at the top, names that begin with a dot, node_modules
//   and __MACOSX. (node_modules further down is kept: it may be what a worker needs.)
// - Empty folders are left out. `payloads` is always there.
// - Only a file's name, bytes and whether it is executable count; a folder and a zip of it are the same bundle.

export const MANIFEST_FILE = "manifest.json";
export const CONFIG_FILES = ["config/default.json", "config/overwrite.json"] as const;
export const PAYLOADS_FOLDER = "payloads";
/** In payloads/: programs that are asked before a run, with the endings of those that can be started. */
export const VALIDATORS_FOLDER = "validators";
export const validatorKinds = [".py", ".mjs", ".sh"] as const;

export const FINGERPRINT_PATTERN = /^[0-9a-f]{64}$/;

export const bundleLimits = {
  /** Files and folders together, as a zip lists them. */
  entriesMax: 20_000,
  /** Folders that the files lie in, whether or not a zip lists them. */
  foldersMax: 20_000,
  /** Times SVC_BUNDLE_MAX_BYTES that a bundle's files may have together. */
  expansionMax: 20,
  /** Times its packed size that an entry of a zip, and all of them together, may have beyond the first bytes. */
  inflationMax: 100,
  inflationFreeBytes: 10 * 1024 * 1024,
  /** Bytes of a name inside the bundle, and of each of its parts: what file systems take. */
  pathBytesMax: 1_024,
  nameBytesMax: 255,
  /** Bytes of manifest.json and of each configuration file. */
  jsonBytesMax: 16 * 1024 * 1024,
} as const;

/** A file of a bundle, named by a relative path with `/`, without `.` and `..`. */
export interface BundleFile {
  readonly path: string;
  readonly isExecutable: boolean;
  readonly sizeBytes: number;
}

/** @param depth 0 for a name at the top */
export function isLeftOut(name: string, depth: number): boolean {
  if (name === ".git" || name === "__pycache__") return true;
  return depth === 0 && (name.startsWith(".") || name === "node_modules" || name === "__MACOSX");
}

/** Whether a part of this path is left out. */
export function isPathLeftOut(path: string): boolean {
  const end = path.indexOf("/");
  if (isLeftOut(end < 0 ? path : path.slice(0, end), 0)) return true;
  return /\/(?:\.git|__pycache__)(?:\/|$)/.test(path);
}

/** Says why a name cannot be that of a file; null when it can. Expects a relative path with `/`. */
export function nameProblem(path: string): string | null {
  if (/\p{Cc}|\p{Cs}|\ufffd/u.test(path)) return "holds characters that no file name should have";
  if (Buffer.byteLength(path) > bundleLimits.pathBytesMax)
    return `is longer than ${bundleLimits.pathBytesMax} bytes`;
  const isLong = path.split("/").some((name) => Buffer.byteLength(name) > bundleLimits.nameBytesMax);
  return isLong ? `has a part that is longer than ${bundleLimits.nameBytesMax} bytes` : null;
}

export function tooManyEntries(): string {
  return `the bundle holds more than ${bundleLimits.entriesMax} files and folders`;
}

export function tooManyFolders(): string {
  return `the bundle's files lie in more than ${bundleLimits.foldersMax} folders`;
}

export function tooLarge(bytesMax: number): string {
  return `the bundle's files are larger than ${bytesMax} bytes together (${bundleLimits.expansionMax} times SVC_BUNDLE_MAX_BYTES)`;
}
