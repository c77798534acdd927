// Secrets in configurations: what is stored, what is shown, what a worker gets. Examples first, then the same
// properties over random configurations.

import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { describe, it } from "node:test";
import { anyString, fc } from "../../test/support/fast-check.ts";
import { countTurns, endEachSlice } from "../../test/support/turns.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { MASK } from "../engine/sealed.ts";
import { ConfigurationSecrets } from "./configuration.ts";
import { ValueCipher } from "./encryption.ts";
import { looksSecret, secretPathsIn } from "./secret-detection.ts";
import { SecretKey } from "./secret-key.ts";

const key = new SecretKey(Buffer.alloc(32, 1));
const secrets = new ConfigurationSecrets(key);
const stranger = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 2)));

async function encrypted(sent: JsonObject, stored: JsonObject = {}): Promise<JsonObject> {
  const result = await secrets.encryptGiven(sent, stored);
  assert.equal(result.kind, "encrypted", JSON.stringify(result));
  return result.kind === "encrypted" ? result.value : {};
}

async function errors(
  sent: JsonObject,
  stored: JsonObject = {},
): Promise<readonly (readonly [string, string])[]> {
  const result = await secrets.encryptGiven(sent, stored);
  return result.kind === "invalid" ? result.errors.map(({ path, code }) => [path, code] as const) : [];
}

const manySecrets = (): JsonObject =>
  Object.fromEntries(Array.from({ length: 499 }, (_, i) => [`token_${i}`, `hidden-${i}`]));

async function decrypted(stored: JsonObject, env: Record<string, string> = {}): Promise<JsonValue> {
  const { json } = await secrets.decryptForWorker(JSON.stringify(stored), env);
  return JSON.parse(json);
}

