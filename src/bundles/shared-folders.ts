// Folders, and single files, in a store that several machines share: what one of them has made, the others fetch when they need it.

/** Files that are elsewhere cannot be had now. The same may be tried again. */
export class FilesUnavailable extends Error {
  override readonly name: string = "FilesUnavailable";
}

/** What is to be removed because nothing needs it. */
export interface Unused {
  /** Whether a stored record references it. */
  readonly isNamed: (name: string) => Promise<boolean>;
  /** Only what was not stored, or touched, since; wall time in ms since 1970. */
  readonly beforeMs: number;
  readonly isPreview: boolean;
}

export interface SharedFolders {
  /** Whether something was stored under this name. */
  has(name: string): Promise<boolean>;
  /** The names below one, those that were stored last at the end. */
  names(below: string): Promise<readonly string[]>;
  /**
   * Stores a folder, or a file, as it is. It can be fetched by everyone when it resolves.
   *
   * @param name of the shape `bundles/…`, each part a file name
   * @param options.isFixed whether a name always means the same content: one that was stored lately is not stored again
   */
  store(name: string, path: string, options: { readonly isFixed: boolean }): Promise<void>;
  /**
   * Sees to it that what was last stored under a name is at a path: whole, checked against its hash and on disk when it
   * resolves. What is there already stays. Calls for one path share one fetch.
   *
   * @returns false when nothing is there, and nothing is stored under this name
   */
  fetch(name: string, path: string): Promise<boolean>;
  /** Removes what is stored under a name; nothing happens when there is nothing. */
  remove(name: string): Promise<void>;
  /** Removes, below a name, what is not named and was not stored since; a preview only counts. */
  removeUnused(below: string, request: Unused): Promise<{ readonly count: number; readonly bytes: number }>;
}
