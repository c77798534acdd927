// Which programs may use a database whose schema is newer than theirs.
//
// - A migration only adds, and admits older programs; what is no longer used goes one version later. One that older programs
//   could not work with names itself, and the first version that has it, in schema_admits.

import { programVersion } from "../../lib/version.ts";
import { StoreUnusable } from "./database.ts";

/** The row of schema_admits. */
export interface Admits {
  /** The newest migration that a program must know. */
  readonly oldest: string;
  /** The first version that knows it. */
  readonly version: string;
}

/**
 * @param database as an operator knows it
 * @param known this program's migrations, in their order
 * @throws StoreUnusable when only newer programs may use the database
 */
export function checkAdmitted(database: string, admits: Admits | undefined, known: readonly string[]): void {
  if (admits === undefined || admits.oldest <= (known.at(-1) ?? "")) return;
  const { oldest, version } = admits;
  throw new StoreUnusable(
    `The database ${database} is for Troupe ${version} and newer (it has the migration ${oldest}), and this is Troupe ` +
      `${programVersion()}. Start version ${version} or a newer one.`,
  );
}