describe("what a client sends", () => {
  const sent = {
    model: "m-1",
    api_key: "sk-hidden-1",
    llm: { token: 12345678, cookie: { session: "hidden-2" }, password: ["hidden-3"] },
    providers: [{ url: "u", secret: "hidden-4" }],
  };

  it("is stored with each secret encrypted whole, and everything else as it was", async () => {
    const stored = await encrypted(sent);
    assert.ok(!/hidden|12345678/.test(JSON.stringify(stored)));
    assert.equal(stored.model, "m-1");
    assert.deepEqual(Object.keys((stored.llm as JsonObject).cookie as JsonObject), ["$sealed"]);
    assert.deepEqual(await decrypted(stored), sent);
    assert.deepEqual(await secrets.decrypt(stored), sent);
  });

  it("is shown with a mask for each secret", async () => {
    assert.deepEqual(secrets.mask(await encrypted(sent)), {
      model: "m-1",
      api_key: MASK,
      llm: { token: MASK, cookie: MASK, password: MASK },
      providers: [{ url: "u", secret: MASK }],
    });
    assert.deepEqual(secrets.mask(sent), secrets.mask(await encrypted(sent)));
  });

  it("is encrypted with another nonce each time", async () => {
    const values = await Promise.all(Array.from({ length: 1_000 }, () => encrypted({ token: "hidden-1" })));
    const texts = values.map((value) => JSON.stringify(value));
    const nonces = texts.map((text) => text.slice(0, text.indexOf("$sealed") + '$sealed":"'.length + 22));
    assert.equal(new Set(nonces).size, texts.length);
  });

  it("is encrypted a few secrets at a time, with pauses for other work", async () => {
    const many = manySecrets();
    using counted = countTurns();
    const stored = await encrypted(many);
    assert.ok(counted.turns >= 9, `${counted.turns} turns`);
    assert.deepEqual(await decrypted(stored), many);
  });

  it("is counted and prepared in turns of their own when it has many secrets", async () => {
    using counted = countTurns();
    const readAt = new Set<number>();
    const get = () => {
      readAt.add(counted.turns);
      return "hidden";
    };
    await encrypted(Object.defineProperty(manySecrets(), "last_token", { get, enumerable: true }));
    assert.equal(readAt.size, 2);
  });

  it("keeps null, an empty text, a boolean and the name of a variable in plaintext", async () => {
    const plain = { a_token: null, b_token: "", c_token: true, d_token: { $env: "NAME" }, max_tokens: 5 };
    assert.deepEqual(await encrypted(plain), plain);
    assert.deepEqual(secrets.mask(plain), plain);
  });

  it("keeps a stored secret where it has a mask, without encrypting it again", async () => {
    const stored = await encrypted(sent);
    const changed = await encrypted({ ...secrets.mask(stored), model: "m-2", api_key: "sk-new" }, stored);
    assert.deepEqual(changed.llm, stored.llm);
    assert.deepEqual(changed.providers, stored.providers);
    assert.deepEqual(await decrypted(changed), { ...sent, model: "m-2", api_key: "sk-new" });
  });

  it("keeps whatever is stored under a secret's key: also a variable's name, and a secret still in plaintext", async () => {
    assert.deepEqual(await encrypted({ token: MASK }, { token: { $env: "NAME" } }), {
      token: { $env: "NAME" },
    });
    const kept = await encrypted({ token: MASK }, { token: "hidden-1" });
    assert.ok(!JSON.stringify(kept).includes("hidden-1"));
    assert.deepEqual(await decrypted(kept), { token: "hidden-1" });
  });

  it("keeps an encrypted value under a key that does not look like a secret", async () => {
    const stored = { plain: (await encrypted({ token: "hidden-1" })).token! };
    assert.deepEqual(secrets.mask(stored), { plain: MASK });
    assert.deepEqual(await encrypted({ plain: MASK }, stored), stored);
    assert.deepEqual((await secrets.decryptForWorker(JSON.stringify(stored), {})).secrets, ["hidden-1"]);
  });

  it("may have the mask's text where no secret is", async () => {
    assert.deepEqual(await encrypted({ note: MASK }, { note: "other" }), { note: MASK });
  });

  it("is refused with the place of each mask for which nothing is stored", async () => {
    const wrong = { token: MASK, "a/b": [{ "~secret": MASK }], cookie: { deep: [MASK] } };
    assert.deepEqual(await errors(wrong, { other_token: "x" }), [
      ["/resolved_configuration/token", "nothing_to_keep"],
      ["/resolved_configuration/a~1b/0/~0secret", "nothing_to_keep"],
      ["/resolved_configuration/cookie/deep/0", "nothing_to_keep"],
    ]);
    assert.deepEqual(await errors({ constructor: { token: MASK }, __proto__: { token: MASK } }), [
      ["/resolved_configuration/constructor/token", "nothing_to_keep"],
    ]);
    assert.deepEqual(await errors(JSON.parse('{"__proto__": {"token": "********"}}'), {}), [
      ["/resolved_configuration/__proto__/token", "nothing_to_keep"],
    ]);
  });

  it("does not hand the secret of one list item to another when the list's length changes", async () => {
    const stored = await encrypted({
      list: [
        { url: "a", token: "hidden-a" },
        { url: "b", token: "hidden-b" },
      ],
    });
    assert.deepEqual(await errors({ list: [{ url: "b", token: MASK }] }, stored), [
      ["/resolved_configuration/list/0/token", "nothing_to_keep"],
    ]);
  });

  it("is refused with an encrypted value of its own, even a valid one", async () => {
    const stolen = (await encrypted({ token: "hidden-1" })).token!;
    const wrong = { token: stolen, plain: [stolen], cookie: { in: { $sealed: 1, more: 2 } } };
    assert.deepEqual(await errors(wrong), [
      ["/resolved_configuration/token", "sealed_not_accepted"],
      ["/resolved_configuration/plain/0", "sealed_not_accepted"],
      ["/resolved_configuration/cookie/in", "sealed_not_accepted"],
    ]);
    assert.deepEqual(await errors({ $sealed: "x" }), [["/resolved_configuration", "sealed_not_accepted"]]);
  });

  it("is answered with 100 wrong places at most, and how many more there are", async () => {
    const sent = { list: Array.from({ length: 150 }, () => ({ token: MASK })) };
    const result = await secrets.encryptGiven(sent, {}, { at: "/config_overrides" });
    assert.ok(result.kind === "invalid");
    assert.equal(result.errors.length, 101);
    assert.equal(result.errors[99]?.path, "/config_overrides/list/99/token");
    assert.deepEqual(result.errors[100], {
      path: "/config_overrides",
      code: "more_problems",
      message: "and 50 more",
    });
  });
});

