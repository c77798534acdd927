// The tables nodes and expected_nodes as requests change them; only a database that several programs share has them.

import { sql, type Transaction } from "kysely";
import type { NodeWrites } from "../../cluster/node-writes.ts";
import { NOW } from "./database-clock.ts";
import type { Schema } from "./schema.generated.ts";

const now = sql.raw(NOW);

export function nodeWrites(db: Transaction<Schema>): NodeWrites {
  return {
    async isNamed(name) {
      const { rows } =
        await sql`SELECT FROM nodes WHERE name = ${name} AND removed_at IS NULL LIMIT 1`.execute(db);
      return rows.length > 0;
    },

    async expect(nodeId, { name, labels, verifier }, forMs) {
      await sql`DELETE FROM expected_nodes WHERE expires_at <= ${now}`.execute(db);
      const { rows } = await sql<{ expires_at: number }>`
        INSERT INTO expected_nodes (node_id, name, labels_json, verifier, expires_at)
        VALUES (${nodeId}, ${name}, ${JSON.stringify(labels)}, ${verifier}, ${now} + ${forMs}::bigint)
        ON CONFLICT (name) DO UPDATE SET node_id = excluded.node_id, labels_json = excluded.labels_json,
          verifier = excluded.verifier, expires_at = excluded.expires_at, attempts = 0, joiner = NULL
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
