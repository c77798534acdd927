// Idempotency-Key: one effect and one answer, also when many ask at once, the process dies, or a day has passed.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Gate, restarted, startCore, type TestCore } from "../../../test/support/core.ts";
import { fc } from "../../../test/support/fast-check.ts";
import type { JsonValue } from "../../engine/json.ts";
import type { GatewayWrites } from "../../launch/records.ts";
import {
  type Answer,
  canonicalJson,
  IDEMPOTENCY_MS,
  type IdempotentRequest,
  IdempotentRequests,
} from "./idempotency.ts";
import { Problem } from "./problem.ts";

const request: IdempotentRequest = {
  principal: "anonymous",
  method: "POST",
  path: "/api/v1/jobs",
  key: "key-1",
  content: { a: 1 },
};

const code = (expected: string) => (error: unknown) => error instanceof Problem && error.code === expected;

function idempotency({ records, clock }: TestCore): IdempotentRequests {
  return new IdempotentRequests({ records, nowMs: () => clock.nowMs() });
}

/** An effect that is counted, and leaves a record of its own in the store. */
function counted() {
  let effects = 0;
  const effect = async (writes: GatewayWrites): Promise<Answer> => {
    effects++;
    const trace = {
      scope: "effect",
      requestHash: "",
      status: 0,
      headersJson: "{}",
      body: "",
      createdAtMs: 0,
    };
    await writes.saveIdempotency({ ...trace, key: String(effects) }, 0);
    return { status: 201, headers: { location: `/things/${effects}` }, body: `{"n":${effects}}` };
  };
  return { prepare: async () => effect, count: () => effects };
}

describe("a key that is used again", () => {
  test("gets the first answer, whole, without anything being checked or done again", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare, count } = counted();
    const first = await requests.answer(request, prepare);
    const again = await requests.answer(request, () => assert.fail("not prepared again"));
    assert.deepEqual(again, { answer: first.answer, isReplay: true });
    assert.deepEqual([first.isReplay, count()], [false, 1]);
  });

  test("50 times at once: one effect, 50 equal answers", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare, count } = counted();
    const answers = await Promise.all(Array.from({ length: 50 }, () => requests.answer(request, prepare)));
    assert.equal(count(), 1);
    assert.equal(answers.filter(({ isReplay }) => !isReplay).length, 1);
    assert.equal(new Set(answers.map(({ answer }) => JSON.stringify(answer))).size, 1);
  });

  test("for something else is refused, one after the other and at once", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare, count } = counted();
    const bodies = [{ a: 1 }, { a: 2 }, { a: "1" }, { a: 1, b: null }];
    const answers = await Promise.allSettled(
      bodies.map((content) => requests.answer({ ...request, content }, prepare)),
    );
    assert.equal(count(), 1);
    for (const one of answers.slice(1)) {
      assert.ok(one.status === "rejected" && code("idempotency_key_reused")(one.reason));
    }
  });

  test("with the same members in another order is the same request", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare } = counted();
    await requests.answer({ ...request, content: { a: 1, b: { c: [1, { d: 2, e: 3 }] } } }, prepare);
    const content = { b: { c: [1, { e: 3, d: 2 }] }, a: 1 };
    assert.equal((await requests.answer({ ...request, content }, prepare)).isReplay, true);
  });

  for (const other of [{ principal: "token-1" }, { method: "PUT" }, { path: "/api/v1/jobs/x/runs" }]) {
    test(`belongs to its principal, method and path: another ${Object.keys(other)[0]} is another key`, async () => {
      await using core = await startCore();
      const requests = idempotency(core);
      const { prepare, count } = counted();
      await requests.answer(request, prepare);
      const { isReplay } = await requests.answer({ ...request, ...other, content: { a: 2 } }, prepare);
      assert.deepEqual([isReplay, count()], [false, 2]);
    });
  }

  test("in the next process gets the answer of the one before", async () => {
    await using first = await startCore();
    const { prepare, count } = counted();
    const { answer } = await idempotency(first).answer(request, prepare);
    await using core = await restarted(first);
    assert.deepEqual(await idempotency(core).answer(request, prepare), { answer, isReplay: true });
    assert.equal(count(), 1);
  });

  test("a day later is fresh, whatever it asks for, and is good for a day again", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare, count } = counted();
    await requests.answer(request, prepare);
    core.clock.aheadMs = IDEMPOTENCY_MS - 60_000;
    assert.equal((await requests.answer(request, prepare)).isReplay, true);
    core.clock.aheadMs = IDEMPOTENCY_MS + 60_000;
    const later = { ...request, content: { a: 2 } };
    assert.equal((await requests.answer(later, prepare)).isReplay, false);
    core.clock.aheadMs = 2 * IDEMPOTENCY_MS;
    assert.equal((await requests.answer(later, prepare)).isReplay, true);
    assert.equal(count(), 2);
  });
});