describe("what a worker gets", () => {
  it("has variables of the runtime's environment in place of their names, inside secrets too", async () => {
    const stored = await encrypted({
      region: { $env: "REGION" },
      db_password: { rw: { $env: "PW" }, list: [{ $env: "PW" }] },
    });
    const env = { REGION: "region-value", PW: "pw-value" };
    assert.deepEqual(await decrypted(stored, env), {
      region: "region-value",
      db_password: { rw: "pw-value", list: ["pw-value"] },
    });
  });

  it("has nothing else replaced that only resembles a variable's name", async () => {
    const plain = { a: { $env: "X", b: 1 }, c: { $env: 5 }, d: { env: "X" }, e: "$env" };
    assert.deepEqual(await decrypted(await encrypted(plain), { X: "x-value" }), plain);
  });

  it("comes with every text to redact, also in its JSON form", async () => {
    const stored = await encrypted({
      plain: { $env: "A" },
      api_key: 'with "quotes"',
      token: { deep: [123456789, "listed", true] },
      model: "m-1",
    });
    assert.deepEqual((await secrets.decryptForWorker(JSON.stringify(stored), { A: "env-value" })).secrets, [
      "env-value",
      'with "quotes"',
      'with \\"quotes\\"',
      "123456789",
      "listed",
    ]);
  });

  it("is the stored text when there is nothing to decrypt; plaintext secrets are still reported", async () => {
    const json = '{ "a": 1.0, "token": {"x": "in-clear"} }';
    assert.deepEqual(await secrets.decryptForWorker(json, {}), { json, secrets: ["in-clear"] });
  });

  it("is nothing when variables are missing; the error names each with its place", async () => {
    const json = JSON.stringify(
      await encrypted({ a: { $env: "ABSENT" }, list: [{ $env: "toString" }], ok: { $env: "SET" } }),
    );
    await assert.rejects(secrets.decryptForWorker(json, { SET: "set-value" }), {
      name: "ConfigurationUnreadable",
      code: "configuration.variable_missing",
      message: /ABSENT at \/a, toString at \/list\/0\.$/,
    });
  });

  it("is decrypted in slices, with pauses for other work", async (t) => {
    const many = { list: [manySecrets()], plain: "" };
    const stored = secrets.encrypt(many);
    using counted = countTurns();
    endEachSlice(t);
    assert.deepEqual(await decrypted(stored), many);
    assert.ok(counted.turns >= 490, `${counted.turns} turns`);
  });

  it("may have an empty variable", async () => {
    assert.deepEqual(await decrypted({ a: { $env: "EMPTY" } }, { EMPTY: "" }), { a: "" });
  });

  it("fails when secrets were encrypted with another key; the error names the places and no value", async () => {
    const stored = await encrypted({ llm: { api_key: "hidden-1" } });
    const unreadable = {
      name: "ConfigurationUnreadable",
      code: "configuration.unreadable",
      message: "Secrets of the configuration were encrypted with another key, or are damaged: /llm/api_key.",
    };
    await assert.rejects(stranger.decryptForWorker(JSON.stringify(stored), {}), unreadable);
  });

  it("fails when an encrypted value has another form", async () => {
    const good = (await encrypted({ token: "hidden-1" })).token as JsonObject;
    for (const value of [{ $sealed: 1 }, { $sealed: "" }, { $sealed: "AQ" }, { ...good, more: 1 }]) {
      await assert.rejects(decrypted({ token: value }), { code: "configuration.unreadable" });
    }
  });
});

describe("what the manifest names", () => {
  const paths = secretPathsIn({
    secrets: ["smtp.user", "accounts.pin", "a\\.b", "smtp.user.deeper", 5, "..", "x.__proto__"],
  });
  const plaintext: JsonObject = {
    smtp: { user: { name: "hidden-1" }, host: "h" },
    accounts: [{ pin: "hidden-2", id: 1 }, [{ pin: "hidden-3" }]],
    "a.b": ["hidden-4"],
    user: "u",
  };
  const shown = {
    smtp: { user: MASK, host: "h" },
    accounts: [{ pin: MASK, id: 1 }, [{ pin: MASK }]],
    "a.b": MASK,
    user: "u",
  };

  it("is encrypted, masked and kept like secrets by name", async () => {
    const given = await secrets.encryptGiven(plaintext, {}, { paths });
    assert.ok(given.kind === "encrypted");
    for (const stored of [given.value, secrets.encrypt(plaintext, paths)]) {
      assert.ok(!JSON.stringify(stored).includes("hidden"));
      assert.deepEqual(secrets.mask(stored), shown);
      assert.deepEqual(await decrypted(stored), plaintext);
      assert.deepEqual(await secrets.encryptGiven(shown, stored, { paths }), {
        kind: "encrypted",
        value: stored,
      });
    }
    assert.deepEqual(secrets.mask(plaintext, paths), shown);
  });

  it("is found in the bodies of inputs, whatever their nodes are called", async () => {
    const inputs = { $entrypoints: { token: [plaintext, "text"], smtp: plaintext } };
    const given = await secrets.encryptInputs(inputs, { paths });
    assert.ok(given.kind === "encrypted");
    assert.deepEqual(secrets.maskInputs(given.value), {
      $entrypoints: { token: [shown, "text"], smtp: shown },
    });
    assert.deepEqual(await secrets.decrypt(given.value), inputs);
    const wrong = { $entrypoints: { "a/b": [{ accounts: { pin: MASK } }] } };
    const refused = await secrets.encryptInputs(wrong, { paths });
    assert.ok(refused.kind === "invalid");
    assert.deepEqual(
      refused.errors.map(({ path, code }) => [path, code]),
      [["/inputs/$entrypoints/a~1b/0/accounts/pin", "nothing_to_keep"]],
    );
  });
});

