// Files of removed jobs in the homes of several nodes. The first node that has removed its own notes the same for each
// other node, which removes them when it looks for garbage, in a transaction with the end of the first note: so each node has
// a note until its home is without the files, whatever becomes of the nodes meanwhile.

import { sql } from "kysely";
import type { FileGarbage, RetentionRecords } from "../../runs/retention-records.ts";
import type { Database } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";
import { AWAY_MS_MAX } from "./nodes.ts";

/**
 * For a node that is gone for good nothing more is noted: should it come back, it finds what nothing names.
 *
 * @param given.kinds what each node has of its own: blobs are not among it where all have one store
 */
export function nodeGarbage(
  database: Database,
  { nodeId, kinds }: { readonly nodeId: string; readonly kinds: readonly FileGarbage["kind"][] },
): Pick<RetentionRecords, "fileGarbage" | "forgetGarbage"> {
  return {
    async fileGarbage(limit, after) {
      const { rows } = await sql<FileGarbage>`
        SELECT kind, name FROM (
          SELECT kind, name FROM garbage WHERE kind <> 'job'
          UNION SELECT kind, name FROM node_garbage WHERE node_id = ${nodeId}
        ) AS found
        WHERE (kind, name) > (${after?.kind ?? ""}, ${after?.name ?? ""})
          AND NOT EXISTS (SELECT FROM artifacts WHERE artifacts.sha256 = found.name)
        ORDER BY kind, name LIMIT ${limit}`.execute(database.kysely);
      return rows;
    },

    async forgetGarbage(garbage) {
      if (garbage.length === 0) return;
      const names = garbage.map(({ name }) => name);
      const kindsOf = garbage.map(({ kind }) => kind);
      await database.transaction((db) =>
        sql`
          WITH removed AS (SELECT * FROM unnest(${kindsOf}::text[], ${names}::text[]) AS removed (kind, name)),
            own AS (DELETE FROM node_garbage USING removed WHERE node_garbage.node_id = ${nodeId}
              AND node_garbage.kind = removed.kind AND node_garbage.name = removed.name),
            first AS (DELETE FROM garbage USING removed
              WHERE garbage.kind = removed.kind AND garbage.name = removed.name RETURNING garbage.kind, garbage.name)
          INSERT INTO node_garbage (node_id, kind, name)
            SELECT nodes.node_id, first.kind, first.name FROM first CROSS JOIN nodes
              WHERE nodes.node_id <> ${nodeId} AND first.kind = ANY (${kinds}::text[])
                AND nodes.heartbeat_at > ${sql.raw(NOW)} - ${AWAY_MS_MAX}::bigint
          ON CONFLICT DO NOTHING`.execute(db),
      );
    },
  };
}
