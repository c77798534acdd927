// What the programs of one database share, beside the tables of their work: which secret key they have.

import { sql } from "kysely";
import { type Database, StoreUnusable } from "../sql/database.ts";

/** By which the nodes of one machine know each other; made with the first program's key (`checkKey`). */
export async function nodeSecret({ read }: Database): Promise<string> {
  const [row] = await read<{ node_secret: string }>("SELECT node_secret FROM cluster", []);
  if (row === undefined) throw new StoreUnusable("The table `cluster` of the database is empty: restore it.");
  return row.node_secret;
}

/** @returns null for a database that no program has used: in all others there may be values that only a key decrypts */
export async function useOf({ read }: Database): Promise<{ readonly copiedFrom: string | null } | null> {
  const rows = await read<{ copiedFrom: string | null }>(
    'SELECT copied_from AS "copiedFrom" FROM cluster',
    [],
  );
  return rows[0] ?? null;
}

/**
 * Compares the keys of this program with the one that the database's secrets are encrypted with, which is noted by the first.
 *
 * @param ids of this program's keys, the one that encrypts first
 * @param options.newKey goes on with another key
 * @returns the id of the one that encrypts
 * @throws StoreUnusable when it has not the right one
 */
export async function checkKey(
  database: Database,
  ids: readonly string[],
  { newKey = false }: { readonly newKey?: boolean },
): Promise<string> {
  const [newest = ""] = ids;
  const { rows } = await database.transaction((db) =>
    sql<{ sealing_key_id: string }>`
      INSERT INTO cluster (id, sealing_key_id, node_secret)
      VALUES (1, ${newest}, translate(concat(gen_random_uuid(), gen_random_uuid()), '-', ''))
      ON CONFLICT (id) DO UPDATE
        SET sealing_key_id = CASE WHEN ${newKey ? 1 : 0} = 1 THEN excluded.sealing_key_id ELSE cluster.sealing_key_id END
      RETURNING sealing_key_id`.execute(db),
  );
  const known = rows[0]?.sealing_key_id ?? "";
  if (ids.includes(known)) return known;
  throw new StoreUnusable(OTHER_KEY);
}

export const OTHER_KEY =
  "The secrets in the database were encrypted with another secret key than this program has. Copy secret.key from the " +
  "SVC_HOME of a program that uses this database, or set SVC_SECRET_KEY to its key. If that key is lost, start once with " +
  "--new-key: each job's secrets have to be sent again.";