describe("an address with a password", () => {
  const url = "postgres://user:pa55%2Fword@db/app";
  const plaintext = { database: url, list: [`--db=${url} now`], note: "https://example.org/" };

  it("is a secret as a whole under any name; it and its password are redacted", async () => {
    const stored = await encrypted(plaintext);
    assert.ok(!JSON.stringify(stored).includes("pa55"));
    assert.deepEqual(secrets.mask(stored), { database: MASK, list: [MASK], note: plaintext.note });
    assert.deepEqual(secrets.mask(plaintext), secrets.mask(stored));
    assert.deepEqual(await decrypted(stored), plaintext);
    for (const one of [stored, plaintext]) {
      const { secrets: found } = await secrets.decryptForWorker(JSON.stringify(one), {});
      assert.ok(
        [url, "pa55%2Fword", "pa55/word"].every((text) => found.includes(text)),
        found.join(" "),
      );
      assert.ok(!found.some((text) => text.includes("now")));
    }
  });

  it("that was stored in plaintext by an older version is kept, encrypted, where a mask is sent back", async () => {
    const kept = await encrypted({ database: MASK }, { database: url });
    assert.ok(!JSON.stringify(kept).includes("pa55"));
    assert.deepEqual(await decrypted(kept), { database: url });
  });
});

it("encrypted values in a message's body are decrypted; values of a worker that only look so stay", async () => {
  const body = {
    deep: [await encrypted({ token: "hidden-1" })],
    next_token: "not-sealed",
    fake: { $sealed: "x" },
    n: { $sealed: 5 },
  };
  assert.deepEqual(secrets.decryptBody(body), {
    body: { ...body, deep: [{ token: "hidden-1" }] },
    secrets: ["hidden-1"],
  });
  assert.throws(() => stranger.decryptBody(body), { code: "configuration.unreadable" });
  const plain = { token: "x" };
  assert.equal(secrets.decryptBody(plain).body, plain);
});

it("no more secrets are looked for once there are too many", async () => {
  const list: JsonValue[] = Array.from({ length: 80_000 }, () => ({ token: "s" }));
  Object.defineProperty(list, 600, {
    get() {
      throw new Error("It went on looking.");
    },
  });
  assert.deepEqual(await errors({ list }), [["/resolved_configuration", "too_many_secrets"]]);
});

describe("a configuration that is decrypted to be changed", () => {
  it("is as it was given, the names of variables as well", async () => {
    const sent = {
      region: { $env: "R" },
      db_password: { rw: { $env: "PW" } },
      token: "hidden-1",
      list: [{ secret: 5 }],
    };
    assert.deepEqual(await secrets.decrypt(await encrypted(sent)), sent);
  });

  it("is refused when it was encrypted with another key", async () => {
    const stored = await encrypted({ list: [{ token: "hidden-1" }] });
    await assert.rejects(stranger.decrypt(stored), {
      name: "ConfigurationUnreadable",
      code: "configuration.unreadable",
      message: /: \/list\/0\/token\.$/,
    });
  });

  it("keeps a stolen ciphertext closed, also when it is encrypted again", async () => {
    const plaintext = { plain: (await encrypted({ token: "hidden-1" })).token! };
    const again = secrets.encrypt(await secrets.decrypt(secrets.encrypt(plaintext)));
    assert.deepEqual(await decrypted(again), plaintext);
  });
});

