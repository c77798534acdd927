// The tables nodes and expected_nodes as requests change them; only a database that several programs share has them.

import { sql, type Transaction } from "kysely";
import type { NodeWrites } from "../../cluster/node-writes.ts";
import type { Schema } from "./schema.generated.ts";

/** Milliseconds since 1970, as the database has them now. */
const now = sql.raw("(extract(epoch FROM clock_timestamp()) * 1000)::bigint");

export function nodeWrites(db: Transaction<Schema>): NodeWrites {
  return {
    async idFor(name, newId) {
      const { rows } = await sql<{ node_id: string; is_free: boolean }>`
        SELECT node_id, removed_at IS NOT NULL AS is_free FROM nodes WHERE name = ${name}
        ORDER BY removed_at DESC NULLS FIRST`.execute(db);
      const [node] = rows;
      if (node !== undefined) return node.is_free ? node.node_id : null;
      const expected = await sql<{ node_id: string }>`
        SELECT node_id FROM expected_nodes WHERE name = ${name}`.execute(db);
      return expected.rows[0]?.node_id ?? `node_${newId()}`;
    },

    async expect(nodeId, { name, labels, verifier }, forMs) {
      await sql`DELETE FROM expected_nodes WHERE expires_at <= ${now} OR name = ${name} OR node_id = ${nodeId}`.execute(
        db,
      );
      await sql`UPDATE nodes SET removed_at = NULL WHERE node_id = ${nodeId}`.execute(db);
      const { rows } = await sql<{ expires_at: number }>`
        INSERT INTO expected_nodes (node_id, name, labels_json, verifier, expires_at)
        VALUES (${nodeId}, ${name}, ${JSON.stringify(labels)}, ${verifier}, ${now} + ${forMs}::bigint)
        RETURNING expires_at`.execute(db);
      return rows[0]!.expires_at;
    },

    async end(nodeId) {
      await sql`UPDATE nodes SET leaves = 1, status = CASE WHEN lease_until <= ${now} THEN 'left' ELSE status END
        WHERE node_id = ${nodeId}`.execute(db);
    },

    async remove(nodeId) {
      // With drain_until, others take its jobs over as soon as its lease is over, whatever their recovery mode.
      await sql`UPDATE nodes SET status = 'left', removed_at = coalesce(removed_at, ${now}),
          drain_until = coalesce(drain_until, ${now})
        WHERE node_id = ${nodeId}`.execute(db);
      await sql`DELETE FROM expected_nodes WHERE node_id = ${nodeId}`.execute(db);
    },
  };
}
