// Which node has a volume. What a node had that was removed, or is forgotten, becomes the node's that names it next.

import { sql } from "kysely";
import type { VolumeOwners } from "../../execution/volumes.ts";
import type { Database } from "../sql/database.ts";

export function volumeOwners({ transaction }: Pick<Database, "transaction">, nodeId: string): VolumeOwners {
  return {
    claim: (name) =>
      transaction(async (db) => {
        const claimed = await sql`
          INSERT INTO volumes (name, node_id) VALUES (${name}, ${nodeId})
          ON CONFLICT (name) DO UPDATE SET node_id = excluded.node_id
            WHERE volumes.node_id = excluded.node_id
              OR EXISTS (SELECT FROM nodes WHERE nodes.node_id = volumes.node_id AND removed_at IS NOT NULL)
          RETURNING name`.execute(db);
        if (claimed.rows.length > 0) return null;
        const { rows } = await sql<{ readonly name: string }>`
          SELECT nodes.name FROM volumes JOIN nodes USING (node_id) WHERE volumes.name = ${name}`.execute(db);
        return rows[0]?.name ?? "another one";
      }),

    giveUp: (name) =>
      transaction(async (db) => {
        await sql`DELETE FROM volumes WHERE name = ${name} AND node_id = ${nodeId}`.execute(db);
      }),
  };
}