describe("a configuration that is in plaintext", () => {
  it("is encrypted as what a client sends is, and may have the mask's text as a value", async () => {
    const plaintext = {
      api_key: "hidden-1",
      token: MASK,
      list: [{ secret: "hidden-2" }],
      ref_token: { $env: "A" },
    };
    const stored = secrets.encrypt(plaintext);
    assert.ok(!JSON.stringify(stored).includes("hidden"));
    assert.deepEqual(await decrypted(stored, { A: "a-value" }), { ...plaintext, ref_token: "a-value" });
  });

  it("does not decrypt a planted ciphertext: the worker sees the ciphertext", async () => {
    const stolen = (await encrypted({ token: "hidden-1" })).token!;
    const plaintext = { plain: stolen, token: stolen, list: [[stolen]], cookie: { deep: stolen } };
    assert.deepEqual(await decrypted(secrets.encrypt(plaintext)), plaintext);
  });
});

/** JSON objects whose keys are often a secret's; leaves that are nowhere else in the test. */
const jsonObject: fc.Arbitrary<JsonObject> = fc
  .letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.oneof(
        fc.constant(null),
        fc.boolean(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        anyString(),
        fc.uuid(),
      ),
      fc.array(tie("value"), { maxLength: 4 }),
      tie("object"),
    ),
    object: fc.dictionary(
      fc.oneof(fc.constantFrom("token", "api_key", "my-password", "__proto__", "$env", "a"), fc.string()),
      tie("value"),
      { maxKeys: 5 },
    ) as fc.Arbitrary<JsonObject>,
  }))
  .object.map((object) => JSON.parse(JSON.stringify(object)) as JsonObject);

/** Texts under a secret's key, at any depth below it. */
function planted(value: JsonValue, secret = false): string[] {
  if (typeof value === "string") return secret && value.length >= 8 ? [value] : [];
  if (value === null || typeof value !== "object") return [];
  if (Array.isArray(value)) return value.flatMap((item: JsonValue) => planted(item, secret));
  const isReference = Object.keys(value).length === 1 && typeof (value as JsonObject).$env === "string";
  if (isReference) return [];
  return Object.entries(value).flatMap(([name, item]) => planted(item, secret || looksSecret(name)));
}

describe("any configuration", () => {
  it("comes back exactly after it was encrypted, as from a client and as from a bundle", async () => {
    await fc.assert(
      fc.asyncProperty(jsonObject, async (sent) => {
        const expected = resolved(sent, true);
        for (const stored of [await encrypted(sent), secrets.encrypt(sent)]) {
          const { json } = await secrets.decryptForWorker(JSON.stringify(stored), everyVariable);
          assert.equal(json, JSON.stringify(expected));
        }
      }),
    );
  });

  it("has no secret in its stored or masked form", async () => {
    await fc.assert(
      fc.asyncProperty(jsonObject, async (sent) => {
        const stored = await encrypted(sent);
        const visible = JSON.stringify(strip(sent));
        for (const secret of planted(sent)) {
          const spelled = JSON.stringify(secret).slice(1, -1);
          if (visible.includes(spelled)) continue;
          for (const text of [
            JSON.stringify(stored),
            JSON.stringify(secrets.encrypt(sent)),
            JSON.stringify(secrets.mask(stored)),
            JSON.stringify(secrets.mask(sent)),
          ]) {
            assert.ok(!text.includes(spelled), `${spelled} in ${text}`);
          }
        }
        assert.ok(!JSON.stringify(secrets.mask(stored)).includes("$sealed"));
      }),
    );
  });

  it("does not change when its masked form is sent back", async () => {
    await fc.assert(
      fc.asyncProperty(jsonObject, async (sent) => {
        const stored = await encrypted(sent);
        assert.equal(JSON.stringify(await encrypted(secrets.mask(stored), stored)), JSON.stringify(stored));
      }),
    );
  });

  it("names every text of a secret for redaction", async () => {
    await fc.assert(
      fc.asyncProperty(jsonObject, async (sent) => {
        const { secrets: found } = await secrets.decryptForWorker(
          JSON.stringify(await encrypted(sent)),
          everyVariable,
        );
        for (const secret of planted(sent)) assert.ok(found.includes(secret));
      }),
    );
  });
});

/** An environment that has every variable, each with its name in its value. */
const everyVariable: Record<string, string> = new Proxy(
  {},
  {
    get: (_, name) => `value of ${String(name)}`,
    getOwnPropertyDescriptor: () => ({ value: "", configurable: true }),
  },
);

/** What a worker should get of a configuration; at its root, `$env` is a key like any other. */
function resolved(value: JsonValue, isRoot = false): JsonValue {
  if (Array.isArray(value)) return value.map((item: JsonValue) => resolved(item));
  if (!isObject(value)) return value;
  if (!isRoot && typeof value.$env === "string" && Object.keys(value).length === 1) {
    return `value of ${value.$env}`;
  }
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolved(item)]));
}