describe("two programs that share the records", () => {
  test("and are sent one key at the same moment have one effect, and give one answer", async () => {
    await using core = await startCore();
    const { prepare, count } = counted();
    const held = new Gate();
    const slow = idempotency(core).answer(request, async () => {
      await held.pass();
      return prepare();
    });
    await held.reached;
    const { answer } = await idempotency(core).answer(request, prepare);
    held.open();
    assert.deepEqual(await slow, { answer, isReplay: true });
    const effects = core.database.connection.prepare("SELECT key FROM idempotency WHERE scope = 'effect'");
    assert.deepEqual(
      effects.all().map(({ key }) => key),
      ["1"],
    );
    assert.equal(count(), 2, "the second effect was undone");
  });

  test("and are sent one key give the answer of the first where the second is refused because of it", async () => {
    await using core = await startCore();
    const { prepare } = counted();
    const held = new Gate();
    const slow = idempotency(core).answer(request, async () => {
      await held.pass();
      throw new Error("the first has taken the last port");
    });
    await held.reached;
    const { answer } = await idempotency(core).answer(request, prepare);
    held.open();
    assert.deepEqual(await slow, { answer, isReplay: true });
  });

  test("and are sent one key for different requests refuse the second", async () => {
    await using core = await startCore();
    const { prepare } = counted();
    const held = new Gate();
    const slow = idempotency(core).answer({ ...request, content: { a: 2 } }, async () => {
      await held.pass();
      return prepare();
    });
    await held.reached;
    await idempotency(core).answer(request, prepare);
    held.open();
    await assert.rejects(slow, code("idempotency_key_reused"));
  });
});

describe("a request that does not succeed", () => {
  test("is not remembered: the next one with its key tries again", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare } = counted();
    await assert.rejects(
      requests.answer(request, () => Promise.reject(new Error("refused"))),
      /refused/,
    );
    assert.equal((await requests.answer({ ...request, content: { a: 2 } }, prepare)).isReplay, false);
  });

  test("lets those who waited for it try themselves", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare, count } = counted();
    const failing = requests.answer(request, () => Promise.reject(new Error("refused")));
    const waiting = requests.answer(request, prepare);
    await assert.rejects(failing, /refused/);
    assert.equal((await waiting).isReplay, false);
    assert.equal(count(), 1);
  });

  test("leaves neither its effect nor a record when the promise cannot be kept", async () => {
    await using core = await startCore();
    const { prepare, count } = counted();
    const write = core.records.write.bind(core.records);
    core.records.write = (work) =>
      write((writes) => {
        const saveIdempotency: GatewayWrites["saveIdempotency"] = (record, expiredMs) =>
          record.scope === "effect"
            ? writes.saveIdempotency(record, expiredMs)
            : Promise.reject(new Error("no room for the record"));
        return work(Object.create(writes, { saveIdempotency: { value: saveIdempotency } }));
      });
    await assert.rejects(idempotency(core).answer(request, prepare), /no room/);
    assert.equal(count(), 1);
    const rows = core.database.connection.prepare("SELECT count(*) AS n FROM idempotency").get();
    assert.equal(rows?.n, 0);
  });
});

describe("the key itself", () => {
  test("may be absent: every request has its effect", async () => {
    await using core = await startCore();
    const requests = idempotency(core);
    const { prepare, count } = counted();
    for (let n = 0; n < 2; n++) await requests.answer({ ...request, key: undefined }, prepare);
    assert.equal(count(), 2);
  });

  for (const key of ["", " ", "a b", "a, b", "ä", "tab\there", "x".repeat(256), "a\u007f"]) {
    test(`must be 1 to 255 visible ASCII characters: ${JSON.stringify(key.slice(0, 9))} is refused`, async () => {
      await using core = await startCore();
      const { prepare, count } = counted();
      await assert.rejects(idempotency(core).answer({ ...request, key }, prepare), code("invalid_parameter"));
      assert.equal(count(), 0);
    });
  }

  test("may have 255 characters", async () => {
    await using core = await startCore();
    const { prepare, count } = counted();
    await idempotency(core).answer({ ...request, key: "~".repeat(255) }, prepare);
    assert.equal(count(), 1);
  });
});

test("canonical JSON is one text for equal values, and another for every other", () => {
  const json = fc.jsonValue() as fc.Arbitrary<JsonValue>;
  const shuffled = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, one]) => [key, shuffled(one as JsonValue)]),
    );
  };
  fc.assert(
    fc.property(json, json, (one, other) => {
      const text = canonicalJson(one);
      assert.equal(canonicalJson(shuffled(one)), text);
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(one)));
      const areEqual = isDeepStrictEqual(JSON.parse(canonicalJson(other)), JSON.parse(text));
      assert.equal(canonicalJson(other) === text, areEqual);
    }),
    { numRuns: 200 },
  );
});
