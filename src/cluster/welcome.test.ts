// The token with which a program joins, and what it is told: whatever is changed on the way is not accepted, and what the
// database keeps opens nothing.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { anyString, fc } from "../../test/support/fast-check.ts";
import { type JoinToken, makeToken, parseToken, tokenText, verifierOf } from "./join-token.ts";
import { askForWelcome, isProven, openWelcome, sealWelcome, type Welcome } from "./welcome.ts";
import { NotWelcome, welcome } from "./welcomes.ts";

const KEY_ID = "ab".repeat(32);
const WELCOME: Welcome = {
  databaseUrl: "postgres://troupe:secret@db/troupe",
  keys: ["k1", "k2"],
  name: "n",
  labels: { zone: "a" },
};

const token = makeToken("node_01abc", KEY_ID);
const ownKey = randomBytes(32);
const verifier = verifierOf(token);
const request = askForWelcome(token, ownKey);

/** The bytes with one of them changed. */
function changed(bytes: Uint8Array, at: number, by: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at % copy.length]! ^= by;
  return copy;
}
const place = fc.nat({ max: 10_000 });
const difference = fc.integer({ min: 1, max: 255 });

describe("a token", () => {
  test("is read as it was made", () => {
    assert.deepEqual(parseToken(tokenText(token)), token);
    assert.equal(token.keyId, KEY_ID.slice(0, 32));
  });

  test("is one text alone: any other is none, or another token", () => {
    const text = tokenText(token);
    fc.assert(
      fc.property(place, anyString({ minLength: 1, maxLength: 1 }), (at, char) => {
        const i = at % text.length;
        const other = `${text.slice(0, i)}${char}${text.slice(i + 1)}`;
        const parsed = parseToken(other);
        if (other !== text && parsed !== null) assert.notDeepEqual(parsed, token);
      }),
    );
    for (const wrong of ["", "x", `${text}x`, ` ${text}`, `${text}\n`, text.replace("node_", "")])
      assert.equal(parseToken(wrong), null);
  });
});

describe("a welcome", () => {
  test("is read by the program that has asked for it", () => {
    assert.ok(isProven(request, verifier));
    assert.deepEqual(openWelcome(token, ownKey, sealWelcome(request, verifier, WELCOME)), WELCOME);
  });

  test("is not given for a request that was changed anywhere", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("joinerKey" as const, "proof" as const),
        place,
        difference,
        (part, at, by) => !isProven({ ...request, [part]: changed(request[part], at, by) }, verifier),
      ),
    );
    assert.ok(!isProven({ ...request, nodeId: "node_01abd" }, verifier));
    for (const proof of [new Uint8Array(), request.proof.subarray(1)])
      assert.ok(!isProven({ ...request, proof }, verifier));
  });

  test("is not read when it was changed anywhere, or cut off", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("clusterKey" as const, "sealed" as const),
        place,
        difference,
        (part, at, by) => {
          const answer = sealWelcome(request, verifier, WELCOME);
          return openWelcome(token, ownKey, { ...answer, [part]: changed(answer[part], at, by) }) === null;
        },
      ),
    );
    const answer = sealWelcome(request, verifier, WELCOME);
    for (const sealed of [new Uint8Array(), answer.sealed.subarray(1), answer.sealed.subarray(0, -1)])
      assert.equal(openWelcome(token, ownKey, { ...answer, sealed }), null);
    assert.equal(openWelcome(token, ownKey, { ...answer, clusterKey: new Uint8Array(32) }), null);
  });

  test("is not read with another token, by another program, or with what the database keeps", () => {
    const answer = sealWelcome(request, verifier, WELCOME);
    assert.equal(openWelcome(makeToken(token.nodeId, KEY_ID), ownKey, answer), null);
    assert.equal(openWelcome(token, randomBytes(32), answer), null);
    // One who reads the database can ask, and cannot read the answer.
    const thief: JoinToken = { ...token, secret: verifier };
    assert.equal(openWelcome(thief, ownKey, answer), null);
    assert.ok(!Buffer.from(answer.sealed).includes("postgres"));
  });
});

describe("a node", () => {
  const shared = { databaseUrl: WELCOME.databaseUrl, keys: WELCOME.keys };
  /** Expects the token's node. */
  const expecting = () => {
    const asked = { failures: 0, joiner: null as string | null };
    const { name, labels } = WELCOME;
    const expected = {
      find: async (nodeId: string) =>
        nodeId === token.nodeId ? { name, labels, verifier: verifier.toString("hex") } : null,
      failed: async () => void asked.failures++,
      use: async (_nodeId: string, _verifier: string, joiner: string) => {
        asked.joiner ??= joiner;
        return asked.joiner === joiner;
      },
    };
    return { asked, expected };
  };

  test("welcomes the program with the token, again if it asks again, and no other", async () => {
    const { asked, expected } = expecting();
    for (let n = 0; n < 2; n++) {
      const answer = await welcome({ expected, shared }, request);
      assert.deepEqual(openWelcome(token, ownKey, answer), WELCOME);
    }
    const other = askForWelcome(token, randomBytes(32));
    await assert.rejects(welcome({ expected, shared }, other), NotWelcome);
    assert.equal(asked.failures, 0);
  });

  test("counts who asks without the token, and tells nothing to it", async () => {
    const { asked, expected } = expecting();
    for (const wrong of [
      askForWelcome(makeToken(token.nodeId, KEY_ID), ownKey),
      { ...request, joinerKey: new Uint8Array() },
      { ...request, proof: new Uint8Array(1_000) },
    ])
      await assert.rejects(welcome({ expected, shared }, wrong), NotWelcome);
    assert.deepEqual([asked.failures, asked.joiner], [3, null]);
    await assert.rejects(welcome({ expected, shared }, { ...request, nodeId: "node_2" }), NotWelcome);
    assert.equal(asked.failures, 3);
  });
});
