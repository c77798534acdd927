// Sessions at exact moments: a clock that the test sets, and the records of both kinds of database.

import assert from "node:assert/strict";
import { contractOnEach } from "../../test/support/databases.ts";
import { systemClock, systemRandomness } from "../app/clock.ts";
import type { GatewayRecords } from "../launch/records.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { type SessionParts, Sessions } from "./sessions.ts";

const HOUR_MS = 3_600_000;
const key = Buffer.alloc(32, 1);

class World {
  nowMs = 1_000_000_000_000;
  readonly records: GatewayRecords;

  constructor(records: GatewayRecords) {
    this.records = records;
  }

  gateway(more: Partial<SessionParts> = {}): Sessions {
    const { records } = this;
    return new Sessions({
      records,
      key,
      apiTokens: ["a", "b"],
      nowMs: () => this.nowMs,
      newId: systemRandomness.id,
      ...more,
    });
  }

  share(sessions: Sessions, runId: string, days = 7) {
    return this.records.write(sessions.prepareShare(runId, days));
  }

  link(sessions: Sessions) {
    return this.records.write(sessions.prepareLink());
  }

  async shown(): Promise<readonly string[]> {
    const page = { kind: null, runId: null, nowMs: this.nowMs, limit: 100, after: null };
    return (await this.records.sessions.list(page)).rows.map((one) => one.sessionId);
  }
}

contractOnEach(
  "sessions of browsers",
  async ({ database }) => new World(sqlGatewayRecords(database, systemClock.soon)),
  (test) => {
    test("a session is found by both of its secrets; with the cookie alone that is known; nothing of them is stored", async (world) => {
      const sessions = world.gateway();
      const { secret, key: second, session } = await sessions.openForToken();
      const found = await sessions.find({ secret, key: second });
      assert.equal(found.kind === "session" && found.hasKey, true);
      const alone = await sessions.find({ secret, key: null });
      assert.equal(alone.kind === "session" && !alone.hasKey, true);
      for (const wrong of [
        { secret, key: "x" },
        { secret, key: secret },
        { secret: second, key: second },
        { secret: "", key: second },
        { secret: session.secretHash, key: session.keyHash },
        { secret: session.sessionId, key: null },
      ]) {
        assert.equal((await sessions.find(wrong)).kind, "none");
      }
      const stored = JSON.stringify(await world.records.sessions.ofSecret(session.secretHash));
      assert.ok(!stored.includes(secret) && !stored.includes(second));
    });

    test("it lasts twelve hours from its last use, at any gateway and after a restart", async (world) => {
      const { secret, key: second } = await world.gateway().openForToken();
      for (let use = 0; use < 3; use++) {
        world.nowMs += 12 * HOUR_MS - 1;
        assert.equal((await world.gateway().find({ secret, key: second })).kind, "session", `use ${use}`);
      }
      world.nowMs += 12 * HOUR_MS;
      assert.equal((await world.gateway().find({ secret, key: second })).kind, "none");
    });

    test("one that has ended is refused at once here, and within five seconds elsewhere; its row is gone", async (world) => {
      const [here, elsewhere] = [world.gateway(), world.gateway()];
      const { secret, key: second, session } = await here.openForToken();
      assert.equal((await elsewhere.find({ secret, key: second })).kind, "session");
      assert.equal(await here.end(session.sessionId), true);
      assert.equal((await here.find({ secret, key: second })).kind, "none");
      world.nowMs += 5_000;
      assert.equal((await elsewhere.find({ secret, key: second })).kind, "none");
      assert.equal(await here.end(session.sessionId), false);
      assert.deepEqual(await world.shown(), []);
    });

    test("other tokens end all of them, in whatever order they stand; without tokens there are none", async (world) => {
      const { secret, key: second } = await world.gateway().openForToken();
      const shown = { secret, key: second };
      assert.equal((await world.gateway({ apiTokens: ["b", "a"] }).find(shown)).kind, "session");
      assert.equal((await world.gateway({ apiTokens: ["a"] }).find(shown)).kind, "none");
      assert.equal((await world.gateway({ apiTokens: ["a,b"] }).find(shown)).kind, "none");
      const open = world.gateway({ apiTokens: [] });
      assert.equal((await open.find(shown)).kind, "none");
      assert.throws(() => open.prepareLink(), /without SVC_API_TOKEN/);
    });

    test("a link opens one session, of two browsers at one moment too, and for a minute", async (world) => {
      const sessions = world.gateway();
      const { secret } = await world.link(sessions);
      const both = await Promise.all([sessions.openWithLink(secret), world.gateway().openWithLink(secret)]);
      assert.equal(both.filter((one) => one !== null).length, 1);
      assert.equal(await sessions.openWithLink(secret), null);
      const late = await world.link(sessions);
      world.nowMs += 60_000;
      assert.equal(await sessions.openWithLink(late.secret), null);
      assert.equal(await sessions.openWithShare(late.secret), null);
    });

    test("a share opens sessions of its run, for its days; they end with it", async (world) => {
      const sessions = world.gateway();
      const { secret, session } = await world.share(sessions, "run_1", 2);
      assert.equal(await sessions.openWithLink(secret), null);
      assert.equal((await sessions.find({ secret, key: null })).kind, "none");
      const opened = await Promise.all([sessions.openWithShare(secret), sessions.openWithShare(secret)]);
      for (const one of opened) assert.equal(one?.session.runId, "run_1");
      const other = await sessions.openForToken();
      const [first, second] = opened as [NonNullable<(typeof opened)[0]>, NonNullable<(typeof opened)[0]>];
      await sessions.find(second);
      await sessions.end(session.sessionId);
      assert.equal((await sessions.find(first)).kind, "none");
      assert.equal((await sessions.find(second)).kind, "none");
      assert.equal((await sessions.find(other)).kind, "session");
      const again = await world.share(sessions, "run_1", 2);
      world.nowMs += 48 * HOUR_MS;
      assert.equal(await sessions.openWithShare(again.secret), null);
    });

    test("what is over is not listed, and is removed when somebody signs in", async (world) => {
      const sessions = world.gateway();
      const { session: old } = await world.link(sessions);
      const { session: share } = await world.share(sessions, "run_1");
      assert.deepEqual(await world.shown(), [share.sessionId, old.sessionId].sort().reverse());
      world.nowMs += 60_000;
      assert.deepEqual(await world.shown(), [share.sessionId]);
      assert.notEqual(await world.records.sessions.ofSecret(old.secretHash), null);
      await sessions.openForToken();
      assert.equal(await world.records.sessions.ofSecret(old.secretHash), null);
    });

    test("a session that cannot be prolonged is still good", async (world) => {
      const { secret, key: second } = await world.gateway().openForToken();
      world.nowMs += HOUR_MS;
      const full = world.gateway({
        records: { sessions: world.records.sessions, write: () => Promise.reject(new Error("disk full")) },
      });
      assert.equal((await full.find({ secret, key: second })).kind, "session");
      assert.equal((await full.find({ secret, key: second })).kind, "session");
    });
  },
);