/** The configuration without anything under a secret's key. */
function strip(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item: JsonValue) => strip(item));
  if (value === null || typeof value !== "object") return value;
  return Object.entries(value).map(([name, item]) => [
    name,
    looksSecret(name) ? 0 : strip(item as JsonValue),
  ]);
}

describe("an encrypted value", () => {
  const cipher = new ValueCipher(key);

  it("decrypts to what was encrypted, whatever JSON it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        const result = cipher.decrypt(cipher.encrypt(JSON.parse(text)).$sealed);
        assert.equal(JSON.stringify(result?.value), text);
      }),
    );
  });

  it("is not decrypted when any bit of it, its length or its spelling is changed", () => {
    const text = cipher.encrypt({ a: ["secret value"] }).$sealed as string;
    const bytes = Buffer.from(text, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      assert.equal(cipher.decrypt(changed.toString("base64url")), null);
    }
    for (let length = 0; length < text.length; length++)
      assert.equal(cipher.decrypt(text.slice(0, length)), null);
    for (const other of [`${text}A`, `${text}=`, `${text}\n`, ` ${text}`])
      assert.equal(cipher.decrypt(other), null);
    assert.deepEqual(cipher.decrypt(text), { value: { a: ["secret value"] }, isCurrent: true });
  });

  it("is not decrypted with another key", () => {
    assert.equal(
      new ValueCipher(new SecretKey(Buffer.alloc(32, 3))).decrypt(cipher.encrypt("x").$sealed),
      null,
    );
  });

  it("is decrypted by an older key too, and only by the keys that are there", () => {
    const old = new SecretKey(Buffer.alloc(32, 4));
    const next = new ValueCipher(new SecretKey(Buffer.alloc(32, 5), [old]));
    const before = String(new ValueCipher(old).encrypt("hidden-1").$sealed);
    assert.deepEqual(next.decrypt(before), { value: "hidden-1", isCurrent: false });
    const later = next.encrypt("hidden-2").$sealed;
    assert.equal(new ValueCipher(old).decrypt(later), null);
    assert.deepEqual(new ValueCipher(new SecretKey(Buffer.alloc(32, 5))).decrypt(later), {
      value: "hidden-2",
      isCurrent: true,
    });
  });

  it("decrypts what programs before key ids have encrypted", () => {
    const old = new SecretKey(Buffer.alloc(32, 4));
    const nonce = Buffer.alloc(12, 9);
    const head = Buffer.of(1);
    const cipher = createCipheriv("aes-256-gcm", old.derive("configuration secrets"), nonce).setAAD(head);
    const text = Buffer.concat([cipher.update('"hidden-1"', "utf8"), cipher.final()]);
    const stored = Buffer.concat([head, nonce, text, cipher.getAuthTag()]).toString("base64url");
    for (const one of [old, new SecretKey(Buffer.alloc(32, 5), [old])]) {
      assert.deepEqual(new ValueCipher(one).decrypt(stored), { value: "hidden-1", isCurrent: false });
    }
  });
});

describe("a variable with a secret of the runtime itself", () => {
  const names = ["SVC_API_TOKEN", "SVC_SECRET_KEY", "SVC_DATABASE_URL", "SVC_RUNTIME_API_TOKEN"].flatMap(
    (name) => [name, `${name}_FILE`],
  );

  it("is refused where a client names it, also inside a secret", async () => {
    for (const name of names) {
      assert.deepEqual(
        await errors({ url: { $env: name }, list: [{ password: { deep: { $env: name } } }] }),
        [
          ["/resolved_configuration/url", "variable_withheld"],
          ["/resolved_configuration/list/0/password/deep", "variable_withheld"],
        ],
      );
    }
    assert.deepEqual(await errors({ token: { $env: "SVC_API_TOKEN" } }), [
      ["/resolved_configuration/token", "variable_withheld"],
    ]);
  });

  it("is not read for a worker, whatever names it", async () => {
    for (const name of names) {
      const stored = secrets.encrypt({ plain: { $env: name }, password: { deep: { $env: name } } });
      await assert.rejects(secrets.decryptForWorker(JSON.stringify(stored), { [name]: "the secret" }), {
        name: "ConfigurationUnreadable",
        code: "configuration.variable_withheld",
        message: new RegExp(`${name} at /plain, ${name} at /password/deep`),
      });
    }
  });
});
