// Which node has a volume, on a real PostgreSQL.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inPostgres, returnPostgres, takePostgres } from "../../../test/support/postgres.ts";
import { NOW } from "../sql/database-clock.ts";
import { openPostgres } from "./database.ts";
import { AWAY_MS_MAX, forgetNodes, PostgresNodes } from "./nodes.ts";
import { volumeOwners } from "./volumes.ts";

const said = { address: null, version: "1.0.0", labels: {}, pools: {}, totals: {} };

test("a volume is the first node's that asks for it, until it gives it up, is removed or is forgotten", async () => {
  const url = await takePostgres();
  const database = await openPostgres(url);
  const nodes = new PostgresNodes(database, 10_000, () => null);
  try {
    for (const nodeId of ["a", "b"])
      await nodes.register({ ...said, nodeId, owner: `${nodeId}/1`, name: `node ${nodeId}` }, 60_000, []);
    const [ofA, ofB] = [volumeOwners(database, "a"), volumeOwners(database, "b")];
    const both = await Promise.all([ofA.claim("data"), ofB.claim("data")]);
    assert.equal(both.filter((other) => other === null).length, 1, both.join());
    const [winner, loser] = both[0] === null ? [ofA, ofB] : [ofB, ofA];
    assert.equal(await loser.claim("data"), both[0] === null ? "node a" : "node b");
    assert.equal(await winner.claim("data"), null, "again");
    await loser.giveUp("data");
    assert.notEqual(await loser.claim("data"), null, "it was not its own to give up");
    await winner.giveUp("data");
    assert.equal(await ofA.claim("data"), null);

    await inPostgres(url, "UPDATE nodes SET removed_at = 1 WHERE node_id = 'a'");
    assert.equal(await ofB.claim("data"), null, "a was removed");
    await inPostgres(url, `UPDATE nodes SET lease_until = ${NOW} - ${AWAY_MS_MAX + 1} WHERE node_id = 'b'`);
    await forgetNodes(database);
    await nodes.register({ ...said, nodeId: "c", owner: "c/1", name: "c" }, 60_000, []);
    assert.equal(await volumeOwners(database, "c").claim("data"), null, "b is gone for good");
  } finally {
    await nodes.close();
    await database.close();
    await returnPostgres(url);
  }
});
