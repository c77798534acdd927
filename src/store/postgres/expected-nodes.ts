// The nodes that may still join, by the database's clock.

import { sql } from "kysely";
import type { ExpectedNode, ExpectedNodes } from "../../cluster/node-writes.ts";
import type { Database } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";

/** Of requests without the token, until it is void. */
const FAILED_MAX = 10;

const IS_GOOD = `expires_at > ${NOW} AND attempts < ${FAILED_MAX}`;

export function expectedNodes({ read, transaction }: Pick<Database, "read" | "transaction">): ExpectedNodes {
  return {
    async find(nodeId) {
      const [row] = await read<{ name: string; labels_json: string; verifier: string }>(
        `SELECT name, labels_json, verifier FROM expected_nodes WHERE node_id = $1 AND ${IS_GOOD}`,
        [nodeId],
      );
      if (row === undefined) return null;
      const { name, labels_json, verifier } = row;
      return { name, verifier, labels: JSON.parse(labels_json) as ExpectedNode["labels"] };
    },

    async failed(nodeId) {
      await transaction((db) =>
        sql`UPDATE expected_nodes SET attempts = attempts + 1 WHERE node_id = ${nodeId}`.execute(db),
      );
    },

    async use(nodeId, verifier, joiner) {
      const { rows } = await transaction((db) =>
        sql`UPDATE expected_nodes SET joiner = ${joiner}
          WHERE node_id = ${nodeId} AND ${sql.raw(IS_GOOD)}
            AND verifier = ${verifier} AND (joiner IS NULL OR joiner = ${joiner})
          RETURNING node_id`.execute(db),
      );
      return rows.length > 0;
    },
  };
}
