// The table duties: what one program at a time does for all that share the database. A duty is taken for a while, by the
// database's clock; nobody else has it before that is over, whatever becomes of the program.

import { sql } from "kysely";
import type { Database } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";

const now = sql.raw(NOW);

/**
 * Takes a duty, or keeps it.
 *
 * @param owner the program's name
 * @param forMs from now on
 * @returns false while another program has it
 */
export async function takeDuty(
  { transaction }: Database,
  name: string,
  owner: string,
  forMs: number,
): Promise<boolean> {
  const { rows } = await transaction((db) =>
    sql<{ name: string }>`
      INSERT INTO duties AS duty (name, owner, until) VALUES (${name}, ${owner}, ${now} + ${forMs}::bigint)
      ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
        WHERE duty.owner = excluded.owner OR duty.until <= ${now}
      RETURNING name`.execute(db),
  );
  return rows.length > 0;
}
