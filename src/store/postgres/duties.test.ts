// One program at a time has a duty, and another one once its time is over.

import assert from "node:assert/strict";
import { test } from "node:test";
import { returnPostgres, takePostgres } from "../../../test/support/postgres.ts";
import { openPostgres } from "./database.ts";
import { takeDuty } from "./duties.ts";

const LONG_MS = 60 * 60 * 1_000;

test("a duty is one program's until its time is over, and each duty by itself", async () => {
  const url = await takePostgres();
  const [one, other] = [await openPostgres(url), await openPostgres(url)];
  try {
    const taken = await Promise.all(
      [one, other].map((database, i) => takeDuty(database, "retention", `${i}/1`, LONG_MS)),
    );
    assert.deepEqual(taken.toSorted(), [false, true]);
    const winner = `${taken.indexOf(true)}/1`;
    assert.equal(await takeDuty(one, "retention", winner, LONG_MS), true, "it is kept");
    assert.equal(await takeDuty(other, "retention", "late/1", LONG_MS), false);
    assert.equal(await takeDuty(other, "housekeeping", "late/1", LONG_MS), true);
    // Its time is over.
    assert.equal(await takeDuty(one, "retention", winner, -1), true);
    assert.equal(await takeDuty(other, "retention", "late/1", LONG_MS), true);
    assert.equal(await takeDuty(one, "retention", winner, LONG_MS), false);
  } finally {
    await one.close();
    await other.close();
    await returnPostgres(url);
  }
});
